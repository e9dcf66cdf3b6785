import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readRateLimitHeaders } from '../../src/upstream/rate-limit-headers.ts';

const NOW = Date.parse('Sat, 21 Nov 2026 12:00:00 GMT');

test('every header is read', () => {
  const headers = {
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': '1795262460',
    'retry-after': '12',
    date: 'Sat, 21 Nov 2026 11:59:30 GMT',
  };
  expect(readRateLimitHeaders(headers, NOW)).toEqual({
    limit: 60,
    remaining: 0,
    reset: 1_795_262_460,
    retryAfterMs: 12_000,
    dateMs: NOW - 30_000,
  });
});

describe('Retry-After as a date', () => {
  const retryAt = 'Sat, 21 Nov 2026 12:00:10 GMT';
  test('counts from the upstream clock', () => {
    const { retryAfterMs } = readRateLimitHeaders(
      { 'retry-after': retryAt, date: 'Sat, 21 Nov 2026 12:00:04 GMT' },
      NOW + 3_600_000,
    );
    expect(retryAfterMs).toBe(6_000);
  });
  test('counts from our own clock where there is no Date', () => {
    expect(readRateLimitHeaders({ 'retry-after': retryAt }, NOW).retryAfterMs).toBe(10_000);
  });
  test('in the past is no wait', () => {
    expect(readRateLimitHeaders({ 'retry-after': retryAt }, NOW + 60_000).retryAfterMs).toBe(0);
  });
});

test.each(['-1', '1e3', 'abc', '', '99999999999999999999', '0x10', '∞', '1.', '.5', '1.5.2'])(
  'the value %j makes no sense and is as good as none',
  (value) => {
    const { limit, remaining, reset, retryAfterMs } = readRateLimitHeaders(
      { 'x-ratelimit-limit': value, 'x-ratelimit-remaining': value, 'x-ratelimit-reset': value, 'retry-after': value },
      NOW,
    );
    expect([limit, remaining, reset, retryAfterMs]).toEqual([undefined, undefined, undefined, undefined]);
  },
);

test.each(['1.5', '60, 60'])('no number of calls is %j', (value) => {
  const { limit, remaining, reset } = readRateLimitHeaders(
    { 'x-ratelimit-limit': value, 'x-ratelimit-remaining': value, 'x-ratelimit-reset': value },
    NOW,
  );
  expect([limit, remaining, reset]).toEqual([undefined, undefined, undefined]);
});

test.each<[string | string[], number]>([
  ['35.0', 35_000],
  ['34.2', 35_000],
  ['0.001', 1_000],
  ['1, 35', 35_000],
  [['1', '35'], 35_000],
  [['soon', '35'], 35_000],
  [['2', 'Sat, 21 Nov 2026 12:00:10 GMT'], 10_000],
  ['2, Sat, 21 Nov 2026 12:00:10 GMT', 10_000],
  ['Saturday, 21-Nov-26 12:00:10 GMT, Sat, 21 Nov 2026 12:04:00 GMT', 240_000],
])('of Retry-After %j the longest wait is kept, to the next second', (value, waitMs) => {
  expect(readRateLimitHeaders({ 'retry-after': value }, NOW).retryAfterMs).toBe(waitMs);
});

test('a header that comes twice counts when both agree', () => {
  expect(readRateLimitHeaders({ 'x-ratelimit-limit': ['60', '60'] }, NOW).limit).toBe(60);
  expect(readRateLimitHeaders({ 'x-ratelimit-limit': ['60', '300'] }, NOW).limit).toBeUndefined();
});

test('no header makes it throw, or gives a number that is not whole and not negative', () => {
  const value = fc.oneof(fc.string(), fc.array(fc.string(), { maxLength: 3 }), fc.constant(undefined));
  const headers = fc.record({
    'x-ratelimit-limit': value,
    'x-ratelimit-remaining': value,
    'x-ratelimit-reset': value,
    'retry-after': value,
    date: value,
  });
  fc.assert(
    fc.property(headers, (given) =>
      Object.values(readRateLimitHeaders(given, NOW)).every(
        (number) => number === undefined || Number.isSafeInteger(number),
      ),
    ),
  );
});
