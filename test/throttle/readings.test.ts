import { describe, expect, test } from 'vitest';
import { readWindows } from '../../src/throttle/readings.ts';
import type { KnownPlan } from '../../src/throttle/readings.ts';
import type { WindowStanding } from '../../src/throttle/ledger.ts';
import type { RateLimitHeaders } from '../../src/upstream/rate-limit-headers.ts';

const NOW = Date.UTC(2026, 10, 21, 12, 0, 20);
const times = { upstreamNowMs: NOW, nowMs: NOW };
const inSeconds = (seconds: number) => NOW / 1000 + seconds;

function windowOf(limit: number, resetId = 0): WindowStanding {
  return { mode: resetId > 0 ? 'told' : 'counted', limit, used: 0, remaining: limit, resetInMs: 0, resetId };
}

function known(perMinute: number, perDay: number, more: Partial<KnownPlan> = {}): KnownPlan {
  return { minute: windowOf(perMinute), day: windowOf(perDay), planKnown: true, ...more };
}

const free = known(60, 1_000);
const business = known(1_000, 100_000);
const assumed = known(60, 1_000, { planKnown: false });

function headers(limit?: number, remaining?: number, reset?: number): RateLimitHeaders {
  return { limit, remaining, reset, retryAfterMs: undefined, dateMs: undefined };
}

const windowsOf = (...given: Parameters<typeof readWindows>) => readWindows(...given).map(({ window }) => window);

