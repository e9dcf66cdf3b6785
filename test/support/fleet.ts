import { startPetql } from './run-petql.ts';
import type { PetqlProcess } from './run-petql.ts';
import { until } from './until.ts';

/** Replicas: real processes of petql over one upstream. */
export interface Fleet extends AsyncDisposable {
  /** Where each is, after a restart too. */
  readonly endpoints: readonly (() => string)[];
  process(index: number): PetqlProcess;
  /** kill -9. */
  kill(index: number): Promise<void>;
  /** Starts a new process in the place of one that is over. */
  restart(index: number): Promise<void>;
  /** Settles once each replica counts all of them, by its metrics (`--admin-port`). */
  knowEachOther(): Promise<void>;
}

export interface FleetOptions {
  readonly count: number;
  readonly upstreamUrl: string;
  readonly redisUrl?: string | undefined;
  readonly args?: readonly string[];
  /** How far the clock of each replica is ahead of the machine's, in milliseconds. Default 0. */
  readonly clocksAheadMs?: readonly number[];
  /** By how much the clock of each replica jumps at each SIGUSR2, in turn; in milliseconds. Default: not at all. */
  readonly clockJumpsMs?: readonly number[];
}

const SHIFT_CLOCK = new URL('shift-clock.ts', import.meta.url).href;

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { count, upstreamUrl, redisUrl, args = [], clocksAheadMs = [], clockJumpsMs = [] } = options;
  const processes: PetqlProcess[] = [];
  // One after the other: a machine of two cores starts them no faster together.
  for (let index = 0; index < count; index += 1) processes.push(await start(index));

  return {
    endpoints: processes.map((_, index) => () => process(index).address),
    process,
    kill,
    async restart(index) {
      processes[index] = await start(index);
    },
    knowEachOther: () =>
      until(async () => {
        const metrics = await Promise.all(processes.map(metricsOf));
        return metrics.every((text) => figureOf(text, 'petql_replicas') === count);
      }),
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map((_, index) => kill(index)));
    },
  };

  function process(index: number): PetqlProcess {
    const found = processes[index];
    if (!found) throw new Error(`expected a replica below ${count}, got ${index}`);
    return found;
  }

  async function kill(index: number): Promise<void> {
    process(index).kill('SIGKILL');
    await process(index).exited;
  }

  function start(index: number): Promise<PetqlProcess> {
    const aheadMs = clocksAheadMs[index] ?? 0;
    const clock = { CLOCK_AHEAD_MS: String(aheadMs), CLOCK_JUMPS_MS: clockJumpsMs.join(',') };
    const isWrong = aheadMs !== 0 || clockJumpsMs.length > 0;
    const env = isWrong ? { NODE_OPTIONS: `--import ${SHIFT_CLOCK}`, ...clock } : {};
    const redis = redisUrl === undefined ? [] : ['--redis-url', redisUrl];
    const base = ['--port', '0', '--pet-api-url', upstreamUrl, '--log-level', 'error'];
    return startPetql([...base, ...redis, ...args], { env });
  }
}

/** The text of a process's metrics. */
export async function metricsOf({ output }: PetqlProcess): Promise<string> {
  const address = /^Admin +(\S+)/m.exec(output.stdout)?.[1] ?? '';
  return (await fetch(address, { signal: AbortSignal.timeout(METRICS_TIMEOUT_MS) })).text();
}

const METRICS_TIMEOUT_MS = 2_000;

export function figureOf(metrics: string, name: string): number {
  return Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1]);
}
