import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import type { StrictPlanOptions } from '../../throttle/strict-plan.ts';
import { checkHistory } from '../check-history.ts';
import { startLoad } from '../load.ts';
import { between } from '../random.ts';
import { startReplicas } from '../replicas.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { startStrictUpstream } from '../strict-upstream.ts';
import type { StrictUpstream } from '../strict-upstream.ts';
import { shareOf, usageOfFixed, usageOfSliding } from '../usage.ts';

const MEASURED_MINUTES = 3;
const ENOUGH = 0.95;
/** So many that a window's calls are wanted at once. */
const CLIENTS = { free: 20, pro: 40, business: 80 } as const;

/** Every plan, wanted to its last call. */
export const saturation: readonly Scenario[] = (['free', 'pro', 'business'] as const).flatMap((plan) =>
  (['fixed', 'sliding'] as const).flatMap((windows) =>
    [1, 3].map((replicas) => ({
      name: `saturation-${plan}-${windows}-${replicas}`,
      goal: 'no 429, at least 95 % used',
      plan,
      windows,
      replicas,
      run: (bench: Bench) => saturate(bench, { plan, windows, replicas }),
    })),
  ),
);

interface Saturation {
  readonly plan: keyof typeof PLANS;
  readonly windows: StrictPlanOptions['windows'];
  readonly replicas: number;
}

async function saturate(bench: Bench, { plan, windows, replicas: count }: Saturation): Promise<Findings> {
  const { random } = bench;
  const limits = PLANS[plan];
  const upstream = bench.use(
    await startStrictUpstream({
      plan: { ...limits, windows, tells: 'minute' },
      // A window's end is never where another scenario has it, so that the machine is not asked for all at once.
      aheadMs: between(random, -30_000, 30_000),
      behaviour: { latencyMs: () => between(random, 5, 40) },
    }),
  );
  const redis = count > 1 ? await bench.redis() : undefined;
  const replicas = bench.use(await startReplicas({ count, upstreamUrl: upstream.url, redisUrl: redis?.url }));
  const clientsPerReplica = Math.ceil(CLIENTS[plan] / count);
  const load = startLoad({ endpoints: replicas.endpoints, key: `${plan}-key`, clientsPerReplica, random });
  const fromMs = await warmUp(upstream, windows);
  await setTimeout(fromMs + MEASURED_MINUTES * 60_000 - upstream.now());
  await load.stop();

  const usageOf = windows === 'fixed' ? usageOfFixed : usageOfSliding;
  const usage = usageOf(upstream.arrivals, limits.perMinute, { fromMs, minutes: MEASURED_MINUTES });
  const refusals = upstream.arrivals.filter(({ status }) => status === 429).length;
  const problems = checkHistory(
    { arrivals: upstream.arrivals, requests: load.requests },
    { windows, perMinute: limits.perMinute, perDay: limits.perDay },
  );
  if (refusals > 0) problems.push(`${refusals} × 429`);
  if (shareOf(usage) < ENOUGH) problems.push(`${(shareOf(usage) * 100).toFixed(1)} % used`);
  return { usage, arrivals: upstream.arrivals.length, refusals, problems };
}

/** Fixed windows are measured from the next one on, a sliding one once it is full. */
async function warmUp(upstream: StrictUpstream, windows: StrictPlanOptions['windows']): Promise<number> {
  const SETTLED_MS = 10_000;
  if (windows === 'fixed') {
    const fromMs = Math.ceil((upstream.now() + 1_000) / 60_000) * 60_000;
    await setTimeout(fromMs - upstream.now());
    return fromMs;
  }
  await setTimeout(SETTLED_MS);
  return upstream.now();
}
