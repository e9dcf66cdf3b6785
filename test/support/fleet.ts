import { setTimeout } from 'node:timers/promises';
import type { Faults } from './faults.ts';
import { startPetql } from './run-petql.ts';
import type { PetqlProcess } from './run-petql.ts';
import { until } from './until.ts';

/** Replicas: real processes of petql over one upstream. */
export interface Fleet extends AsyncDisposable {
  /** The processes of this moment. */
  readonly replicas: readonly Replica[];
  /** Where each replica is, after a restart too. */
  readonly endpoints: readonly (() => string)[];
  readonly replica: (index: number) => Replica;
  /** Ends these processes at the same time, and starts new ones in their places. */
  readonly restart: (indexes: readonly number[], signal: EndSignal) => Promise<void>;
  /** SIGSTOP, and SIGCONT when `over` settles. */
  readonly freeze: (index: number, over: Promise<unknown>) => Promise<void>;
  /** Ends all processes for good. */
  readonly end: (signal: EndSignal) => Promise<void>;
  /** Settles once each replica counts all of them, by its metrics (`--admin-port`). */
  readonly knowEachOther: () => Promise<void>;
}

export type EndSignal = 'SIGKILL' | 'SIGTERM';

/** One process. */
export interface Replica {
  readonly index: number;
  /** 0 for the first process of this index, 1 after a restart. */
  readonly life: number;
  readonly process: PetqlProcess;
  /** Whether a load balancer sends requests to it. */
  isServing: boolean;
  isFrozen: boolean;
  /** The signal that ends it, and when it was sent. */
  ending: { readonly signal: EndSignal; readonly atMs: number } | undefined;
}

export interface FleetOptions {
  readonly count: number;
  readonly upstreamUrl: string;
  /** Where restarts and stops are noted. */
  readonly faults: Faults;
  readonly redisUrl?: string | undefined;
  readonly args?: readonly string[];
  /** Options of Node.js beside those of the image. */
  readonly nodeOptions?: readonly string[];
  /** How far the clock of each replica is ahead of the machine's, in milliseconds. Default 0. */
  readonly clocksAheadMs?: readonly number[];
  /** By how much the clock of each replica jumps at each SIGUSR2, in turn; in milliseconds. Default: not at all. */
  readonly clockJumpsMs?: readonly number[];
  /** A process has started. */
  readonly onStart?: (replica: Replica) => void;
}

const SHIFT_CLOCK = new URL('shift-clock.ts', import.meta.url).href;
/** A load balancer learns so late that a process is about to stop. */
const STILL_SERVING_MS = 150;
const METRICS_TIMEOUT_MS = 2_000;

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { count, upstreamUrl, faults, redisUrl, args = [], nodeOptions = [], onStart } = options;
  const { clocksAheadMs = [], clockJumpsMs = [] } = options;
  const replicas: Replica[] = [];
  // One after the other: a machine of two cores starts them no faster together.
  for (let index = 0; index < count; index += 1) replicas.push(await start(index, 0));

  return {
    replicas,
    endpoints: replicas.map((_, index) => () => replica(index).process.address),
    replica,
    async restart(indexes, signal) {
      const notes = indexes.map((index) => faults.begin(signal === 'SIGKILL' ? 'killed' : 'stopping', index));
      await Promise.all(indexes.map((index) => endOne(replica(index), signal)));
      for (const [position, index] of indexes.entries()) {
        replicas[index] = await start(index, replica(index).life + 1);
        notes[position]?.();
      }
    },
    async freeze(index, over) {
      const thawed = faults.begin('frozen', index);
      const frozen = replica(index);
      frozen.process.kill('SIGSTOP');
      frozen.isFrozen = true;
      await over;
      frozen.process.kill('SIGCONT');
      frozen.isFrozen = false;
      thawed();
    },
    end,
    knowEachOther: () =>
      until(async () => {
        const metrics = await Promise.all(replicas.map(({ process }) => metricsOf(process)));
        return metrics.every((text) => figureOf(text, 'petql_replicas') === count);
      }),
    [Symbol.asyncDispose]: () => end('SIGKILL'),
  };

  function replica(index: number): Replica {
    const found = replicas[index];
    if (!found) throw new Error(`expected a replica below ${count}, got ${index}`);
    return found;
  }

  async function end(signal: EndSignal): Promise<void> {
    await Promise.all(replicas.map((one) => endOne(one, signal)));
  }

  async function endOne(one: Replica, signal: EndSignal): Promise<void> {
    one.ending = { signal, atMs: performance.now() };
    one.isServing &&= signal === 'SIGTERM';
    one.process.kill(signal);
    await Promise.race([one.process.exited, setTimeout(STILL_SERVING_MS)]);
    one.isServing = false;
    await one.process.exited;
  }

  async function start(index: number, life: number): Promise<Replica> {
    const aheadMs = clocksAheadMs[index] ?? 0;
    const clock = { CLOCK_AHEAD_MS: String(aheadMs), CLOCK_JUMPS_MS: clockJumpsMs.join(',') };
    const isWrong = aheadMs !== 0 || clockJumpsMs.length > 0;
    const preload = isWrong ? ['--import', SHIFT_CLOCK] : [];
    const env = { NODE_OPTIONS: [...nodeOptions, ...preload].join(' '), ...(isWrong ? clock : {}) };
    const redis = redisUrl === undefined ? [] : ['--redis-url', redisUrl];
    const base = ['--port', '0', '--admin-port', '0', '--pet-api-url', upstreamUrl, '--log-level', 'error'];
    const process = await startPetql([...base, ...redis, ...args], { env });
    const started: Replica = { index, life, process, isServing: true, isFrozen: false, ending: undefined };
    void process.exited.then(() => (started.isServing = false));
    onStart?.(started);
    return started;
  }
}

/** The text of a process's metrics. */
export async function metricsOf({ output }: PetqlProcess): Promise<string> {
  const address = /^Admin +(\S+)/m.exec(output.stdout)?.[1] ?? '';
  return (await fetch(address, { signal: AbortSignal.timeout(METRICS_TIMEOUT_MS) })).text();
}

export function figureOf(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1]);
}
