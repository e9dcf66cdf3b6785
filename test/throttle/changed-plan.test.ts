import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import type { AssumedPlan, Plan } from '../../src/plan.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import type { Ledger, Report, Standing } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { readWindows } from '../../src/throttle/readings.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { StrictPlan } from './strict-plan.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MORNING = Date.UTC(2026, 10, 21, 9, 41, 7);
const AUTO: AssumedPlan = { ...PLANS.free, known: false };

const real = useRedis();

const makers = {
  memory: (rules: LedgerRules, now: () => number): Ledger =>
    createMemoryLedger({ rules, now, log: createMemoryLog().log }),
  Redis: (rules: LedgerRules, now: () => number): Ledger =>
    createRedisLedger({ redis: real.redis, rules, nameOf: (apiKey) => apiKey, replica: 'one', now }),
};

/** One key, of which somebody asks for as much as there is, or for one call now and then. */
function createKey(place: keyof typeof makers, plan: AssumedPlan, startMs = MORNING) {
  let nowMs = startMs;
  const rules = { plan, probeMs: 5_000 };
  const ledger = makers[place](rules, () => nowMs);
  const clock = createUpstreamClock({ elapsed: () => nowMs, now: () => nowMs });
  const name = randomUUID();
  return {
    skip(forMs: number): void {
      nowMs += forMs;
    },
    /** Asks for so many calls every so often. */
    async ask(upstream: StrictPlan, { minutes, everyMs = 500, wanted = 12 }: Asked) {
      const endMs = nowMs + minutes * MINUTE_MS;
      let standing = await ledger.exchange(name, { reports: [], wanted: 0 });
      const calls = { served: 0, refused: 0 };
      for (; nowMs < endMs; nowMs += everyMs) {
        standing = await ledger.exchange(name, { reports: [], wanted });
        const reports = standing.grants.map((grant): Report => {
          const { status, headers } = upstream.arrive(nowMs);
          calls[status === 200 ? 'served' : 'refused'] += 1;
          clock.observe(headers.dateMs as number, 0);
          const readings = readWindows(headers, standing, { upstreamNowMs: clock.now(), nowMs });
          if (status === 200) return { kind: 'answered', grant, readings };
          const refusal = { retryAfterMs: headers.retryAfterMs ?? 0, ban: false, jitter: 0 };
          return { kind: 'refused', grant, readings, refusal };
        });
        if (reports.length > 0) standing = await ledger.exchange(name, { reports, wanted: 0 });
      }
      return { ...calls, believed: planOf(standing), day: standing.day };
    },
  };
}

interface Asked {
  readonly minutes: number;
  /** Default: 500. */
  readonly everyMs?: number;
  /** Default: 12, more than any published plan holds. */
  readonly wanted?: number;
}

function planOf({ minute, day }: Standing): Plan {
  return { perMinute: minute.limit, perDay: day.limit };
}

const ways = (['memory', 'Redis'] as const).flatMap((place) =>
  (['fixed', 'sliding'] as const).flatMap((windows) =>
    (['minute', 'changing'] as const).map((tells) => ({ place, windows, tells })),
  ),
);

describe.each(ways)(
  'in $place, with $windows windows and headers of the $tells window',
  ({ place, windows, tells }) => {
    const skipped = place === 'Redis' && !redisIsHere;
    const upstreamOf = (plan: Plan) => createStrictPlan({ ...plan, windows, tells });

    test.skipIf(skipped)(
      'a key that goes from Free to Business has its calls at once, and what it spent of the day stays',
      async () => {
        const key = createKey(place, AUTO);
        const before = await key.ask(upstreamOf(PLANS.free), { minutes: 3 });
        const after = await key.ask(upstreamOf(PLANS.business), { minutes: 5 });
        expect(after).toMatchObject({ refused: 0, believed: PLANS.business });
        expect(after.served).toBeGreaterThan(3_000);
        expect(after.day.used).toBe(before.served + after.served);
      },
    );

    test.skipIf(skipped)('a key of Business that was said to be Free has its calls after some minutes', async () => {
      const key = createKey(place, { ...PLANS.free, known: true });
      const upstream = upstreamOf(PLANS.business);
      await key.ask(upstream, { minutes: 3 });
      const after = await key.ask(upstream, { minutes: 5 });
      expect(after).toMatchObject({ refused: 0, believed: PLANS.business });
      expect(after.served).toBeGreaterThan(4_000);
    });

    test.skipIf(skipped)('a custom plan whose minute is raised keeps its day', async () => {
      const key = createKey(place, { perMinute: 1_100, perDay: 1_000_000, known: true });
      await key.ask(upstreamOf({ perMinute: 1_100, perDay: 1_000_000 }), { minutes: 2 });
      const after = await key.ask(upstreamOf({ perMinute: 1_200, perDay: 1_000_000 }), { minutes: 2 });
      expect(after).toMatchObject({ refused: 0, believed: { perMinute: 1_200, perDay: 1_000_000 } });
    });
  },
);

const days = (['fixed', 'sliding'] as const).flatMap((windows) =>
  (['day', 'changing'] as const).flatMap((tells) =>
    [
      { key: 'is asked once a minute', everyMs: MINUTE_MS, wanted: 1, minutes: 40 },
      { key: 'is asked for all that there is', everyMs: 500, wanted: 12, minutes: 25 },
    ].map((asked) => ({ windows, tells, ...asked })),
  ),
);

// Its day ends as a minute does, and a day that slides ends again with each call of the day before.
test.each(days)(
  'a Free key that $key stays Free when its day ends, with $windows windows and headers of the $tells window',
  async ({ windows, tells, ...asked }) => {
    const key = createKey('memory', AUTO, Date.UTC(2026, 10, 20, 23, 42, 7));
    const upstream = createStrictPlan({ ...PLANS.free, windows, tells });
    for (let day = 0; day < 3; day += 1) {
      expect(await key.ask(upstream, asked)).toMatchObject({ refused: 0, believed: PLANS.free });
      key.skip(DAY_MS - asked.minutes * MINUTE_MS);
    }
  },
);
