import { PLANS } from '../../../src/plan.ts';
import { startLoad } from '../load.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { judge, nextMinute, startTrial, untilUpstream } from '../trial.ts';

const MINUTES = 3;
const ENOUGH = 0.95;
/** So many that all calls of a window are wanted at once. */
const CLIENTS = { free: 20, pro: 40, business: 80 } as const;
/** A sliding window is measured once it is full for the first time. */
const FILLED_MS = 10_000;

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
  readonly windows: 'fixed' | 'sliding';
  readonly replicas: number;
}

async function saturate(bench: Bench, { plan, windows, replicas: count }: Saturation): Promise<Findings> {
  const limits = { ...PLANS[plan], windows };
  const { upstream, replicas } = await startTrial(bench, { plan: limits, replicas: count });
  const key = `${plan}-key`;
  const clientsPerReplica = Math.ceil(CLIENTS[plan] / count);
  const load = startLoad({ endpoints: replicas.endpoints, key, clientsPerReplica, random: bench.random });
  const fromMs = windows === 'fixed' ? nextMinute(upstream) : upstream.now() + FILLED_MS;
  await untilUpstream(upstream, fromMs + MINUTES * 60_000);
  await load.stop();
  const { arrivals } = upstream;
  const used = { span: { fromMs, minutes: MINUTES }, key, atLeast: ENOUGH };
  return judge({ arrivals, requests: load.requests, plan: limits, used });
}
