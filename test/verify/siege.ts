import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { post } from '../support/client.ts';
import { figureOf, metricsOf } from '../support/fleet.ts';
import { UNLIMITED } from '../support/pet-api/strict-plan.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { deploy } from './deployment.ts';
import { ATTACKS } from './siege/attacks.ts';
import type { AttackName, Order } from './siege/attacks.ts';
import type { Check, Suite } from './suite.ts';

const NAMES = Object.keys(ATTACKS) as AttackName[];
const MAX_DELAY_P99_MS = 50;
const MAX_RESIDENT_MB = 700;
/** A client that asks more seldom has shown nothing. */
const MAX_PAUSE_MS = 500;
const GOAL = `a good client is answered, event loop less than ${MAX_DELAY_P99_MS} ms late (p99)`;

export const siege: Suite = {
  about: 'costly documents, bodies past the limit, a key for each request',
  minutes: 0.3,
  // Each attack keeps a processor busy with few connections.
  checks: [...NAMES.map((name) => checkOf(name, [name], 20)), checkOf('all-at-once', NAMES, 4)],
};

function checkOf(name: string, attacks: readonly AttackName[], connections: number): Check {
  const run: Check['run'] = async ({ minutes, seed }) => {
    const durationMs = minutes * 60_000;
    const { asked, answered, figures } = await besiege({ attacks, connections, durationMs, seed });
    const { delayP99Ms, residentMb } = figures;
    const problems = [
      answered < asked && `the good client got ${answered} results of ${asked}`,
      asked < durationMs / MAX_PAUSE_MS && `the good client asked only ${asked} times`,
      !(delayP99Ms < MAX_DELAY_P99_MS) && `the event loop was ${delayP99Ms} ms late (p99)`,
      !(residentMb <= MAX_RESIDENT_MB) && `petql held ${residentMb} MB`,
    ].filter((problem) => problem !== false);
    return [rowOf({ promise: GOAL, looked: asked, problems, measured: textOf(figures), figures })];
  };
  return { name, goal: GOAL, run };
}

/** All attacks, held to no time: breaks only where a good client gets no result. */
export async function besiegeBriefly(promise: string, seed: number): Promise<readonly Row[]> {
  const options = { attacks: NAMES, connections: 2, durationMs: 4_000, seed };
  const { asked, answered, figures } = await besiege(options);
  const problems = answered < asked ? [`the good client got ${answered} results of ${asked}`] : [];
  return [rowOf({ promise, looked: asked, problems, measured: textOf(figures), figures })];
}

const WARM_UP = 20;
const ASK_EVERY_MS = 50;
const ANSWERED_WITHIN_MS = 20_000;
/** Of the monitor of Node.js that the metrics show: it adds what it waits between two looks. */
const RESOLUTION_MS = 10;

/** Attacks a petql process while one client queries it as clients do. */
async function besiege({ durationMs, ...order }: Omit<Order, 'endpoint'> & { readonly durationMs: number }) {
  await using resources = new AsyncDisposableStack();
  const args = ['--plan', '100000000/900000000', '--log-level', 'silent'];
  const { petApi, fleet } = await deploy(resources, { planOf: () => UNLIMITED, replicas: 1, args });
  const { process } = fleet.replica(0);
  let answered = 0;
  let slowestMs = 0;
  const ask = async () => {
    const startedMs = performance.now();
    const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
    const answer = await post(process.address, '{ pets(limit: 3) { id name } }', { signal }).catch(() => undefined);
    if (answer?.data?.['pets']?.length === 3) answered += 1;
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
  };
  // What a process does at its first requests is no attack's doing.
  for (let warmUp = 0; warmUp < WARM_UP; warmUp += 1) await ask();
  // Each look at the metrics resets those of the event loop.
  await metricsOf(process);
  [answered, slowestMs] = [0, 0];
  const workerData: Order = { ...order, endpoint: process.address };
  const attackers = new Worker(new URL('siege/attacks.ts', import.meta.url), { workerData });
  resources.defer(async () => void (await attackers.terminate()));
  const asking: Promise<void>[] = [];
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; await setTimeout(ASK_EVERY_MS)) {
    asking.push(ask());
    petApi.log.length = 0;
  }
  await Promise.all(asking);
  const metrics = await metricsOf(process);
  const figures = {
    delayP99Ms: figureOf(metrics, 'nodejs_eventloop_lag_p99_seconds') * 1_000 - RESOLUTION_MS,
    delayMaxMs: figureOf(metrics, 'nodejs_eventloop_lag_max_seconds') * 1_000 - RESOLUTION_MS,
    heapMb: figureOf(metrics, 'nodejs_heap_size_used_bytes') / 1e6,
    residentMb: figureOf(metrics, 'process_resident_memory_bytes') / 1e6,
    slowestMs,
  };
  return { asked: asking.length, answered, figures };
}

function textOf(figures: Awaited<ReturnType<typeof besiege>>['figures']): string {
  const { delayP99Ms, delayMaxMs, slowestMs, heapMb, residentMb } = figures;
  return (
    `delay p99 ${delayP99Ms.toFixed(1)} ms, max ${delayMaxMs.toFixed(0)} ms; slowest result ${slowestMs.toFixed(0)} ms; ` +
    `heap ${heapMb.toFixed(0)} of ${residentMb.toFixed(0)} MB`
  );
}
