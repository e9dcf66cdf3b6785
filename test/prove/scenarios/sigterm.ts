import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { until } from '../../support/until.ts';
import { askDayUsed } from '../ask-day-used.ts';
import type { ClientRequest } from '../history.ts';
import { send } from '../load.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { judge, startTrial } from '../trial.ts';

const PLAN = { ...PLANS.pro, windows: 'fixed' } as const;
const KEY = 'pro-key';
/** What one throttle sends at a time; the others wait. */
const UNDER_WAY = 50;
const WAITING = 200;
const WARM_UP = 1_500;
const WARM_UP_AT_A_TIME = 25;
const REFUSED_WITHIN_MS = 100;
const GONE_WITHIN_MS = 8_000;

export const sigterm: readonly Scenario[] = ['redis', 'state-file'].map((memory) => ({
  name: `sigterm-${memory}`,
  goal: `${WAITING} refused within ${REFUSED_WITHIN_MS} ms, exit 0 within ${GONE_WITHIN_MS / 1000} s, no grant lost`,
  plan: 'pro',
  windows: PLAN.windows,
  replicas: 1,
  alone: true,
  run: (bench: Bench) => stop(bench, memory === 'redis'),
}));

async function stop(bench: Bench, withRedis: boolean): Promise<Findings> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-prove-'));
  bench.use({ [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) });
  const args = withRedis ? [] : ['--state-file', join(folder, 'state.db')];
  const trial = await startTrial(bench, { plan: PLAN, replicas: 1, withRedis, args, latencyMs: [0, 0] });
  const { upstream, replicas } = trial;
  const requests: ClientRequest[] = [];
  const call = (name: string, key = KEY, waitSeconds = 60) =>
    send({ endpoint: replicas.process(0).address, key, name, waitSeconds, requests });
  // As a process is that has served for a while: with its code compiled.
  for (let index = 0; index < WARM_UP; index += WARM_UP_AT_A_TIME) {
    const names = Array.from({ length: WARM_UP_AT_A_TIME }, (_, more) => `earlier ${index + more}`);
    await Promise.all(names.map((name) => call(name, 'another-key', 1)));
  }
  await call('first');
  // So slow that fifty are on their way while the others wait.
  upstream.behave({ latencyMs: () => 1_500 });
  const ownArrivals = () => upstream.arrivals.filter(({ key }) => key === KEY);
  const calls = Array.from({ length: UNDER_WAY + WAITING }, (_, index) => call(`call ${index}`));
  await until(() => ownArrivals().length === 1 + UNDER_WAY);
  // The other requests are in petql by then, too.
  await setTimeout(500);
  const stoppedMs = performance.now();
  replicas.process(0).kill('SIGTERM');
  const settlements = await Promise.all(calls);
  const code = await replicas.process(0).exited;
  const goneMs = Math.round(performance.now() - stoppedMs);
  const refused = settlements.filter(({ outcome }) => outcome === 'refused');
  const refusedMs = Math.round(Math.max(...refused.map(({ atMs }) => atMs - stoppedMs)));
  await replicas.restart(0);
  const dayUsed = await askDayUsed(replicas.process(0).address, KEY);

  const problems: string[] = [];
  if (refused.length !== WAITING) problems.push(`${refused.length} were refused, ${WAITING} expected`);
  if (refusedMs > REFUSED_WITHIN_MS) problems.push(`the last was refused after ${refusedMs} ms`);
  if (code !== 0) problems.push(`it ended with ${code}`);
  if (goneMs > GONE_WITHIN_MS) problems.push(`it was gone after ${goneMs} ms`);
  const arrived = ownArrivals().length;
  if (dayUsed !== arrived) problems.push(`${arrived} calls arrived, the next process knows of ${dayUsed}`);
  const measured = `refused in ${refusedMs} ms, gone in ${goneMs} ms, ${dayUsed} of ${arrived} known after`;
  return judge({ arrivals: upstream.arrivals, requests, plan: PLAN, measured, problems });
}
