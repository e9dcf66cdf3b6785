import { describe, expect, test } from 'vitest';
import { checkHistory } from './check-history.ts';
import type { HistoryRules } from './check-history.ts';
import type { Arrival, ClientRequest, History, Settlement } from './history.ts';

const START = Date.UTC(2026, 10, 21, 12);
const rules: HistoryRules = { windows: 'fixed', perMinute: 3, perDay: 10 };

const arrival = (atMs: number, more: Partial<Arrival> = {}): Arrival => ({
  key: 'a key',
  atMs: START + atMs,
  answeredAtMs: START + atMs + 20,
  method: 'GET',
  name: undefined,
  status: 200,
  retryAfterMs: undefined,
  ...more,
});
const added = (atMs: number, name: string) => arrival(atMs, { method: 'POST', name, status: 201 });
const refused = (atMs: number, retryAfterMs: number) => arrival(atMs, { status: 429, retryAfterMs });
const request = (name: string, ...outcomes: Settlement['outcome'][]): ClientRequest => ({
  key: 'a key',
  name,
  startedMs: 0,
  settlements: outcomes.map((outcome) => ({ outcome, atMs: 1, code: outcome === 'failed' ? 'FORBIDDEN' : undefined })),
});
const check = (history: Partial<History>, more: Partial<HistoryRules> = {}) =>
  checkHistory({ arrivals: [], requests: [], ...history }, { ...rules, ...more });

describe('the plan', () => {
  const across = [50_000, 55_000, 59_999, 60_000, 65_000, 69_000].map((atMs) => arrival(atMs));

  test('is kept by full fixed windows, though a sliding one would be overrun', () => {
    expect(check({ arrivals: across })).toEqual([]);
    expect(check({ arrivals: across }, { windows: 'sliding' })).toEqual([
      'a key: the minute up to 2026-11-21T12:01:00.000Z holds 4 arrivals, 3 are allowed',
    ]);
  });

  test('is broken by one arrival too many in a fixed window, in whatever order they were written down', () => {
    const arrivals = [3_000, 1_000, 59_999, 0].map((atMs) => arrival(atMs));
    expect(check({ arrivals })).toEqual([
      'a key: the minute up to 2026-11-21T12:00:59.999Z holds 4 arrivals, 3 are allowed',
    ]);
  });

  test('lets a call follow when the first one is a whole sliding window ago, and not a millisecond sooner', () => {
    const early = (lastMs: number) => [0, 10, 20, lastMs].map((atMs) => arrival(atMs));
    expect(check({ arrivals: early(60_000) }, { windows: 'sliding' })).toEqual([]);
    expect(check({ arrivals: early(59_999) }, { windows: 'sliding' })).toHaveLength(1);
  });

  test('holds for the day as well', () => {
    const arrivals = Array.from({ length: 11 }, (_, index) => arrival(index * 61_000));
    expect(check({ arrivals })).toEqual([
      'a key: the day up to 2026-11-21T12:10:10.000Z holds 11 arrivals, 10 are allowed',
    ]);
  });

  test("is each key's own", () => {
    const arrivals = [0, 1, 2, 3, 4].map((atMs) => arrival(atMs, { key: `key ${atMs % 2}` }));
    expect(check({ arrivals })).toEqual([]);
  });
});

describe('after a 429', () => {
  test('what was in flight may arrive, and nothing else before its time is over', () => {
    expect(check({ arrivals: [refused(0, 10_000), arrival(500), arrival(10_020)] })).toEqual([]);
    expect(check({ arrivals: [refused(0, 10_000), arrival(530), arrival(10_010)] })).toEqual([
      "a key: 2 calls arrived before a 429's Retry-After was over",
    ]);
  });

  test('another key may go on', () => {
    expect(check({ arrivals: [refused(0, 10_000), arrival(5_000, { key: 'another' })] })).toEqual([]);
  });
});

describe('a request', () => {
  test.each([
    ['settles once', request('a', 'created'), [added(0, 'a')], []],
    ['must not be left open', request('a'), [added(0, 'a')], ['a: settled 0 times']],
    ['must not settle twice', request('a', 'created', 'refused'), [added(0, 'a')], ['a: settled 2 times']],
    ['must not be doubled', request('a', 'created'), [added(0, 'a'), added(1, 'a')], ['a: added 2 times']],
    ['must not be lost', request('a', 'created'), [], ['a: created, but never added']],
    ['must not happen once it is refused', request('a', 'refused'), [added(0, 'a')], ['a: refused, but added']],
    ['must not fail', request('a', 'failed'), [], ['a: failed with FORBIDDEN']],
    ['may have happened when nobody knows', request('a', 'unknown'), [added(0, 'a')], []],
    ['may not have happened when nobody knows', request('a', 'unknown'), [], []],
  ] as const)('%s', (_name, one, arrivals, problems) => {
    expect(check({ arrivals, requests: [one] })).toEqual(problems);
  });

  test('may be sent again after a 429, which is no addition', () => {
    const arrivals = [arrival(0, { method: 'POST', name: 'a', status: 429, retryAfterMs: 1_000 }), added(2_000, 'a')];
    expect(check({ arrivals, requests: [request('a', 'created')] })).toEqual([]);
  });

  test('is behind every addition', () => {
    expect(check({ arrivals: [added(0, 'a')] })).toEqual(['a: added, but nobody asked for it']);
  });
});

test('tokens add up', () => {
  expect(check({ tokens: { granted: 9, sent: 6, returned: 2, expired: 1 } })).toEqual([]);
  expect(check({ tokens: { granted: 9, sent: 6, returned: 2, expired: 0 } })).toEqual([
    '9 tokens granted, but 6 sent + 2 returned + 0 expired',
  ]);
});
