import { readFileSync } from 'node:fs';
import type { Lateness } from '../../support/faults.ts';
import type { Replica } from '../../support/fleet.ts';

export interface WatchedLateness extends Lateness, Disposable {
  readonly longestMs: number;
}

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
export function watchLateness(replicas: readonly Replica[]): WatchedLateness {
  const late: Late[] = [];
  const waitedMs = new WeakMap<Replica, number>();
  let lastMs = performance.now();
  let longestMs = 0;
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
      let sum = 0;
      // From the end, where most spans lie.
      for (let index = late.length - 1; index >= 0; index -= 1) {
        const one = late[index];
        if (!one || one.atMs < fromMs) break;
        if (one.replica !== undefined && replica !== undefined && one.replica !== replica) continue;
        sum += Math.max(0, Math.min(one.atMs, untilMs) - Math.max(one.atMs - one.ms, fromMs));
      }
      return sum;
    },
    get longestMs() {
      return longestMs;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };

  function note(one: Late): void {
    if (one.ms < USUAL_MS) return;
    longestMs = Math.max(longestMs, one.ms);
    late.push(one);
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
