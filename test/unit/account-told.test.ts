import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { createKey, sum } from './account-key.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

describe('own and foreign calls', () => {
  test('a header that counts fewer calls than petql frees none of them', () => {
    const key = createKey();
    key.call(30, 0);
    key.call(1, 100, { limit: 60, used: 5, resetInMs: 50_000 });
    expect(key.take(60, 1_000)).toHaveLength(29);
  });

  test('what a header counts beyond the own calls is used by others', () => {
    const key = createKey();
    key.call(10, 0, { limit: 60, used: 40, resetInMs: 50_000 });
    expect(key.take(60, 1_000)).toHaveLength(20);
  });

  test('an older header does not lower the foreign calls that a newer one has shown', () => {
    const key = createKey();
    const [first, second] = key.take(2, 0);
    if (!first || !second) throw new Error('expected two permits');
    key.succeed(second, 100, { limit: 60, used: 42, resetInMs: 50_000 });
    key.succeed(first, 101, { limit: 60, used: 2, resetInMs: 50_000 });
    expect(key.take(60, 1_000)).toHaveLength(18);
  });

  test('the own ones use their share of the plan, and less where others leave less', () => {
    expect(createKey({ planShare: 50 }).take(60, 0)).toHaveLength(30);
    const key = createKey({ planShare: 50 });
    key.call(10, 0, { limit: 60, used: 55, resetInMs: 50_000 });
    expect(key.take(60, 1_000)).toHaveLength(5);
  });

  test('foreign calls are void at the told reset, and calls by trust use what it has freed', () => {
    const key = createKey();
    key.call(1, 0, { limit: 60, used: 40, resetInMs: 20_000 });
    const rounds = key.callAll(60, 22_000);
    expect(rounds[0]).toBe(1);
    expect(sum(rounds)).toBe(59);
  });

  test('without a told reset they are void after a minute', () => {
    const key = createKey();
    key.call(1, 0, { limit: 60, used: 40 });
    expect(key.call(60, 59_000)).toBe(20);
    expect(sum(key.callAll(60, 62_000))).toBe(40);
  });

  test('where a header alone holds the key, one call finds out after ten minutes', () => {
    const key = createKey();
    key.call(1, 0, { limit: 1_000, used: 1_000, resetInMs: 10 * HOUR_MS });
    expect(key.take(5, 10 * MINUTE_MS - 1)).toEqual([]);
    expect(key.call(5, 10 * MINUTE_MS, { limit: 1_000, used: 1_000, resetInMs: 10 * HOUR_MS - 600_000 })).toBe(1);
    expect(key.take(5, 20 * MINUTE_MS - 1)).toEqual([]);
  });
});

test('a response of an earlier window says nothing of this one', () => {
  const key = createKey();
  key.call(1, 0, { limit: 60, used: 1, resetInMs: 30_000 });
  const [late] = key.take(1, 100);
  if (!late) throw new Error('expected a permit');
  key.call(1, 32_000, { limit: 60, used: 1, resetInMs: 58_000 });
  key.succeed(late, 33_000, { limit: 60, used: 60, resetInMs: -3_000 });
  expect(sum(key.callAll(60, 34_000))).toBe(58);
});

describe('a told reset that is over', () => {
  test('may have freed the whole count: one call finds out, and its response frees the rest', () => {
    const key = createKey();
    key.call(60, 0, { limit: 60, used: 60, resetInMs: 30_000 });
    expect(key.call(60, 32_000, { limit: 60, used: 1, resetInMs: 58_000 })).toBe(1);
    expect(sum(key.callAll(60, 32_100))).toBe(59);
  });

  test('may have freed a part only: then the count holds, and the next reset casts no doubt on it', () => {
    const key = createKey();
    key.call(60, 0, { limit: 60, used: 60, resetInMs: 30_000 });
    expect(key.call(60, 32_000, { limit: 60, used: 60, resetInMs: 10_000 })).toBe(1);
    expect(key.take(60, 32_100)).toEqual([]);
    expect(key.take(60, 44_000)).toEqual([]);
  });
});

test('a limit of 1,000 that may be a minute’s or a day’s is proved call by call', () => {
  const key = createKey({ plan: { ...PLANS.free, known: false } });
  key.call(1, 0, { limit: 1_000, used: 1, resetInMs: 20_000 });
  expect(key.callAll(200, 100).slice(0, 4)).toEqual([59, 1, 2, 4]);
});

test('where a limit that may be another window’s holds the key, calls find out after ten minutes', () => {
  const key = createKey({ plan: { ...PLANS.free, known: false } });
  key.call(50, 0, { limit: 50, used: 50, resetInMs: 10 * HOUR_MS });
  expect(key.take(5, 10 * MINUTE_MS - 1)).toEqual([]);
  expect(key.take(5, 10 * MINUTE_MS)).toHaveLength(1);
});

describe('the Retry-After of a 429', () => {
  test('outvotes the reset of its headers', () => {
    const key = createKey();
    const [permit] = key.take(1, 0);
    key.refuse(permit, 100, 30_000, { limit: 1_000, used: 1_000, resetInMs: 10 * HOUR_MS });
    expect(key.take(1, 11 * MINUTE_MS)).toHaveLength(1);
  });

  test('of hours is the end of the day, where no header says so', () => {
    const key = createKey({ plan: { perMinute: 60, perDay: 20, known: true } });
    key.call(19, 0);
    const [permit] = key.take(1, 10);
    key.refuse(permit, 100, 2 * HOUR_MS);
    expect(key.take(5, 2 * HOUR_MS)).toEqual([]);
    expect(key.take(5, 2 * HOUR_MS + 2_000)).toHaveLength(1);
  });
});

test('429s in a row without it pause the key for 6 s, 11 s, 21 s, and 15 minutes at most', () => {
  const key = createKey();
  const pauses: number[] = [];
  for (let ms = 0; pauses.length < 9; ms += 1_000) {
    const [permit] = key.take(1, ms);
    if (!permit) continue;
    key.refuse(permit, ms, 0);
    pauses.push(ms);
  }
  const seconds = pauses.slice(1).map((ms, index) => (ms - (pauses[index] ?? 0)) / 1_000);
  expect(seconds).toEqual([6, 11, 21, 41, 81, 161, 321, 641]);
});

test('a success of a call that was granted in the millisecond of a 429 lets no second probe go', () => {
  const key = createKey({ isTrusted: false });
  key.call(1, 0);
  const [refused, late] = key.take(2, 1_000);
  if (!late) throw new Error('expected two permits');
  key.refuse(refused, 1_000, 0);
  key.succeed(late, 1_300);
  // What the 429 has taught is forgotten.
  expect(key.take(3, 100_000_000)).toHaveLength(1);
});

test('a success of a call that was sent before a 429 does not shorten the next pause', () => {
  const key = createKey();
  const [refused, late] = key.take(2, 0);
  if (!late) throw new Error('expected two permits');
  key.refuse(refused, 100, 0);
  key.succeed(late, 200);
  key.refuse(key.take(1, 7_000)[0], 7_000, 0);
  expect(key.take(1, 17_000)).toEqual([]);
  expect(key.take(1, 18_000)).toHaveLength(1);
});
