import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { startLoad } from '../../support/load.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { until } from '../../support/until.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, judge, nextMinute, scenario, startTrial, untilUpstream } from './scenario.ts';
import type { Findings, Scene, TrialOptions } from './scenario.ts';

/** So many that all calls of a window are wanted at once. */
const CLIENTS = { free: 20, pro: 40, business: 80 } as const;
/** In which the window after the measured ones begins, which ends the last of them. */
const BEGUN_MS = 5_000;
const HOUR_MS = 3_600_000;

interface Saturation extends Omit<TrialOptions, 'plan'> {
  readonly planName: keyof typeof PLANS;
  readonly minutes: number;
  readonly atLeast: number;
}

/** Every plan, wanted to its last call. */
export const saturation: readonly Check[] = (['free', 'pro', 'business'] as const).flatMap((planName) =>
  (['fixed', 'sliding'] as const).flatMap((windows) =>
    [1, 3].map((replicas) => {
      const name = `saturation-${planName}-${windows}-${replicas}`;
      return scenario({ name, goal: 'no 429, at least 95 % used', processes: replicas }, (scene) =>
        saturate(scene, { planName, windows, replicas, minutes: 3, atLeast: 0.95 }),
      );
    }),
  ),
);

/** The replicas' machines are an hour off, fifteen seconds apart, and the upstream's is five seconds off. */
const WRONG_CLOCKS = [
  { windows: 'fixed', clocksAheadMs: [HOUR_MS, HOUR_MS - 15_000, HOUR_MS + 15_000], aheadMs: 5_000 },
  { windows: 'sliding', clocksAheadMs: [-HOUR_MS, 15_000 - HOUR_MS, -15_000 - HOUR_MS], aheadMs: -5_000 },
  { windows: 'fixed', clocksAheadMs: [-HOUR_MS], aheadMs: 5_000 },
  { windows: 'sliding', clocksAheadMs: [HOUR_MS], aheadMs: -5_000 },
] as const;

export const clocks: readonly Check[] = WRONG_CLOCKS.map((wrong) => {
  const { length: replicas } = wrong.clocksAheadMs;
  const name = `clocks-${wrong.windows}-${replicas}`;
  return scenario({ name, goal: 'no 429 though every clock is wrong', processes: replicas }, (scene) =>
    // Not the point here, but petql that sends nothing meets no 429.
    saturate(scene, { planName: 'pro', replicas, minutes: 2, atLeast: 0.9, ...wrong }),
  );
});

async function saturate(scene: Scene, { planName, minutes, atLeast, ...options }: Saturation): Promise<Findings> {
  const plan = PLANS[planName];
  const trial = await startTrial(scene, { plan, ...options });
  const { petApi, fleet } = trial;
  const key = `${planName}-key`;
  const clientsPerReplica = Math.ceil(CLIENTS[planName] / options.replicas);
  const load = startLoad({ endpoints: fleet.endpoints, key, clientsPerReplica, random: scene.random });
  // A sliding window is measured from its first call on.
  const fromMs = options.windows === 'fixed' ? nextMinute(petApi) : petApi.now();
  await untilUpstream(petApi, fromMs + minutes * MINUTE_MS + BEGUN_MS);
  await load.stop();
  return judge({ trial, operations: load.operations, used: { plan, key, fromMs, atLeast } });
}

const STORM_MS = 600_000;
const MAX_STORM_CALLS = 8;
/** Keys whose quota is exhausted when the storm begins, and keys that are first used in it. */
const EXHAUSTED_KEYS = ['used-1', 'used-2'] as const;
const NEW_KEYS = ['new-1', 'new-2'] as const;
/** A Retry-After that is shorter than any backoff should be, and no word of the plan. */
const STORM_HEADERS = {
  'retry-after': '1',
  'x-ratelimit-limit': undefined,
  'x-ratelimit-remaining': undefined,
  'x-ratelimit-reset': undefined,
};

/** The upstream is out of order for ten minutes, and all clients go on. */
export const storm = scenario(
  { name: 'storm', goal: `at most ${MAX_STORM_CALLS} calls a key in ten minutes of 429`, processes: 3 },
  async (scene) => {
    const trial = await startTrial(scene, { plan: PLANS.pro, replicas: 3 });
    const { petApi, fleet } = trial;
    const start = (key: string) =>
      startLoad({ endpoints: fleet.endpoints, key, clientsPerReplica: 4, random: scene.random });
    const early = EXHAUSTED_KEYS.map(start);
    // Its calls are not the storm's: the first one that the storm meets is the next window's.
    await until(() => EXHAUSTED_KEYS.every((key) => isExhausted(petApi, key)));
    const before = petApi.log.length;
    petApi.fault = () => ({ status: 429, headers: STORM_HEADERS });
    const loads = [...early, ...NEW_KEYS.map(start)];
    await setTimeout(STORM_MS);
    await Promise.all(loads.map((load) => load.stop()));

    const stormed = Map.groupBy(petApi.log.slice(before), ({ key }) => key);
    const calls = [...EXHAUSTED_KEYS, ...NEW_KEYS].map((key) => ({ key, count: stormed.get(key)?.length ?? 0 }));
    const problems = calls.map(
      ({ key, count }) => count > MAX_STORM_CALLS && `${key}: ${count} calls, at most ${MAX_STORM_CALLS} expected`,
    );
    const measured = `calls a key: ${calls.map(({ count }) => count).join(', ')}`;
    return judge({ trial, operations: loads.flatMap((load) => load.operations), measured, problems });
  },
);

/** Whether the key has used all calls of this minute, to the last response. */
function isExhausted({ log, now }: PetApi, key: string): boolean {
  const minuteMs = now() - (now() % MINUTE_MS);
  const own = log.filter((call) => call.key === key && call.atMs >= minuteMs);
  return own.length === PLANS.pro.perMinute && own.every(({ answeredAtMs }) => answeredAtMs !== undefined);
}
