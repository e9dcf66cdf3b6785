import { PLANS } from '../../../src/plan.ts';
import { startLoad } from '../load.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { judge, nextMinute, startTrial, untilUpstream } from '../trial.ts';

const HOUR_MS = 3_600_000;
const MINUTES = 2;

/** The replicas' machines are an hour off, fifteen seconds apart, and the upstream's is five seconds off. */
const CASES = [
  { windows: 'fixed', clocksAheadMs: [HOUR_MS, HOUR_MS - 15_000, HOUR_MS + 15_000], upstreamAheadMs: 5_000 },
  { windows: 'sliding', clocksAheadMs: [-HOUR_MS, 15_000 - HOUR_MS, -15_000 - HOUR_MS], upstreamAheadMs: -5_000 },
  { windows: 'fixed', clocksAheadMs: [-HOUR_MS], upstreamAheadMs: 5_000 },
  { windows: 'sliding', clocksAheadMs: [HOUR_MS], upstreamAheadMs: -5_000 },
] as const;

export const clocks: readonly Scenario[] = CASES.map((wrong) => ({
  name: `clocks-${wrong.windows}-${wrong.clocksAheadMs.length}`,
  goal: 'no 429 though every clock is wrong',
  plan: 'pro',
  windows: wrong.windows,
  replicas: wrong.clocksAheadMs.length,
  run: (bench: Bench) => disagree(bench, wrong),
}));

async function disagree(
  bench: Bench,
  { windows, clocksAheadMs, upstreamAheadMs }: (typeof CASES)[number],
): Promise<Findings> {
  const plan = { ...PLANS.pro, windows };
  const replicas = clocksAheadMs.length;
  const trial = await startTrial(bench, { plan, replicas, clocksAheadMs, upstreamAheadMs });
  const { upstream } = trial;
  const key = 'pro-key';
  const { endpoints } = trial.replicas;
  const load = startLoad({ endpoints, key, clientsPerReplica: Math.ceil(30 / replicas), random: bench.random });
  const fromMs = nextMinute(upstream);
  await untilUpstream(upstream, fromMs + MINUTES * 60_000);
  await load.stop();
  // Not the point here, but petql that sends nothing meets no 429.
  const used = { span: { fromMs, minutes: MINUTES }, key, atLeast: 0.9 };
  return judge({ arrivals: upstream.arrivals, requests: load.requests, plan, used });
}
