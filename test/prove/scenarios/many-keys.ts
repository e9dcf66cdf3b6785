import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { steadyTime, systemClock } from '../../../src/clock.ts';
import { PLANS } from '../../../src/plan.ts';
import { connectRedis } from '../../../src/store/redis.ts';
import type { RedisStore } from '../../../src/store/redis.ts';
import { createCallerNames } from '../../../src/throttle/caller-names.ts';
import { createFailoverLedger } from '../../../src/throttle/failover-ledger.ts';
import type { Ledger } from '../../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../../src/throttle/memory-ledger.ts';
import { createRedisLedger } from '../../../src/throttle/redis-ledger.ts';
import { createReplicas } from '../../../src/throttle/replicas.ts';
import { createStrictPlan } from '../../throttle/strict-plan.ts';
import type { Arrival } from '../history.ts';
import { createMeteredThrottle } from '../metered-throttle.ts';
import type { MeteredThrottle } from '../metered-throttle.ts';
import { percentile } from '../percentile.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { judge } from '../trial.ts';

const PLAN = { ...PLANS.free, windows: 'fixed' } as const;
const KEYS = 10_000;
const CALLS_A_SECOND = 400;
const LASTS_MS = 30_000;
/** By then the code is compiled, as it is in a process that serves. */
const WARM_AFTER_MS = 3_000;
const MOST_MS = { memory: 5, redis: 10 } as const;
const MOST_ROUND_TRIPS = 2;
const RULES = { plan: { ...PLAN, known: true }, probeMs: 5_000 };

/** What the throttle of a key that has calls left adds to each of them, with ten thousand keys at work. */
export const manyKeys: readonly Scenario[] = (['memory', 'redis'] as const).map((place) => ({
  name: `many-keys-${place}`,
  goal: `p99 added at most ${MOST_MS[place]} ms${place === 'redis' ? `, at most ${MOST_ROUND_TRIPS} round trips a call` : ''}`,
  plan: 'free',
  windows: PLAN.windows,
  replicas: 1,
  alone: true,
  run: (bench: Bench) => callAll(bench, place),
}));

async function callAll(bench: Bench, place: 'memory' | 'redis'): Promise<Findings> {
  const { ledger, roundTrips } = place === 'redis' ? await overRedis(bench) : inMemory();
  const throttles = new Map<string, MeteredThrottle>();
  const throttleOf = (key: string) => {
    let known = throttles.get(key);
    if (!known) {
      const upstream = createStrictPlan({ ...PLAN, tells: 'minute' });
      throttles.set(key, (known = createMeteredThrottle({ key, ledger, upstream })));
    }
    return known;
  };
  const addedMs: number[] = [];
  const beganMs = performance.now();
  const calls: Promise<void>[] = [];
  const call = async () => {
    const { call: pass } = throttleOf(`key ${Math.floor(bench.random() * KEYS)}`);
    const startedMs = performance.now();
    // The answer is immediate, so all the time that passes is the throttle's.
    await pass('a call', { waitMs: 10_000 });
    if (startedMs - beganMs > WARM_AFTER_MS) addedMs.push(performance.now() - startedMs);
  };
  // At a steady rate, whatever has come back.
  for (let elapsedMs = 0; elapsedMs < LASTS_MS; elapsedMs = performance.now() - beganMs) {
    const due = Math.floor((elapsedMs / 1000) * CALLS_A_SECOND);
    while (calls.length < due) calls.push(call());
    await setTimeout(1);
  }
  await Promise.all(calls);
  await Promise.all([...throttles.values()].map(({ throttle }) => throttle.close()));
  const trips = roundTrips() / calls.length;

  const p99Ms = percentile(addedMs, 0.99);
  const problems = p99Ms > MOST_MS[place] ? [`p99 ${p99Ms.toFixed(1)} ms`] : [];
  if (trips > MOST_ROUND_TRIPS) problems.push(`${trips.toFixed(2)} round trips a call`);
  const arrivals: Arrival[] = [...throttles.values()].flatMap((one) => one.arrivals);
  if (arrivals.length !== calls.length) problems.push(`${calls.length} calls, ${arrivals.length} arrived`);
  const tripsTold = place === 'redis' ? `, ${trips.toFixed(2)} round trips a call` : '';
  const middleMs = percentile(addedMs, 0.5).toFixed(2);
  const measured = `${throttles.size} keys, p50 ${middleMs} ms, p99 ${p99Ms.toFixed(2)} ms${tripsTold}`;
  // Names repeat here: who was served is not the point.
  return judge({ arrivals: arrivals.map((one) => ({ ...one, name: undefined })), plan: PLAN, measured, problems });
}

interface Place {
  readonly ledger: Ledger;
  /** For calls; heartbeats are none. */
  roundTrips(): number;
}

function inMemory(): Place {
  const log = pino({ level: 'silent' });
  const ledger = createMemoryLedger({ rules: RULES, now: steadyTime(systemClock), log });
  return { ledger, roundTrips: () => 0 };
}

/** As gateway.ts puts it together. */
async function overRedis(bench: Bench): Promise<Place> {
  const server = await bench.redis();
  const redis = connectRedis({ url: server.url });
  const replicas = createReplicas(redis, 'one');
  let trips = 0;
  const metered: RedisStore = {
    ...redis,
    run(...command) {
      trips += 1;
      return redis.run(...command);
    },
  };
  const nameOf = createCallerNames('a secret of the proof');
  const shared = createRedisLedger({ redis: metered, rules: RULES, nameOf, replica: 'one' });
  const now = steadyTime(systemClock);
  const ledger = createFailoverLedger({ shared, replicas, rules: RULES, clock: systemClock, now });
  bench.use({
    async [Symbol.asyncDispose]() {
      replicas.close();
      await ledger.close();
      redis.close();
    },
  });
  return { ledger, roundTrips: () => trips };
}
