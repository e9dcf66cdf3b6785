import { readFileSync } from 'node:fs';
import type { Lateness } from '../../support/faults.ts';

export interface WatchedLateness extends Lateness, Disposable {
  readonly longestMs: number;
}

interface Late {
  readonly atMs: number;
  readonly ms: number;
  /** Undefined for this process. */
  readonly replica: number | undefined;
}

const EVERY_MS = 100;
/** Timers are never exact. */
const USUAL_MS = 25;
/** Creations are judged when all is over. */
const REMEMBERED = 200_000;

/** @param watched the processes of petql that run now. */
export function watchLateness(watched: () => readonly { replica: number; pid: number }[]): WatchedLateness {
  const late: Late[] = [];
  const waitedMs = new Map<number, number>();
  let lastMs = performance.now();
  let longestMs = 0;
  const timer = setInterval(() => {
    const atMs = performance.now();
    note({ atMs, ms: atMs - lastMs - EVERY_MS, replica: undefined });
    lastMs = atMs;
    for (const { replica, pid } of watched()) {
      const waited = runQueueWaitMs(pid);
      note({ atMs, ms: waited - (waitedMs.get(pid) ?? waited), replica });
      waitedMs.set(pid, waited);
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
    if (late.length > REMEMBERED) late.shift();
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
