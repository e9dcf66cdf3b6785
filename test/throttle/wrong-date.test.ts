import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import type { AssumedPlan, Plan } from '../../src/plan.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { Report } from '../../src/throttle/ledger.ts';
import { readWindows } from '../../src/throttle/readings.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { simulate } from './simulation.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { StrictPlanOptions } from './strict-plan.ts';

/** A Date is one backend's, and its clock may be wrong; the limits are counted by a clock that all backends share. */

const MINUTE_MS = 60_000;
const AUTO: AssumedPlan = { ...PLANS.free, known: false };
const real = useRedis();

/** What the Date of each answer is off by. */
const dates: Record<string, (offMs: number) => () => number> = {
  one: (offMs) => each((answer) => (answer === 40 ? offMs : 0)),
  'one of ten': (offMs) => each((answer) => (answer % 10 === 7 ? offMs : 0)),
  'the first, and of one connection of ten': (offMs) => each((answer) => (answer % 400 < 40 ? offMs : 0)),
};

function each(offMs: (answer: number) => number): () => number {
  let answer = 0;
  return () => offMs(answer++);
}

interface Saturated {
  readonly upstream: StrictPlanOptions;
  readonly earlierMs?: readonly number[];
  readonly plan: AssumedPlan;
  readonly minutes: number;
  readonly ownAheadMs?: number;
  dateOffMs?(): number;
}

function saturate({ upstream, plan, minutes, earlierMs = [], ownAheadMs = 0, dateOffMs = () => 0 }: Saturated) {
  const rules = { plan, probeMs: 5_000 };
  const state = newLedgerState('first', rules);
  const { arrivals } = simulate({
    upstream,
    earlierMs,
    upstreamAheadMs: 0,
    replicasAheadMs: [ownAheadMs],
    durationMs: minutes * MINUTE_MS,
    wanted: 12,
    mostUnderWay: 12,
    exchange: (request, nowMs) => exchange(state, request, rules, nowMs),
    journey: () => ({ thereMs: 30, backMs: 30, fate: 'answered' }),
    dateOffMs,
    thinkMs: () => 20,
    timeoutMs: 5_000,
  });
  const believed = { perMinute: state.minute.limit, perDay: state.day.limit };
  const refused = arrivals.filter(({ status }) => status !== 200).length;
  return { served: arrivals.length - refused, refused, believed };
}

const cases = (['free', 'pro', 'business'] as const).flatMap((name) =>
  (['auto', 'configured'] as const).flatMap((how) =>
    (
      [
        { tells: 'minute', windows: 'fixed' },
        { tells: 'day', windows: 'sliding' },
        { tells: 'changing', windows: 'fixed' },
        { tells: 'changing', windows: 'sliding' },
      ] as const
    ).map((shape) => ({ name, how, ...shape })),
  ),
);

describe('where all clocks are right', () => {
  // The oldest of yesterday's calls leaves the day within two minutes, which a minute's reset would.
  test('a custom plan that was taken for another by the first answer is known by the next', () => {
    const result = saturate({
      upstream: { perMinute: 200, perDay: 5_000, windows: 'sliding', tells: 'day' },
      earlierMs: [86_400_000 - MINUTE_MS],
      plan: AUTO,
      minutes: 6,
    });
    expect(result.believed.perDay).toBe(5_000);
    expect(result.refused).toBeLessThan(10);
  });

  test.each<Plan>([
    { perMinute: 60, perDay: 300 },
    { perMinute: 100, perDay: 300 },
    { perMinute: 60, perDay: 60 },
  ])("a day of $perDay, which is a published plan's minute, is a day", (plan) => {
    const upstream = { ...plan, windows: 'fixed', tells: 'day', banAt: 3 } as const;
    const result = saturate({ upstream, plan: AUTO, minutes: 8 });
    expect(result).toMatchObject({ refused: 0, served: plan.perDay });
  });
});

