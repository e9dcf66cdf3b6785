import { pino } from 'pino';
import { steadyTime, systemClock } from '../../../src/clock.ts';
import { createMemoryLedger } from '../../../src/throttle/memory-ledger.ts';
import { createStrictPlan } from '../../throttle/strict-plan.ts';
import type { ClientRequest } from '../history.ts';
import { send } from '../load.ts';
import { createMeteredThrottle } from '../metered-throttle.ts';
import { percentile } from '../percentile.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { judge, startTrial } from '../trial.ts';

const PLAN = { perMinute: 1_000, perDay: 200, windows: 'fixed' } as const;
const MOST_MS = 5;
const THROTTLE_CALLS = 5_000;
const HTTP_CALLS = 1_000;
const KEY = 'a-key';

/** Who has nothing left is told so at once, however long it would wait. */
export const usedUpDay: Scenario = {
  name: 'used-up-day',
  goal: `refused within ${MOST_MS} ms (p99 of the throttle)`,
  plan: '1000/200',
  windows: PLAN.windows,
  replicas: 1,
  alone: true,
  run: refuse,
};

async function refuse(bench: Bench): Promise<Findings> {
  const inThrottle = await refusedByThrottle();
  const { upstream, replicas } = await startTrial(bench, { plan: PLAN, replicas: 1, args: ['--plan', '1000/200'] });
  const requests: ClientRequest[] = [];
  const call = (index: number) =>
    send({ endpoint: replicas.process(0).address, key: KEY, name: `call ${index}`, waitSeconds: 60, requests });
  await Promise.all(Array.from({ length: PLAN.perDay }, (_, index) => call(index)));
  const used = upstream.arrivals.length;
  const overHttpMs: number[] = [];
  for (let index = 0; index < HTTP_CALLS; index += 1) {
    const startedMs = performance.now();
    const { atMs } = await call(PLAN.perDay + index);
    overHttpMs.push(atMs - startedMs);
  }
  const problems = [...inThrottle.problems];
  if (upstream.arrivals.length !== used) problems.push('calls arrived after the day was used up');
  const measured = `p99 ${inThrottle.p99Ms.toFixed(2)} ms, over HTTP ${percentile(overHttpMs, 0.99).toFixed(1)} ms`;
  return judge({ arrivals: upstream.arrivals, requests, plan: PLAN, measured, problems });
}

async function refusedByThrottle(): Promise<{ p99Ms: number; problems: string[] }> {
  const log = pino({ level: 'silent' });
  const rules = { plan: { ...PLAN, known: true }, probeMs: 5_000 };
  const ledger = createMemoryLedger({ rules, now: steadyTime(systemClock), log });
  const upstream = createStrictPlan({ ...PLAN, tells: 'minute' });
  const { call, arrivals } = createMeteredThrottle({ key: KEY, ledger, upstream });
  for (let index = 0; index < PLAN.perDay; index += 1) await call(`call ${index}`, { waitMs: 60_000 });
  const used = arrivals.length;
  const tookMs: number[] = [];
  for (let index = 0; index < THROTTLE_CALLS; index += 1) {
    const startedMs = performance.now();
    await call('late', { waitMs: 60_000 });
    tookMs.push(performance.now() - startedMs);
  }
  const p99Ms = percentile(tookMs, 0.99);
  const problems = p99Ms > MOST_MS ? [`refused within ${p99Ms} ms`] : [];
  if (arrivals.length !== used) problems.push('the throttle sent calls after the day was used up');
  return { p99Ms, problems };
}
