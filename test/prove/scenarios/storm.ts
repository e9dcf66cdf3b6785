import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { until } from '../../support/until.ts';
import { startLoad } from '../load.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import type { StrictUpstream } from '../strict-upstream.ts';
import { judge, startTrial } from '../trial.ts';

const PLAN = { ...PLANS.pro, windows: 'fixed' } as const;
const REPLICAS = 3;
const STORM_MS = 600_000;
const MOST_CALLS = 8;
/** Shorter than any backoff should be. */
const RETRY_AFTER_SECONDS = 1;
/** Used up when the storm begins, and never used before it. */
const KEYS = ['used-1', 'used-2', 'new-1', 'new-2'] as const;

/** The upstream is out of order for ten minutes, and everybody goes on asking. */
export const storm: Scenario = {
  name: 'storm',
  goal: `at most ${MOST_CALLS} calls a key in ten minutes of 429`,
  plan: 'pro',
  windows: PLAN.windows,
  replicas: REPLICAS,
  run: weather,
};

async function weather(bench: Bench): Promise<Findings> {
  const { upstream, replicas } = await startTrial(bench, { plan: PLAN, replicas: REPLICAS });
  const start = (key: string) =>
    startLoad({ endpoints: replicas.endpoints, key, clientsPerReplica: 4, random: bench.random });
  const early = KEYS.filter((key) => key.startsWith('used')).map(start);
  // Its calls are not the storm's: the first one that the storm meets is the next window's.
  await until(() => usedUp(upstream));
  const before = upstream.arrivals.length;
  upstream.behave({ storm: RETRY_AFTER_SECONDS });
  const late = KEYS.filter((key) => key.startsWith('new')).map(start);
  await setTimeout(STORM_MS);
  const loads = [...early, ...late];
  await Promise.all(loads.map((load) => load.stop()));

  const stormed = upstream.arrivals.slice(before);
  const calls = KEYS.map((key) => stormed.filter((arrival) => arrival.key === key).length);
  const problems = calls.flatMap((count, index) =>
    count > MOST_CALLS ? [`${KEYS[index]}: ${count} calls, at most ${MOST_CALLS} expected`] : [],
  );
  return judge({
    arrivals: upstream.arrivals,
    requests: loads.flatMap(({ requests }) => requests),
    plan: PLAN,
    mostRefusals: stormed.length,
    measured: `calls a key: ${calls.join(', ')}`,
    problems,
  });
}

/** Whether the keys that have begun have used up this minute, to the last answer. */
function usedUp({ arrivals, now }: StrictUpstream): boolean {
  const minuteMs = now() - (now() % 60_000);
  return KEYS.filter((key) => key.startsWith('used')).every((key) => {
    const own = arrivals.filter((arrival) => arrival.key === key && arrival.atMs >= minuteMs);
    return own.length === PLAN.perMinute && own.every(({ answeredAtMs }) => answeredAtMs < Infinity);
  });
}
