import { SUSPENDED_MS } from './times.ts';

/** The time. It is injected wherever it matters, so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. The machine's clock may be set back or forth. */
  readonly now: () => number;
  /** Milliseconds since some moment; nothing sets it back. On Linux it stands still while the machine is suspended. */
  readonly elapsed: () => number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/**
 * Returns a clock of whole milliseconds since the Unix epoch that only grow: the wall clock at first, plus the elapsed time. It is
 * comparable over restarts. It follows a wall clock that leaps ahead, so that a day ends while the machine is suspended, and never
 * a clock that was set back.
 */
export function steadyTime({ now, elapsed }: Clock): () => number {
  let startMs = now() - elapsed();
  return () => {
    const elapsedMs = elapsed();
    const aheadMs = now() - elapsedMs - startMs;
    if (aheadMs > SUSPENDED_MS) startMs += aheadMs;
    return Math.floor(startMs + elapsedMs);
  };
}

/**
 * A number of a header that is as large is a timestamp in seconds, and above the second one in milliseconds; a smaller one is seconds
 * from now.
 */
export const MIN_TIMESTAMP_S = 1_000_000_000;
export const MIN_TIMESTAMP_MS = 100_000_000_000;
