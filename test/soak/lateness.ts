import type { Span } from './disturbances.ts';

/** How long this process was kept from running, as a sign of how busy the machine is with other things. */
export interface Lateness {
  /** In milliseconds, in all of the span. */
  during(span: Span): number;
  readonly longestMs: number;
  stop(): void;
}

const EVERY_MS = 50;
/** Timers are never exact. */
const USUAL_MS = 25;
/** Creations are judged when all is over. */
const REMEMBERED = 200_000;

export function watchLateness(): Lateness {
  const late: { readonly atMs: number; readonly ms: number }[] = [];
  let lastMs = performance.now();
  let longestMs = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const ms = nowMs - lastMs - EVERY_MS;
    lastMs = nowMs;
    if (ms < USUAL_MS) return;
    longestMs = Math.max(longestMs, ms);
    late.push({ atMs: nowMs, ms });
    if (late.length > REMEMBERED) late.shift();
  }, EVERY_MS);
  return {
    during({ fromMs, untilMs }) {
      let sum = 0;
      // From the end, where most that is asked for lies.
      for (let index = late.length - 1; index >= 0; index -= 1) {
        const { atMs = 0, ms = 0 } = late[index] ?? {};
        if (atMs < fromMs) break;
        sum += Math.max(0, Math.min(atMs, untilMs) - Math.max(atMs - ms, fromMs));
      }
      return sum;
    },
    get longestMs() {
      return longestMs;
    },
    stop: () => clearInterval(timer),
  };
}
