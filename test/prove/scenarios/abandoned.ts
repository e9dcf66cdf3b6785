import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { steadyTime, systemClock } from '../../../src/clock.ts';
import { PLANS } from '../../../src/plan.ts';
import { createMemoryLedger } from '../../../src/throttle/memory-ledger.ts';
import { until } from '../../support/until.ts';
import { createStrictPlan } from '../../throttle/strict-plan.ts';
import type { ClientRequest } from '../history.ts';
import { send } from '../load.ts';
import { createMeteredThrottle } from '../metered-throttle.ts';
import { between } from '../random.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import { aheadForMinuteIn, judge, startTrial } from '../trial.ts';

const PLAN = { ...PLANS.pro, windows: 'fixed' } as const;
const KEY = 'pro-key';
const STAYS_SHARE = 0.1;
/** When the window begins that the waiters wait for, and around when they go away. */
const WINDOW_IN_MS = 20_000;
const GOES_MS = [12_000, 20_900] as const;
const HTTP_WAITERS = 200;
const THROTTLE_WAITERS = 900;

/** Most of those who wait lose patience, up to the very moment in which their turn comes. */
export const abandoned: Scenario = {
  name: 'abandoned',
  goal: '90 % of the waiters go away: nothing is sent for them, tokens exact',
  plan: 'pro',
  windows: PLAN.windows,
  replicas: 1,
  run: leave,
};

async function leave(bench: Bench): Promise<Findings> {
  const [inThrottle, overHttp] = await Promise.all([leaveThrottle(bench), leaveHttp(bench)]);
  return {
    arrivals: inThrottle.arrivals + overHttp.arrivals,
    refusals: inThrottle.refusals + overHttp.refusals,
    measured: `${inThrottle.measured}; ${overHttp.measured}`,
    problems: [...inThrottle.problems, ...overHttp.problems],
  };
}

async function leaveThrottle({ random }: Bench): Promise<Findings> {
  const log = pino({ level: 'silent' });
  const rules = { plan: { ...PLAN, known: true }, probeMs: 5_000 };
  const ledger = createMemoryLedger({ rules, now: steadyTime(systemClock), log });
  const upstream = createStrictPlan({ ...PLAN, tells: 'minute' });
  const aheadMs = aheadForMinuteIn(WINDOW_IN_MS);
  const latencyMs = () => between(random, 5, 40);
  const metered = createMeteredThrottle({ key: KEY, ledger, upstream, aheadMs, latencyMs });
  const { call, arrivals, throttle } = metered;
  await Promise.all(Array.from({ length: PLAN.perMinute }, (_, index) => call(`early ${index}`, { waitMs: 5_000 })));
  const leftAtMs = new Map<string, number>();
  const passages = Array.from({ length: THROTTLE_WAITERS }, async (_, index) => {
    const name = `waiter ${index}`;
    const leaving = new AbortController();
    if (random() >= STAYS_SHARE) {
      void setTimeout(between(random, ...GOES_MS)).then(() => {
        leftAtMs.set(name, Date.now() + aheadMs);
        leaving.abort();
      });
    }
    return call(name, { waitMs: 300_000, signal: leaving.signal });
  });
  const settled = await Promise.all(passages);
  await throttle.close();
  const sentFor = new Map(arrivals.map(({ name, atMs }) => [name, atMs]));
  const late = [...leftAtMs].filter(([name, atMs]) => (sentFor.get(name) ?? 0) > atMs);
  const problems = late.map(([name]) => `${name} was sent though it had gone`);
  const gone = settled.filter((passage) => passage.kind === 'refused' && passage.reason === 'aborted').length;
  const answered = settled.filter(({ kind }) => kind === 'answered').length;
  if (gone + answered !== THROTTLE_WAITERS)
    problems.push(`${gone} gone and ${answered} answered of ${THROTTLE_WAITERS}`);
  const tokens = metered.tokens();
  const { granted, sent, returned } = tokens;
  if (sent !== arrivals.length) problems.push(`${sent} reported as sent, ${arrivals.length} arrived`);
  const measured = `throttle: ${gone} gone; ${granted} tokens = ${sent} sent + ${returned} returned`;
  return judge({ arrivals, tokens, plan: PLAN, measured, problems });
}

async function leaveHttp(bench: Bench): Promise<Findings> {
  const trial = await startTrial(bench, { plan: PLAN, replicas: 1, upstreamAheadMs: aheadForMinuteIn(WINDOW_IN_MS) });
  const { upstream, replicas } = trial;
  const requests: ClientRequest[] = [];
  const call = (name: string, signal?: AbortSignal) =>
    send({
      endpoint: replicas.process(0).address,
      key: KEY,
      name,
      waitSeconds: 69,
      requests,
      ...(signal ? { signal } : {}),
    });
  await Promise.all(Array.from({ length: PLAN.perMinute }, (_, index) => call(`early ${index}`)));
  const leaving = new AbortController();
  const goes = (index: number) => index % 10 !== 0;
  const calls = Array.from({ length: HTTP_WAITERS }, (_, index) =>
    call(`waiter ${index}`, goes(index) ? leaving.signal : undefined),
  );
  await setTimeout(4_000);
  leaving.abort();
  const staying = Array.from({ length: HTTP_WAITERS }, (_, index) => index).filter((index) => !goes(index)).length;
  await until(() => upstream.arrivals.length >= PLAN.perMinute + staying);
  await Promise.all(calls);
  await setTimeout(2_000);
  const sent = upstream.arrivals.length - PLAN.perMinute;
  const problems = sent === staying ? [] : [`${sent} calls for ${staying} that stayed`];
  return judge({
    arrivals: upstream.arrivals,
    requests,
    plan: PLAN,
    measured: `HTTP: ${HTTP_WAITERS - staying} gone, ${sent} sent for ${staying}`,
    problems,
  });
}
