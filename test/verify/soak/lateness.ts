import { readFileSync } from 'node:fs';
import type { Lateness } from '../../support/faults.ts';
import type { Replica } from '../../support/fleet.ts';

interface Late {
  readonly atMs: number;
  readonly ms: number;
  /** Undefined for this process. */
  readonly replica?: number;
}

const EVERY_MS = 100;
/** Timers are never exact. */
const USUAL_MS = 25;

/** Watches how long this process and the replicas wanted to run and could not. */
export function watchLateness(replicas: readonly Replica[]): Disposable & Lateness {
  const late: Late[] = [];
  const waitedMs = new WeakMap<Replica, number>();
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const atMs = performance.now();
    note({ atMs, ms: atMs - lastMs - EVERY_MS });
    lastMs = atMs;
    for (const replica of replicas) {
      const waited = runQueueWaitMs(replica.process.pid);
      note({ atMs, ms: waited - (waitedMs.get(replica) ?? waited), replica: replica.index });
      waitedMs.set(replica, waited);
    }
  }, EVERY_MS);

  return {
    during({ fromMs, untilMs }, replica) {
      // Most spans lie at the end.
      const since = late.slice(late.findLastIndex(({ atMs }) => atMs < fromMs) + 1);
      return since
        .filter((one) => one.replica === undefined || replica === undefined || one.replica === replica)
        .reduce((sum, { atMs, ms }) => sum + Math.max(0, Math.min(atMs, untilMs) - Math.max(atMs - ms, fromMs)), 0);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };

  function note(one: Late): void {
    if (one.ms >= USUAL_MS) late.push(one);
  }
}

/** How long its main thread was ready to run and waited for a processor, ever (proc(5), schedstat). */
function runQueueWaitMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1_000_000;
  } catch {
    // It is gone.
    return 0;
  }
}
