import { uptime } from 'node:os';

/** The time, injected wherever it matters so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. Whoever keeps the machine may set it back or forth. */
  now(): number;
  /** Milliseconds since some moment, which nothing sets back. Those that the machine slept may not count. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/**
 * Milliseconds since some moment that the machine slept and `systemClock.elapsed` did not count, give or take a second: on
 * Linux the machine's own time goes on in a sleep (CLOCK_BOOTTIME), and the process's stands still (CLOCK_MONOTONIC).
 */
export function systemSlept(): number {
  try {
    return uptime() * 1_000 - performance.now();
  } catch {
    // Some sandboxes do not say.
    return 0;
  }
}

/** What the difference of two clocks may change by while the machine is awake. */
const SLEPT_MS = 5_000;
const LOOK_EVERY_MS = 1_000;

/**
 * Whole milliseconds since the Unix epoch that only ever grow: the wall clock as it was at first, and what has gone by
 * since. Comparable over restarts, and unmoved when somebody sets the wall clock.
 *
 * @param slept see `systemSlept`. Default: the machine never sleeps.
 */
export function steadyTime({ now, elapsed }: Clock, slept: () => number = () => 0): () => number {
  const startMs = now() - elapsed();
  const sleptBeforeMs = slept();
  let sleptMs = 0;
  let lookedAtMs = elapsed();
  return () => {
    const elapsedMs = elapsed();
    if (elapsedMs - lookedAtMs >= LOOK_EVERY_MS) {
      lookedAtMs = elapsedMs;
      const sinceMs = slept() - sleptBeforeMs;
      if (sinceMs - sleptMs >= SLEPT_MS) sleptMs = sinceMs;
    }
    return Math.floor(startMs + elapsedMs + sleptMs);
  };
}
