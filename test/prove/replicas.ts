import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';

/** Real processes of petql over one upstream, as somebody runs them who has several. */
export interface Replicas {
  /** Where each is to be found, after a restart too. */
  readonly endpoints: readonly (() => string)[];
  process(index: number): PetqlProcess;
  /** Ends one at once, as the kernel does it. */
  kill(index: number): Promise<void>;
  /** Starts one anew. */
  restart(index: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ReplicasOptions {
  readonly count: number;
  readonly upstreamUrl: string;
  readonly redisUrl?: string | undefined;
  readonly args?: readonly string[];
  /** How far each replica's clock is ahead of the machine's, in milliseconds. Default: not at all. */
  readonly clocksAheadMs?: readonly number[];
  /** By how much each replica's clock jumps at each SIGUSR2, in turn; in milliseconds. Default: it does not. */
  readonly clockJumpsMs?: readonly number[];
}

const SHIFT_CLOCK = new URL('shift-clock.ts', import.meta.url).href;
/** Longer than a window, so that clients can wait for the next one. */
const MAX_WAIT_MS = 70_000;

export async function startReplicas(options: ReplicasOptions): Promise<Replicas> {
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
    const wrong = aheadMs !== 0 || clockJumpsMs.length > 0;
    const env = wrong ? { NODE_OPTIONS: `--import ${SHIFT_CLOCK}`, ...clock } : {};
    const redis = redisUrl === undefined ? [] : ['--redis-url', redisUrl];
    const base = ['--port', '0', '--pet-api-url', upstreamUrl, '--max-wait-ms', String(MAX_WAIT_MS)];
    return startPetql([...base, '--log-level', 'error', ...redis, ...args], { env });
  }
}
