import { uptime } from 'node:os';

/** The time, injected wherever it matters so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. Whoever keeps the machine may set it back or forth. */
  now(): number;
  /**
   * Milliseconds since some moment, which nothing sets back. Where those do not count that the machine slept, whatever was
   * known before seems younger by them.
   */
  elapsed(): number;
}

/** The process's own: on Linux its `elapsed` stands still while the machine sleeps (CLOCK_MONOTONIC). */
export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/** What the difference of two clocks may change by while the machine is awake. */
const SLEPT_MS = 5_000;
/**
 * To ask for the machine's time takes some 5 µs, a hundred times what a clock takes: so often that is a two-thousandth of the
 * process's time. To fall asleep and wake takes longer by `elapsed`, so that the first reading after it knows of the sleep.
 */
const LOOK_EVERY_MS = 10;

/**
 * The same clock, but its `elapsed` goes on while the machine sleeps, for five seconds or more: what was known before is as old
 * as it is. Timers stand still meanwhile, so by `elapsed` they may end late, never early.
 *
 * @param machineMs milliseconds since some moment, of which those that the machine slept count; NaN where nobody knows.
 */
export function countingSleep({ now, elapsed }: Clock, machineMs: () => number = systemMs): Clock {
  // The machine's first: where the process is halted between the two, that is no sleep.
  const aheadMs = () => machineMs() - elapsed();
  const aheadBeforeMs = aheadMs();
  let sleptMs = 0;
  let lookedAtMs = elapsed();
  return {
    now,
    elapsed() {
      const awakeMs = elapsed();
      if (awakeMs - lookedAtMs >= LOOK_EVERY_MS) {
        lookedAtMs = awakeMs;
        const sinceMs = aheadMs() - aheadBeforeMs;
        if (sinceMs - sleptMs >= SLEPT_MS) sleptMs = sinceMs;
      }
      return awakeMs + sleptMs;
    },
  };
}

/** On Linux the machine's own time goes on in a sleep (CLOCK_BOOTTIME). */
function systemMs(): number {
  try {
    return uptime() * 1_000;
  } catch {
    // Some sandboxes do not say.
    return NaN;
  }
}

/**
 * Whole milliseconds since the Unix epoch that only ever grow: the wall clock as it was at first, and what has gone by
 * since. Comparable over restarts, and unmoved when somebody sets the wall clock.
 */
export function steadyTime({ now, elapsed }: Clock): () => number {
  const startMs = now() - elapsed();
  return () => Math.floor(startMs + elapsed());
}
