import { describe, expect, test } from 'vitest';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';

const DATE = Date.UTC(2026, 10, 21, 12);

function start(ownAheadMs = 0) {
  const time = { ms: 777_000 };
  const clock = createUpstreamClock({ elapsed: () => time.ms, now: () => DATE - 777_000 + time.ms + ownAheadMs });
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

const MINUTE_MS = 60_000;

/** So many answers, a second apart, of which some have a Date that is off by `offS`. */
function answers(
  { time, observe }: ReturnType<typeof start>,
  count: number,
  isOff: (index: number) => boolean,
  offS: number,
) {
  for (let index = 0; index < count; index += 1) {
    time.ms += 1_000;
    observe((time.ms - 777_000) / 1_000 + (isOff(index) ? offS : 0), 0);
  }
}

describe.each([
  ['a minute and a half behind', -90],
  ['hours behind', -7_200],
  ['a minute and a half ahead', 90],
  ['hours ahead', 7_200],
  ['years ahead', 1_000 * DAY_S],
])('one whose Date is %s', (_name, offS) => {
  // Our own clock may be wrong as well: then it has no say.
  describe.each([
    ['right', 0],
    ['an hour ahead', 3_600_000],
  ])('where our own is %s', (_own, ownAheadMs) => {
    test('is not believed', () => {
      const started = start(ownAheadMs);
      answers(started, 1, () => false, 0);
      answers(started, 1, () => true, offS);
      expect(started.clock.now()).toBe(DATE + 2_000);
    });

    test('is not believed though it is one of ten, time and again', () => {
      const started = start(ownAheadMs);
      for (let round = 0; round < 200; round += 1) {
        // One of ten, and two in a row now and then.
        answers(started, 1, () => false, 0);
        answers(started, 9, (index) => index === round % 9 || (round % 10 === 0 && index === 4), offS);
        expect(started.clock.now()).toBe(DATE + started.time.ms - 777_000);
      }
    });

    test('is left soon that came first', () => {
      const started = start(ownAheadMs);
      answers(started, 1, () => true, offS);
      answers(started, 2, () => false, 0);
      expect(started.clock.now()).toBe(DATE + 3_000);
    });

    test('is followed after some answers, where all say so from then on', () => {
      const started = start(ownAheadMs);
      answers(started, 100, () => false, 0);
      answers(started, 16, () => true, offS);
      expect(started.clock.now()).toBe(DATE + 116_000 + offS * 1_000);
    });

    test('is followed after ten minutes, where there are few answers', () => {
      const started = start(ownAheadMs);
      answers(started, 100, () => false, 0);
      for (let minute = 0; minute < 11; minute += 1) {
        started.time.ms += MINUTE_MS;
        answers(started, 1, () => true, offS);
      }
      expect(started.clock.now()).toBe(DATE + started.time.ms - 777_000 + offS * 1_000);
    });
  });
});

test('of two that answer by turns, the one is believed that says what our own says', () => {
  const started = start();
  for (let round = 0; round < 50; round += 1) {
    answers(started, 1 + (round % 7), () => true, -90);
    answers(started, 1 + (round % 3), () => false, 0);
    expect(started.clock.now()).toBe(DATE + started.time.ms - 777_000);
  }
});

test('two Dates of other years that do not agree, or come by turns, are not believed', () => {
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
