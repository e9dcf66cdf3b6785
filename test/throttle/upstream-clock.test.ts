import { expect, test } from 'vitest';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';

const DATE = Date.UTC(2026, 10, 21, 12);

function start() {
  const time = { ms: 777_000 };
  const clock = createUpstreamClock({ elapsed: () => time.ms, now: () => DATE - 777_000 + time.ms });
  /** A response that the upstream dated `seconds` after DATE, and that was `latencyMs` on its way. */
  const observe = (seconds: number, latencyMs: number) => clock.observe(DATE + seconds * 1000, latencyMs * 2);
  return { time, clock, observe };
}

test('is not known before a Date was seen, nor ten minutes after the last', () => {
  const { time, clock, observe } = start();
  expect(clock.now()).toBeUndefined();
  observe(0, 10);
  expect(clock.now()).toBe(DATE);
  time.ms += 9 * 60_000;
  expect(clock.now()).toBe(DATE + 9 * 60_000);
  time.ms += 2 * 60_000;
  expect(clock.now()).toBeUndefined();
});

test('goes by the Date that has lost the least on its way', () => {
  const { time, clock, observe } = start();
  time.ms += 900;
  observe(0, 900);
  time.ms += 110;
  observe(1, 10);
  time.ms += 800;
  observe(1, 10);
  expect(clock.now()).toBe(DATE + 1_800);
});

test('follows an upstream whose clock is set forth', () => {
  const { time, clock, observe } = start();
  observe(0, 0);
  time.ms += 1_000;
  observe(6, 0);
  expect(clock.now()).toBe(DATE + 6_000);
});

test('follows an upstream whose clock is set back', () => {
  const { time, clock, observe } = start();
  observe(0, 0);
  time.ms += 10_000;
  observe(5, 50);
  expect(clock.now()).toBe(DATE + 5_000);
});

test('does not take a slow answer for a clock that is set back', () => {
  const { time, clock, observe } = start();
  observe(0, 0);
  time.ms += 10_000;
  observe(5, 2_500);
  expect(clock.now()).toBe(DATE + 10_000);
});

const DAY_S = 86_400;

test('does not believe one Date of another year, and believes a second one that agrees', () => {
  const { time, clock, observe } = start();
  observe(0, 0);
  time.ms += 1_000;
  observe(1_000 * DAY_S, 0);
  expect(clock.now()).toBe(DATE + 1_000);
  time.ms += 1_000;
  observe(1_000 * DAY_S + 1, 0);
  expect(clock.now()).toBe(DATE + (1_000 * DAY_S + 1) * 1_000);
});

test('two Dates of other years that do not agree, or not one after the other, are not believed', () => {
  const { clock, observe } = start();
  observe(0, 0);
  for (const days of [1_000, 2_000, 1_000, 0, 1_000]) {
    observe(days * DAY_S, 0);
    expect(clock.now()).toBe(DATE);
  }
});

test('a clock that is far from our own is followed, and left at once for one that is near', () => {
  const { clock, observe } = start();
  observe(1_000 * DAY_S, 0);
  expect(clock.now()).toBe(DATE + 1_000 * DAY_S * 1_000);
  observe(0, 0);
  expect(clock.now()).toBe(DATE);
});
