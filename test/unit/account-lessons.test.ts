import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { createKey, sum } from './account-key.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
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
  /** A key of which a 429 has taught that 40 calls a minute are the limit. */
  function taught(): ReturnType<typeof createKey> {
    const key = createKey();
    key.call(40, 0);
    const [permit] = key.take(1, 100);
    key.refuse(permit, 200, 30_000);
    return key;
  }

  test('lowers the limit for ten minutes; then one call tries more', () => {
    const key = taught();
    expect(sum(key.callAll(60, 70_000))).toBe(40);
    expect(sum(key.callAll(60, 9 * MINUTE_MS))).toBe(40);
    // One goes beyond it, and its success ends the lesson.
    expect(key.callAll(60, 11 * MINUTE_MS)).toEqual([40, 1, 2, 4, 8, 5]);
    expect(sum(key.callAll(60, 13 * MINUTE_MS))).toBe(60);
  });

  test('to the call beyond it doubles that time, to six hours', () => {
    const key = taught();
    let atMs = 11 * MINUTE_MS;
    for (const minutes of [20, 40, 80, 160, 320, 360, 360]) {
      expect(sum(key.callAll(40, atMs))).toBe(40);
      const [beyond] = key.take(1, atMs + 100);
      key.refuse(beyond, atMs + 200, 30_000);
      expect(sum(key.callAll(60, atMs + (minutes - 1) * MINUTE_MS))).toBe(40);
      atMs += (minutes + 2) * MINUTE_MS;
    }
  });

  test('and others of the same moment lower it no more', () => {
    const key = createKey();
    key.call(40, 0);
    for (const [index, permit] of key.take(3, 100).entries()) key.refuse(permit, 200 + index, 30_000);
    expect(sum(key.callAll(60, 70_000))).toBe(40);
  });

  test.each([60, 40, 30])('teaches nothing while its header leaves calls, unless it comes again: at %d', (used) => {
    const key = createKey();
    const refuseAt = (ms: number) => {
      key.callAll(used - 1, ms);
      const [permit] = key.take(1, ms + 100);
      key.refuse(permit, ms + 200, 20_000, { limit: 60, used: 2, resetInMs: 20_000 });
    };
    refuseAt(0);
    refuseAt(2 * MINUTE_MS);
    expect(sum(key.callAll(60, 5 * MINUTE_MS))).toBe(used - 1);
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
    expect(sum(key.callAll(60, 5 * HOUR_MS))).toBe(0);
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

  function rushed(retryAfterMs: number): ReturnType<typeof createKey> {
    const key = createKey({ plan: BUSINESS });
    rush(key, 0, retryAfterMs);
    return key;
  }

  function rush(key: ReturnType<typeof createKey>, ms: number, retryAfterMs: number): void {
    key.callAll(9, ms);
    const [permit] = key.take(1, ms + 50);
    key.refuse(permit, ms + 100, retryAfterMs);
  }

  test('sets a pace for ten minutes where it frees the key at once', () => {
    const key = rushed(1_000);
    for (const minutes of [0, 3, 6, 9]) {
      const calls = callsIn10s(key, 7_000 + minutes * MINUTE_MS);
      expect(calls).toBeGreaterThanOrEqual(75);
      expect(calls).toBeLessThanOrEqual(100);
    }
    expect(callsIn10s(key, 12 * MINUTE_MS)).toBeGreaterThan(200);
  });

  test('sets one where it says nothing, and comes again at that pace', () => {
    const key = rushed(0);
    expect(callsIn10s(key, MINUTE_MS)).toBeGreaterThan(200);
    rush(key, 3 * MINUTE_MS, 0);
    expect(callsIn10s(key, 5 * MINUTE_MS)).toBeLessThanOrEqual(100);
  });

  test('is remembered for a day: the next one lasts longer', () => {
    const key = rushed(1_000);
    callsIn10s(key, 12 * MINUTE_MS);
    rush(key, 20 * MINUTE_MS, 1_000);
    expect(callsIn10s(key, 38 * MINUTE_MS)).toBeLessThanOrEqual(100);
    expect(callsIn10s(key, 42 * MINUTE_MS)).toBeGreaterThan(200);
  });
});
