import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { startLoad } from '../../support/load.ts';
import type { PetApi } from '../../support/pet-api.ts';
import { until } from '../../support/until.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, judge, nextMinute, scenario, startTrial, untilUpstream } from './trial.ts';
import type { Bench, Findings } from './trial.ts';

/** So many that all calls of a window are wanted at once. */
const CLIENTS = { free: 20, pro: 40, business: 80 } as const;
/** In which the window after the measured ones begins, which ends the last of them. */
const BEGUN_MS = 5_000;
const HOUR_MS = 3_600_000;

interface Saturation {
  readonly plan: keyof typeof PLANS;
  readonly windows: 'fixed' | 'sliding';
  readonly replicas: number;
  readonly minutes: number;
  readonly atLeast: number;
  readonly clocksAheadMs?: readonly number[];
  readonly upstreamAheadMs?: number;
}

/** Every plan, wanted to its last call. */
export const saturation: readonly Check[] = (['free', 'pro', 'business'] as const).flatMap((plan) =>
  (['fixed', 'sliding'] as const).flatMap((windows) =>
    [1, 3].map((replicas) =>
      scenario(
        { name: `saturation-${plan}-${windows}-${replicas}`, goal: 'no 429, at least 95 % used', processes: replicas },
        (bench) => saturate(bench, { plan, windows, replicas, minutes: 3, atLeast: 0.95 }),
      ),
    ),
  ),
);

/** The replicas' machines are an hour off, fifteen seconds apart, and the upstream's is five seconds off. */
export const clocks: readonly Check[] = (
  [
    { windows: 'fixed', clocksAheadMs: [HOUR_MS, HOUR_MS - 15_000, HOUR_MS + 15_000], upstreamAheadMs: 5_000 },
    { windows: 'sliding', clocksAheadMs: [-HOUR_MS, 15_000 - HOUR_MS, -15_000 - HOUR_MS], upstreamAheadMs: -5_000 },
    { windows: 'fixed', clocksAheadMs: [-HOUR_MS], upstreamAheadMs: 5_000 },
    { windows: 'sliding', clocksAheadMs: [HOUR_MS], upstreamAheadMs: -5_000 },
  ] as const
).map((wrong) => {
  const { length: replicas } = wrong.clocksAheadMs;
  const name = `clocks-${wrong.windows}-${replicas}`;
  return scenario({ name, goal: 'no 429 though every clock is wrong', processes: replicas }, (bench) =>
    // Not the point here, but petql that sends nothing meets no 429.
    saturate(bench, { plan: 'pro', replicas, minutes: 2, atLeast: 0.9, ...wrong }),
  );
});

async function saturate(bench: Bench, { plan: name, minutes, atLeast, ...options }: Saturation): Promise<Findings> {
  const plan = PLANS[name];
  const trial = await startTrial(bench, { plan, ...options });
  const { petApi, fleet } = trial;
  const key = `${name}-key`;
  const clientsPerReplica = Math.ceil(CLIENTS[name] / options.replicas);
  const load = startLoad({ endpoints: fleet.endpoints, key, clientsPerReplica, random: bench.random });
  // A sliding window is measured from its first call on.
  const fromMs = options.windows === 'fixed' ? nextMinute(petApi) : petApi.now();
  await untilUpstream(petApi, fromMs + minutes * MINUTE_MS + BEGUN_MS);
  await load.stop();
  return judge({ trial, operations: load.operations, used: { plan, key, fromMs, atLeast } });
}

const STORM_MS = 600_000;
const MAX_STORM_CALLS = 8;
/** Used up when the storm begins, and never used before it. */
const STORM_KEYS = ['used-1', 'used-2', 'new-1', 'new-2'] as const;
/** Shorter than any backoff should be, and no word of the plan. */
const STORM_HEADERS = {
  'retry-after': '1',
  'x-ratelimit-limit': undefined,
  'x-ratelimit-remaining': undefined,
  'x-ratelimit-reset': undefined,
};

/** The upstream is out of order for ten minutes, and all clients go on. */
export const storm = scenario(
  { name: 'storm', goal: `at most ${MAX_STORM_CALLS} calls a key in ten minutes of 429`, processes: 3 },
  async (bench) => {
    const trial = await startTrial(bench, { plan: PLANS.pro, replicas: 3 });
    const { petApi, fleet } = trial;
    const start = (key: string) =>
      startLoad({ endpoints: fleet.endpoints, key, clientsPerReplica: 4, random: bench.random });
    const early = STORM_KEYS.filter((key) => key.startsWith('used')).map(start);
    // Its calls are not the storm's: the first one that the storm meets is the next window's.
    await until(() => isUsedUp(petApi));
    const before = petApi.log.length;
    petApi.fault = () => ({ status: 429, headers: STORM_HEADERS });
    const late = STORM_KEYS.filter((key) => key.startsWith('new')).map(start);
    await setTimeout(STORM_MS);
    const loads = [...early, ...late];
    await Promise.all(loads.map((load) => load.stop()));

    const stormed = petApi.log.slice(before);
    const calls = STORM_KEYS.map((key) => stormed.filter((call) => call.key === key).length);
    const problems = calls.flatMap((count, index) =>
      count > MAX_STORM_CALLS ? `${STORM_KEYS[index]}: ${count} calls, at most ${MAX_STORM_CALLS} expected` : [],
    );
    const operations = loads.flatMap((load) => load.operations);
    return judge({ trial, operations, measured: `calls a key: ${calls.join(', ')}`, problems });
  },
);

/** Whether the keys that have begun have used up this minute, to the last response. */
function isUsedUp({ log, now }: PetApi): boolean {
  const minuteMs = now() - (now() % MINUTE_MS);
  return STORM_KEYS.filter((key) => key.startsWith('used')).every((key) => {
    const own = log.filter((call) => call.key === key && call.atMs >= minuteMs);
    return own.length === PLANS.pro.perMinute && own.every(({ answeredAtMs }) => answeredAtMs !== undefined);
  });
}
