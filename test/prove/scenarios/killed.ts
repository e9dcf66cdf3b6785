import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { until } from '../../support/until.ts';
import { startLoad } from '../load.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { judge, startTrial } from '../trial.ts';

/** A day that is spent in seconds; the headers tell of the minute alone. */
const PLAN = { perMinute: 1_000, perDay: 200, windows: 'fixed' } as const;
const ASSUMED = ['--plan', '1000/200'];
const KILL_AT = 160;
/** The reserve of one in a hundred, and what was on its way when the process was killed. */
const FEWEST = 180;
const KEY = 'a-key';

export const killed: readonly Scenario[] = [
  { memory: 'redis', replicas: 3 },
  { memory: 'state-file', replicas: 1 },
].map(({ memory, replicas }) => ({
  name: `killed-${memory}`,
  goal: 'kill -9 at 80 % of the day: the day is never exceeded',
  plan: '1000/200',
  windows: PLAN.windows,
  replicas,
  run: (bench: Bench) => kill(bench, replicas),
}));

async function kill(bench: Bench, count: number): Promise<Findings> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-prove-'));
  bench.use({ [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) });
  const args = [...ASSUMED, ...(count > 1 ? [] : ['--state-file', join(folder, 'state.db')])];
  const { upstream, replicas } = await startTrial(bench, { plan: PLAN, replicas: count, args, latencyMs: [40, 120] });
  const { endpoints } = replicas;
  const load = startLoad({ endpoints, key: KEY, clientsPerReplica: 4, random: bench.random, waitSeconds: () => 5 });
  await until(() => upstream.arrivals.length >= KILL_AT);
  const all = endpoints.map((_, index) => index);
  await Promise.all(all.map((index) => replicas.kill(index)));
  const atKill = upstream.arrivals.length;
  for (const index of all) await replicas.restart(index);
  await setTimeout(15_000);
  await load.stop();

  const { arrivals } = upstream;
  const problems = arrivals.length < FEWEST ? [`only ${arrivals.length} calls, at least ${FEWEST} expected`] : [];
  const measured = `killed at ${atKill}, ${arrivals.length} of ${PLAN.perDay} in the end`;
  return judge({ arrivals, requests: load.requests, plan: PLAN, measured, problems });
}
