import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createKeyUsage } from '../../src/sandbox/key-usage.ts';
import type { KeyUsage } from '../../src/sandbox/key-usage.ts';
import { DEMO_KEYS } from '../../src/sandbox/keys.ts';
import { START_MS } from './start-test-sandbox.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MIDNIGHT_MS = Date.UTC(2026, 0, 6);

test('the plans hold as many requests as the service says', () => {
  expect(Object.values(DEMO_KEYS).slice(0, 3)).toEqual([
    { name: 'Free', perMinute: 60, perDay: 1_000 },
    { name: 'Pro', perMinute: 300, perDay: 10_000 },
    { name: 'Business', perMinute: 1_000, perDay: 100_000 },
  ]);
});

describe.for(Object.values(DEMO_KEYS))('a key of the $name plan', (plan) => {
  test('has its requests of one minute, and as many in the next', () => {
    const usage = createKeyUsage(plan);
    expect(admittedAt(usage, START_MS)).toBe(plan.perMinute);
    expect(admittedAt(usage, endOfMinute(START_MS) - 1)).toBe(0);
    expect(admittedAt(usage, endOfMinute(START_MS))).toBe(plan.perMinute);
  });

  test('has its requests of one day, however many minutes it takes, and as many in the next', () => {
    const usage = createKeyUsage(plan);
    expect(admittedBetween(usage, MIDNIGHT_MS - DAY_MS, MIDNIGHT_MS)).toBe(plan.perDay);
    expect(admittedBetween(usage, MIDNIGHT_MS, MIDNIGHT_MS + DAY_MS)).toBe(plan.perDay);
  });
});

test('whatever the rhythm of the calls, no window holds more than the plan, and none is refused before it is full', () => {
  const plan = { name: 'small', perMinute: 3, perDay: 8 };
  const pause = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 90_000 }), fc.integer({ min: 1, max: DAY_MS }));
  fc.assert(
    fc.property(fc.array(pause, { maxLength: 60 }), (pauses) => {
      const usage = createKeyUsage(plan);
      const minutes = new Map<number, number>();
      const days = new Map<number, number>();
      let nowMs = START_MS;
      for (const pauseMs of pauses) {
        nowMs += pauseMs;
        const [minute, day] = [Math.floor(nowMs / MINUTE_MS), Math.floor(nowMs / DAY_MS)];
        const [inMinute, inDay] = [minutes.get(minute) ?? 0, days.get(day) ?? 0];
        const { kind } = usage.admit(nowMs);
        if (kind === 'banned') continue;
        expect(kind).toBe(inMinute < plan.perMinute && inDay < plan.perDay ? 'admitted' : 'limited');
        if (kind === 'limited') continue;
        minutes.set(minute, inMinute + 1);
        days.set(day, inDay + 1);
      }
    }),
  );
});

/** Calls until one is refused, which is once: nobody is banned here. */
function admittedAt(usage: KeyUsage, nowMs: number): number {
  let admitted = 0;
  while (usage.admit(nowMs).kind === 'admitted') admitted += 1;
  return admitted;
}

/** Waits as long as it is told to whenever a call is refused. */
function admittedBetween(usage: KeyUsage, fromMs: number, untilMs: number): number {
  let admitted = 0;
  let nowMs = fromMs;
  while (nowMs < untilMs) {
    const admission = usage.admit(nowMs);
    if (admission.kind === 'admitted') admitted += 1;
    else nowMs = admission.usage.resetAtMs;
  }
  return admitted;
}

function endOfMinute(nowMs: number): number {
  return nowMs - (nowMs % MINUTE_MS) + MINUTE_MS;
}
