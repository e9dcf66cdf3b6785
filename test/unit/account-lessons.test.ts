import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { createKey, sum } from './account-key.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const BUSINESS = { ...PLANS.business, known: true };
/** A day of 20 is assumed, and nobody says a limit. */
const ASSUMED = { perMinute: 60, perDay: 20, known: false };

describe('trust', () => {
  test('doubles with each round of successes, and 31 of them are full trust', () => {
    const key = createKey({ plan: { ...PLANS.pro, known: true }, isTrusted: false });
    expect(key.callAll(300, 0)).toEqual([1, 2, 4, 8, 16, 269]);
  });

  test('begins anew after a 429, and a call from before it proves nothing', () => {
    const key = createKey({ isTrusted: false });
    key.call(1, 0);
    const [refused, late] = key.take(2, 100);
    if (!late) throw new Error('expected two permits');
    key.refuse(refused, 1_000, 30_000);
    key.succeed(late, 2_000);
    expect(key.take(60, 33_000)).toHaveLength(1);
  });

  test('begins with one call beyond a day whose limit nobody has said', () => {
    const key = createKey({ plan: ASSUMED });
    expect(key.callAll(40, 0).slice(0, 4)).toEqual([20, 1, 2, 4]);
  });
});

describe('a 429 where the count had room', () => {
  test('lowers the limit, which is tried again after six hours, a little more in each minute', () => {
    const key = createKey();
    key.call(40, 0);
    const [permit] = key.take(1, 100);
    key.refuse(permit, 200, 30_000);
    expect(sum(key.callAll(60, 70_000))).toBe(40);
    expect(key.call(60, 5 * HOUR_MS)).toBe(40);
    expect(key.call(60, 6 * HOUR_MS + 10_000)).toBe(41);
    expect(key.call(60, 6 * HOUR_MS + 10 * MINUTE_MS)).toBe(60);
  });

  test('and others of the same moment lower it by a call each', () => {
    const key = createKey();
    key.call(40, 0);
    for (const [index, permit] of key.take(3, 100).entries()) key.refuse(permit, 200 + index, 30_000);
    expect(sum(key.callAll(60, 70_000))).toBe(40);
  });

  test('teaches nothing where its headers show the calls of others', () => {
    const key = createKey();
    key.call(30, 0);
    const [permit] = key.take(1, 100);
    key.refuse(permit, 200, 30_000, { limit: 60, used: 60, resetInMs: 30_000 });
    expect(sum(key.callAll(60, 70_000))).toBe(60);
  });

  test('to a call beyond a limit that nobody has said finds that limit', () => {
    const key = createKey({ plan: ASSUMED });
    key.callAll(25, 0);
    const [permit] = key.take(1, 70_000);
    key.refuse(permit, 70_100, 0);
    expect(sum(key.callAll(60, DAY_MS + HOUR_MS))).toBe(25);
  });

  test('to calls that came too fast finds no limit', () => {
    const key = createKey({ plan: ASSUMED });
    key.callAll(20, 0);
    for (const count of [1, 2]) expect(key.call(10, 100_000)).toBe(count);
    const [permit] = key.take(10, 100_000);
    key.refuse(permit, 100_100, 2_000);
    expect(key.take(10, 110_000)).toHaveLength(1);
  });
});

describe('a 429 to ten calls in a second, far below the limit of the minute', () => {
  /** Returns how many calls go in ten seconds, of a client that wants as many as it may make. */
  function callsIn10s(key: ReturnType<typeof createKey>, fromMs: number): number {
    let calls = 0;
    for (let ms = fromMs; ms < fromMs + 10_000; ms += 10) calls += key.call(1, ms);
    return calls;
  }

  function rushed(): ReturnType<typeof createKey> {
    const key = createKey({ plan: BUSINESS });
    key.call(9, 0);
    const [permit] = key.take(1, 50);
    key.refuse(permit, 100, 1_000);
    return key;
  }

  test('halves the pace, which doubles in two minutes', () => {
    const key = rushed();
    const [first, ...later] = Array.from({ length: 13 }, (_, index) => callsIn10s(key, 7_000 + index * 10_000));
    expect(first).toBeGreaterThanOrEqual(45);
    expect(first).toBeLessThanOrEqual(60);
    expect(later.at(-1)).toBeGreaterThanOrEqual(95);
    expect(later.at(-1)).toBeLessThanOrEqual(120);
  });

  test('and the pace grows by a minute at most where no call goes', () => {
    expect(callsIn10s(rushed(), 10 * MINUTE_MS)).toBeLessThanOrEqual(85);
  });
});