describe('which window the headers describe', () => {
  test.each<[string, RateLimitHeaders, KnownPlan, string[]]>([
    ['a reset more than two minutes away is the day', headers(700, 10, inSeconds(121)), free, ['day']],
    ["so is one with the limit of the plan's minute", headers(60, 10, inSeconds(7_000)), free, ['day']],
    [
      "so is one with the limit of a plan's minute, while none is known",
      headers(300, 10, inSeconds(7_000)),
      assumed,
      ['day'],
    ],
    ["1,000, which is a plan's day as well, is the day", headers(1_000, 10, inSeconds(121)), business, ['day']],
    [
      'but for the reset that was told of the minute',
      headers(1_000, 10, inSeconds(121)),
      known(1_000, 100_000, { minute: windowOf(1_000, NOW + 121_000) }),
      ['minute'],
    ],
    [
      'and for that of the minute after it',
      headers(1_000, 999, inSeconds(181)),
      known(1_000, 100_000, { minute: windowOf(1_000, NOW + 121_000) }),
      ['minute'],
    ],
    [
      "the limit of the plan's minute is the minute while the clocks differ",
      headers(60, 10, inSeconds(66)),
      free,
      ['minute'],
    ],
    ["so is that of another plan's", headers(300, 299, inSeconds(66)), assumed, ['minute']],
    ["the limit of the plan's day is the day before its last minute", headers(1_000, 10, inSeconds(66)), free, ['day']],
    ["the limit of the plan's minute is the minute", headers(60, 10, inSeconds(40)), free, ['minute']],
    ["the limit of the plan's day is the day, at the end of it too", headers(1_000, 10, inSeconds(40)), free, ['day']],
    [
      "1,000 is the minute of whoever is known to have Business's",
      headers(1_000, 10, inSeconds(40)),
      known(1_000, 100_000),
      ['minute'],
    ],
    [
      "a day's reset that is known is the day, whatever the limit",
      headers(700, 10, inSeconds(40)),
      known(60, 1_000, { day: windowOf(1_000, NOW + 40_000) }),
      ['day'],
    ],
    ['any other limit is the minute', headers(700, 10, inSeconds(40)), free, ['minute']],
    ['no limit at all is the minute', headers(undefined, 10, inSeconds(40)), free, ['minute']],
  ])('%s', (_name, given, plan, windows) => {
    expect(windowsOf(given, plan, times)).toEqual(windows);
  });

  test.each<[string, RateLimitHeaders, KnownPlan, string[]]>([
    ["the limit of the plan's minute is the minute", headers(60, 10, inSeconds(7_000)), free, ['minute']],
    ["so is that of a plan's, while none is known", headers(300, 10, inSeconds(7_000)), assumed, ['minute']],
    [
      'the limit of a minute that is no published one is the day',
      headers(200, 10, inSeconds(7_000)),
      known(200, 1e6),
      ['day'],
    ],
    // Read as the minute's before the plan was known.
    [
      'the reset that was told of a minute which is no longer told is the day',
      headers(700, 10, inSeconds(7_000)),
      known(60, 1_000, { minute: { ...windowOf(60, NOW + 7_000_000), mode: 'unknown' } }),
      ['day'],
    ],
  ])('however far away its reset seems where the clocks differ, %s', (_name, given, plan, windows) => {
    expect(windowsOf(given, plan, { ...times, nowMs: NOW + 3_600_000 })).toEqual(windows);
  });

  describe('1,000 where the plan is not known', () => {
    const told = (more: Partial<KnownPlan> = {}) =>
      known(60, 1_000, { planKnown: false, minute: windowOf(60, NOW + 40_000), ...more });
    const limitsOf = (...given: Parameters<typeof readWindows>) =>
      readWindows(...given).map(({ window, limit, otherLimit }) => ({ window, limit, otherLimit }));
    const either = [{ window: 'minute', limit: 1_000, otherLimit: undefined }];
    const minute = [{ window: 'minute', limit: 1_000, otherLimit: 100_000 }];

    test.each<[string, RateLimitHeaders, KnownPlan, typeof either | typeof minute]>([
      ['may be either', headers(1_000, 900, inSeconds(40)), assumed, either],
      ['may be either while the clocks differ', headers(1_000, 999, inSeconds(66)), assumed, either],
      ['may be either at the first call', headers(1_000, 999, inSeconds(40)), assumed, either],
      ['may be either as long as all are in it', headers(1_000, 900, inSeconds(40)), told({ answered: 100 }), either],
      [
        'is the minute where calls are no longer in it',
        headers(1_000, 901, inSeconds(40)),
        told({ answered: 100 }),
        minute,
      ],
      // The day after one that has ended ends a day later.
      ['is the minute that begins with this call after another', headers(1_000, 999, inSeconds(100)), told(), minute],
      // Calls that came once a minute yesterday leave a day that slides once a minute.
      ['may be either where others were in it before', headers(1_000, 900, inSeconds(100)), told(), either],
    ])('%s', (_name, given, plan, expected) => {
      expect(limitsOf(given, plan, times)).toEqual(expected);
    });

    test.each([10_000, 100_000])('and %i, the day of a larger plan, may be either', (limit) => {
      expect(readWindows(headers(limit, 9_000, inSeconds(40)), assumed, times)).toMatchObject([
        { window: 'minute', remaining: 9_000, otherLimit: undefined },
      ]);
    });

    test('holds back until its reset, which may be further away than a minute is long', () => {
      expect(readWindows(headers(1_000, 0, inSeconds(110)), assumed, times)).toMatchObject([{ resetInMs: 110_000 }]);
    });
  });

  describe("of what has the limit of the plan's day and resets about a minute from now", () => {
    const MINUTE_MS = 60_000;
    const resetId = NOW + 40_000;
    const counted = { ...windowOf(60), used: 7 };
    const dayOver = (earlierMs: number): WindowStanding => {
      return { ...windowOf(1_000, resetId - earlierMs), mode: 'unknown' };
    };
    const notBegun: WindowStanding = { ...windowOf(1_000), mode: 'unknown' };
    test.each<[string, number, WindowStanding, string]>([
      ['no more is used than in the last minute: the minute of another plan', 993, windowOf(1_000), 'minute'],
      ['more is used: the day, which began before that', 992, windowOf(1_000), 'day'],
      ['nobody has told of anything yet: the day', 999, notBegun, 'day'],
      ['what was taken for the day ended a minute ago: a minute', 999, dayOver(MINUTE_MS), 'minute'],
      ['it ended some calls ago: a minute that slides', 999, dayOver(7_000), 'minute'],
      ['it slides, and has more in it than the last minute: the day', 992, dayOver(MINUTE_MS), 'day'],
      ['it ended a day ago: the day', 999, dayOver(1_440 * MINUTE_MS), 'day'],
      ['it is the reset that was told of the day', 999, windowOf(1_000, resetId), 'day'],
    ])('%s', (_name, remaining, day, window) => {
      const plan = known(60, 1_000, { minute: counted, day });
      expect(windowsOf(headers(1_000, remaining, inSeconds(40)), plan, times)).toEqual([window]);
    });
    test('a first call of another plan is known by itself, where nothing is known of the minute', () => {
      const minute: WindowStanding = { ...windowOf(60, NOW), mode: 'unknown' };
      const plan = known(60, 1_000, { minute });
      expect(readWindows(headers(1_000, 999, inSeconds(40)), plan, times)).toMatchObject([
        { window: 'minute', limit: 1_000, otherLimit: 100_000 },
      ]);
    });
  });

  test.each([
    ["the answer's own", { dateMs: NOW + 90_000 }, times],
    ['our own', {}, { ...times, nowMs: NOW + 90_000 }],
  ])('a reset is not surely the day that is two minutes away or less by %s clock', (_whose, dated, now) => {
    const given = { ...headers(1_000, 10, inSeconds(140)), ...dated };
    expect(windowsOf(given, business, times)).toEqual('dateMs' in dated ? ['minute'] : ['day']);
    expect(windowsOf(given, business, now)).toEqual(['minute']);
  });

  test('a reset in the far future names no window', () => {
    expect(readWindows(headers(1_000, 10, inSeconds(10_000_000)), free, times)).toMatchObject([
      { window: 'day', remaining: 10, resetInMs: 86_400_000, resetId: 0 },
    ]);
  });

  test('a limit says more than the reset where the clock of the upstream is not known', () => {
    const blind = { upstreamNowMs: undefined, nowMs: NOW - 3_600_000 };
    expect(readWindows(headers(60, 10, inSeconds(40)), free, blind)).toMatchObject([
      { window: 'minute', resetInMs: 60_000 },
    ]);
  });
});