// The simulation begins 47 seconds before noon, which such a clock takes for midnight.
test.each(['pro', 'business'] as const)(
  'a clock of ours that is half a day wrong does not hold a key of %s to the minute of Free',
  (name) => {
    const upstream = { ...PLANS[name], windows: 'fixed', tells: 'day', banAt: 3 } as const;
    const result = saturate({ upstream, plan: AUTO, minutes: 4, ownAheadMs: 43_200_000 });
    expect(result).toMatchObject({ refused: 0, believed: PLANS[name] });
    expect(result.served).toBeGreaterThan(2 * PLANS[name].perMinute);
  },
);

describe.each(Object.entries(dates))('where the Date of %s is wrong', (_which, dateOff) => {
  test.each(cases)(
    'a key of $name, $how, keeps and uses its plan by $windows windows, told of the $tells one',
    (given) => {
      const { name, how, tells, windows } = given;
      const plan: AssumedPlan = how === 'auto' ? AUTO : { ...PLANS[name], known: true };
      const upstream = { ...PLANS[name], tells, windows, banAt: 3 };
      const minutes = name === 'free' ? 6 : 3;
      const right = saturate({ upstream, plan, minutes });
      // Ours may be wrong as well, and then says nothing of theirs.
      for (const [offS, ownAheadMs] of [
        [-90, 0],
        [-7_200, 600_000],
        [7_200, 0],
      ] as const) {
        const wrong = saturate({ upstream, plan, minutes, ownAheadMs, dateOffMs: dateOff(offS * 1_000) });
        expect(wrong).toMatchObject({ refused: 0, believed: PLANS[name] });
        // Where nothing says that the first of all are wrong, Business may be taken for Free until a minute is over.
        const lostMinutes = ownAheadMs === 0 ? 0 : 1;
        expect(wrong.served).toBeGreaterThan(right.served * 0.9 - lostMinutes * PLANS[name].perMinute);
      }
    },
  );

  // The days are short, so that the test is; the minutes are those of Free, Pro and Business.
  test.each<Plan>([
    { perMinute: 60, perDay: 90 },
    { perMinute: 300, perDay: 450 },
    { perMinute: 1_000, perDay: 1_500 },
  ])('a day of $perDay calls that no header tells of is not overrun, at $perMinute a minute', (plan) => {
    const result = saturate({
      upstream: { ...plan, tells: 'minute', windows: 'fixed', banAt: 3 },
      plan: { ...plan, known: true },
      minutes: 10,
      dateOffMs: dateOff(-90_000),
    });
    expect(result).toMatchObject({ refused: 0, believed: plan });
    expect(result.served).toBeGreaterThan(plan.perDay * 0.98);
  });

  test.skipIf(!redisIsHere)('a key of Pro keeps and uses its plan in Redis', async () => {
    let nowMs = Date.UTC(2026, 10, 21, 9, 41, 7);
    const rules = { plan: AUTO, probeMs: 5_000 };
    const ledger = createRedisLedger({
      redis: real.redis,
      rules,
      nameOf: (key) => key,
      replica: 'one',
      now: () => nowMs,
    });
    const clock = createUpstreamClock({ elapsed: () => nowMs, now: () => nowMs });
    const upstream = createStrictPlan({ ...PLANS.pro, windows: 'fixed', tells: 'minute' });
    const offMs = dateOff(-90_000);
    const key = randomUUID();
    let standing = await ledger.exchange(key, { reports: [], wanted: 12 });
    for (const endMs = nowMs + 3 * MINUTE_MS; nowMs < endMs; nowMs += 1_000) {
      const reports = standing.grants.map((grant): Report => {
        const headers = upstream.arrive(nowMs).headers;
        const dated = { ...headers, dateMs: (headers.dateMs as number) + offMs() };
        clock.observe(dated.dateMs, 0);
        return {
          kind: 'answered',
          grant,
          readings: readWindows(dated, standing, { upstreamNowMs: clock.now(), nowMs }),
        };
      });
      standing = await ledger.exchange(key, { reports, wanted: 12 });
    }
    expect(new Set(upstream.arrivals.map(({ status }) => status))).toEqual(new Set([200]));
    expect(standing).toMatchObject({ minute: { limit: 300 }, day: { limit: 10_000 } });
    expect(upstream.arrivals.length).toBeGreaterThan(800);
  });
});
