import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import type { Ledger, Report, Standing } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { readWindows } from '../../src/throttle/readings.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { createStrictPlan } from './strict-plan.ts';

const rules = { plan: { ...PLANS.free, known: false }, probeMs: 5_000 };

const real = useRedis();

const makers = {
  memory: (now: () => number): Ledger => createMemoryLedger({ rules, now, log: createMemoryLog().log }),
  Redis: (now: () => number): Ledger =>
    createRedisLedger({ redis: real.redis, rules, nameOf: (apiKey) => apiKey, replica: 'one', now }),
};

const cases = (['memory', 'Redis'] as const).flatMap((place) =>
  (['free', 'pro', 'business'] as const).flatMap((plan) =>
    [1_000, 7_000, 45_000].flatMap((everyMs) =>
      // A proxy in front of the service sets Date by its own clock.
      [0, 6].map((behindS) => ({ place, plan, everyMs, behindS })),
    ),
  ),
);

const title =
  'the $plan plan is known in $place after two minutes of calls $everyMs ms apart, by a Date $behindS s behind';

test.each(cases)(title, async (given) => {
  const { place, plan, everyMs, behindS } = given;
  if (place === 'Redis' && !redisIsHere) return;
  let nowMs = Date.UTC(2026, 10, 21, 9, 41, 7);
  const ledger = makers[place](() => nowMs);
  const upstream = createStrictPlan({ ...PLANS[plan], windows: 'fixed', tells: 'minute' });
  const key = randomUUID();
  const endMs = nowMs + 180_000;
  let standing: Standing | undefined;
  for (; nowMs < endMs; nowMs += everyMs) {
    standing = await ledger.exchange(key, { reports: [], wanted: 1 });
    const reports: Report[] = standing.grants.map((grant) => {
      const { headers } = upstream.arrive(nowMs);
      const upstreamNowMs = (headers.dateMs as number) - behindS * 1_000;
      const readings = readWindows(headers, standing as Standing, { upstreamNowMs, nowMs });
      return { kind: 'answered', grant, readings };
    });
    standing = await ledger.exchange(key, { reports, wanted: 0 });
  }
  expect(standing?.minute.limit).toBe(PLANS[plan].perMinute);
  expect(standing?.day.limit).toBe(PLANS[plan].perDay);
});