describe('the reset', () => {
  test.each([
    ['in seconds', inSeconds(40)],
    ['in milliseconds', NOW + 40_000],
    ['in seconds from now', 40],
  ])('may come %s', (_name, reset) => {
    expect(readWindows(headers(60, 10, reset), free, times)).toMatchObject([
      { resetInMs: 40_000, resetId: NOW + 40_000 },
    ]);
  });
  test('counts by the clock of the upstream', () => {
    const ahead = { upstreamNowMs: NOW, nowMs: NOW + 3_600_000 };
    expect(readWindows(headers(60, 10, inSeconds(40)), free, ahead)).toMatchObject([{ resetInMs: 40_000 }]);
  });
  test('that is over tells nothing', () => {
    expect(readWindows(headers(60, 10, inSeconds(-2)), free, times)).toEqual([]);
  });
  // Otherwise a window that slides is not known just when its first calls are free again, and ten seconds are lost.
  test('that is just over, since it was cut to a whole second, still tells what is left', () => {
    expect(readWindows(headers(60, 10, inSeconds(-1)), free, times)).toMatchObject([{ remaining: 10, resetInMs: 0 }]);
  });
  test('of a day is a day away at most', () => {
    expect(readWindows(headers(1_000, 10, inSeconds(88_000)), free, times)).toMatchObject([{ resetInMs: 86_400_000 }]);
  });
  test('that is missing is a whole window away', () => {
    expect(readWindows(headers(60, 10), free, times)).toMatchObject([{ window: 'minute', resetInMs: 60_000 }]);
    expect(readWindows(headers(1_000, 10), free, times)).toMatchObject([{ window: 'day', resetInMs: 86_400_000 }]);
  });
});

describe('the plan', () => {
  test.each([
    [60, 1_000],
    [300, 10_000],
    [1_500, 100_000],
    [30, 1_000],
  ])('of %i a minute has %i a day, as far as the minute tells', (perMinute, perDay) => {
    const [reading] = readWindows(headers(perMinute, 1, inSeconds(10)), assumed, times);
    expect(reading).toMatchObject({ window: 'minute', limit: perMinute, otherLimit: perDay });
  });
  test('that is known already keeps its other window', () => {
    expect(readWindows(headers(60, 1, inSeconds(10)), known(60, 5_000), times)).toMatchObject([
      { otherLimit: undefined },
    ]);
  });
  test.each([
    ['raised', 6_000, known(5_000, 1_000_000), 1_000_000],
    ['lowered', 4_000, known(5_000, 1_000_000), 1_000_000],
    ['raised beyond a published plan', 1_500, known(300, 10_000), 100_000],
    ['raised beyond a published plan, of which the day was larger', 1_500, known(300, 500_000), 500_000],
    ['lowered below a published plan', 500, known(5_000, 1_000_000), 10_000],
    ['lowered below a published plan, of which the day was smaller', 500, known(5_000, 9_000), 9_000],
    ["a published plan's", 1_000, known(5_000, 1_000_000), 100_000],
  ])('whose minute is %s has the day that is known as far as that says nothing of it', (_name, limit, plan, perDay) => {
    const [reading] = readWindows(headers(limit, 1, inSeconds(10)), plan, times);
    expect(reading).toMatchObject({ window: 'minute', limit, otherLimit: perDay });
  });
  test('whose day is raised keeps the minute that is known', () => {
    const [reading] = readWindows(headers(2_000_000, 1, inSeconds(1_000)), known(5_000, 1_000_000), times);
    expect(reading).toMatchObject({ window: 'day', limit: 2_000_000, otherLimit: 5_000 });
  });
  test('shows in the day, too', () => {
    expect(readWindows(headers(10_000, 1, inSeconds(1_000)), assumed, times)).toMatchObject([
      { window: 'day', limit: 10_000, otherLimit: 300 },
    ]);
  });
});

test.each([
  ['no remaining', headers(60, undefined, inSeconds(10))],
  // Taken for all that there is, each answer would say anew that nothing is spent.
  ['more remaining than the limit', headers(60, 999_999_999, inSeconds(10))],
  ['more remaining than the plan has, and no limit', headers(undefined, 61, inSeconds(10))],
  ['a limit of 0, which is what a caller without a plan is told', headers(0, 0, inSeconds(0))],
  ['nothing at all', headers()],
])('%s gives no reading', (_name, given) => {
  expect(readWindows(given, free, times)).toEqual([]);
});
