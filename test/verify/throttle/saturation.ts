import { PLANS } from '../../../src/common/plan.ts';
import { startLoad } from '../../support/load.ts';
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
