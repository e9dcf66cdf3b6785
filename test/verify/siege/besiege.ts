import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { post } from '../../support/client.ts';
import { figureOf, metricsOf } from '../../support/fleet.ts';
import { fails, forKey, on } from '../../support/pet-api/fault.ts';
import type { FaultRule } from '../../support/pet-api/fault.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import type { PetqlProcess } from '../../support/run-petql.ts';
import { deploy } from '../deployment.ts';
import type { Deployment } from '../deployment.ts';
import { FAILING_KEY, MADE_UP_KEY } from './attacks.ts';
import type { Order, Report } from './attacks.ts';

export interface Siege extends Pick<Order, 'attacks' | 'connections'> {
  /** Requests in all; the siege ends with them. Default: as many as fit into its time. */
  readonly requests?: number | undefined;
  /** Max growth of the heap after a collection. Default: none. */
  readonly maxGrownMb?: number;
  /** Where petql keeps its accounts. Default: in memory. */
  readonly store?: 'memory' | 'redis' | 'state-file';
  /** Arguments of petql beside those of all sieges. */
  readonly args?: readonly string[];
  /** What happens before the attack. */
  readonly prepare?: (deployment: Deployment) => unknown;
  /** Returns what is wrong after it. */
  readonly judge?: (deployment: Deployment) => Promise<string | undefined>;
}

/** What V8 takes in a container of 512 MB. */
const HEAP_MB = 256;
const COLLECTOR = new URL('../../support/collect-garbage.ts', import.meta.url).href;
const NODE_OPTIONS = [`--max-old-space-size=${HEAP_MB}`, '--import', COLLECTOR];
/** The good client's list stays fresh, so it costs one call unless an attack evicts it. */
const ARGS = ['--plan', '100000000/900000000', '--max-age-ms', '3600000', '--log-level', 'silent'];

/** The pet API fails for one key, and for creates of the made-up ones. */
const FAULTS: FaultRule = [
  forKey(FAILING_KEY, fails(500)),
  on('create', ({ key }) => (key.startsWith(MADE_UP_KEY) ? fails(503) : undefined)),
];

const GOOD_KEY = 'demo-free';
const WARM_UP = 20;
const ASK_EVERY_MS = 50;
const ANSWERED_WITHIN_MS = 20_000;
const COLLECTED_WITHIN_MS = 1_000;
/** Of the monitor of Node.js that the metrics show: it adds what it waits between two looks. */
const RESOLUTION_MS = 10;

export type Besieged = Awaited<ReturnType<typeof besiege>>;

/** Attacks a petql process while one client queries it as clients do. */
export async function besiege(siege: Siege & { readonly durationMs: number; readonly seed: number }) {
  const { attacks, connections, requests, store = 'memory', args = [], prepare, judge, durationMs, seed } = siege;
  await using resources = new AsyncDisposableStack();
  const replica = { replicas: 1, args: [...ARGS, ...args], nodeOptions: NODE_OPTIONS, store };
  const deployment = await deploy(resources, { ...replica, planOf });
  const { petApi, fleet } = deployment;
  const { process } = fleet.replica(0);
  petApi.fault = FAULTS;
  let end: number | string | undefined;
  void process.exited.then((code) => (end = code));

  // What a process does at its first requests is no attack's doing.
  for (let warmUp = 0, client = createGoodClient(process); warmUp < WARM_UP; warmUp += 1) await client.ask();
  const heapBeforeMb = await heapAfterCollection(process);
  await prepare?.(deployment);
  petApi.log.length = 0;

  const order = { endpoint: process.address, attacks, connections, seed };
  const attackers = startAttackers(resources, { ...order, requests: requests && requests / attacks.length });
  const client = createGoodClient(process);
  const asking: Promise<void>[] = [];
  for (const endMs = performance.now() + durationMs; !attackers.report; await setTimeout(ASK_EVERY_MS)) {
    if (end !== undefined) throw new Error(`petql ended with ${end}: ${lastWords(process)}`);
    asking.push(client.ask());
    client.seen.calls += petApi.log.splice(0).filter(({ key }) => key === GOOD_KEY).length;
    if (requests === undefined && performance.now() > endMs) attackers.stop();
  }
  await Promise.all(asking);

  // Each look at the metrics resets those of the event loop, and a collection holds it.
  const metrics = await metricsOf(process);
  const problem = await judge?.(deployment);
  const heapMb = await heapAfterCollection(process);
  const figures = {
    delayP99Ms: figureOf(metrics, 'nodejs_eventloop_lag_p99_seconds') * 1_000 - RESOLUTION_MS,
    delayMaxMs: figureOf(metrics, 'nodejs_eventloop_lag_max_seconds') * 1_000 - RESOLUTION_MS,
    heapMb,
    grownMb: heapMb - heapBeforeMb,
    residentMb: await peakResidentMb(process),
  };
  return { client: client.seen, report: attackers.report, problem, figures };
}

function planOf(key: string) {
  return key.startsWith(MADE_UP_KEY) ? undefined : UNLIMITED;
}

function createGoodClient({ address }: PetqlProcess) {
  const seen = { asked: 0, answered: 0, slowestMs: 0, calls: 0 };
  return {
    seen,
    async ask(): Promise<void> {
      const startedMs = performance.now();
      seen.asked += 1;
      const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
      const answer = await post(address, '{ pets(limit: 3) { id name } }', { signal }).catch(() => undefined);
      if (answer?.data?.['pets']?.length === 3) seen.answered += 1;
      seen.slowestMs = Math.max(seen.slowestMs, performance.now() - startedMs);
    },
  };
}

function startAttackers(resources: AsyncDisposableStack, order: Order) {
  const worker = new Worker(new URL('attacks.ts', import.meta.url), { workerData: order });
  resources.defer(async () => void (await worker.terminate()));
  const attackers = {
    report: undefined as Report | undefined,
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
    stop: () => worker.postMessage('stop'),
  };
  worker.once('message', (report: Report) => (attackers.report = report));
  return attackers;
}

async function heapAfterCollection(process: PetqlProcess): Promise<number> {
  process.kill('SIGUSR2');
  await setTimeout(COLLECTED_WITHIN_MS);
  return figureOf(await metricsOf(process), 'nodejs_heap_size_used_bytes') / 1e6;
}

/** The most that it ever held, as Linux counts it. */
async function peakResidentMb({ pid }: PetqlProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return (Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024) / 1e6;
}

function lastWords({ output }: PetqlProcess): string {
  return /^FATAL ERROR.*$/m.exec(output.stderr)?.[0] ?? output.stderr.slice(-200);
}
