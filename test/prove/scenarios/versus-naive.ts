import { PLANS } from '../../../src/plan.ts';
import { startLoad } from '../load.ts';
import { startNaive } from '../naive.ts';
import { between } from '../random.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { startStrictUpstream } from '../strict-upstream.ts';
import { judge, nextMinute, startTrial, untilUpstream } from '../trial.ts';

const PLAN = PLANS.free;
const KEY = 'free-key';
const MINUTES = 2;
const CLIENTS = 20;
/** Somewhere in a minute, as a process starts that nobody starts on the stroke of one. */
const AHEAD_MS = 27_000;

/** Free's saturation in small, by petql and by the obvious way; the obvious way has no goal, it is there to compare. */
export const versusNaive: readonly Scenario[] = (['fixed', 'sliding'] as const).flatMap((windows) =>
  [1, 3].flatMap((replicas) =>
    (['petql', 'naive'] as const).map((who) => ({
      name: `versus-${windows}-${replicas}-${who}`,
      goal: who === 'petql' ? 'no 429, at least 95 % used' : 'none, to compare with',
      plan: 'free',
      windows,
      replicas,
      run: (bench: Bench) => compare(bench, { who, windows, replicas }),
    })),
  ),
);

interface Side {
  readonly who: 'naive' | 'petql';
  readonly windows: 'fixed' | 'sliding';
  readonly replicas: number;
}

async function compare(bench: Bench, { who, windows, replicas }: Side): Promise<Findings> {
  const plan = { ...PLAN, windows };
  const { upstream, endpoints } = await (who === 'petql'
    ? startPetqlSide(bench, plan, replicas)
    : startNaiveSide(bench, plan, replicas));
  const clientsPerReplica = Math.ceil(CLIENTS / replicas);
  const load = startLoad({ endpoints, key: KEY, clientsPerReplica, random: bench.random });
  const fromMs = nextMinute(upstream);
  await untilUpstream(upstream, fromMs + MINUTES * 60_000);
  await load.stop();
  const used = { span: { fromMs, minutes: MINUTES }, key: KEY, atLeast: who === 'petql' ? 0.95 : 0 };
  const findings = judge({ arrivals: upstream.arrivals, requests: load.requests, plan, used });
  return who === 'petql' ? findings : { ...findings, problems: [] };
}

async function startPetqlSide(bench: Bench, plan: Parameters<typeof startTrial>[1]['plan'], count: number) {
  const { upstream, replicas } = await startTrial(bench, { plan, replicas: count, upstreamAheadMs: AHEAD_MS });
  return { upstream, endpoints: replicas.endpoints };
}

async function startNaiveSide(bench: Bench, plan: Parameters<typeof startTrial>[1]['plan'], count: number) {
  const { random } = bench;
  const upstream = bench.use(
    await startStrictUpstream({
      plan: { ...plan, tells: 'minute' },
      aheadMs: AHEAD_MS,
      behaviour: { latencyMs: () => between(random, 5, 40) },
    }),
  );
  const redisUrl = count > 1 ? (await bench.redis()).url : undefined;
  const endpoints: (() => string)[] = [];
  for (let index = 0; index < count; index += 1) {
    const { endpoint } = bench.use(await startNaive({ plan, upstreamUrl: upstream.url, redisUrl }));
    endpoints.push(() => endpoint);
  }
  return { upstream, endpoints };
}
