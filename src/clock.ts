/** The time, injected wherever it matters so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. The machine's clock may be set back or forth. */
  readonly now: () => number;
  /** Milliseconds since some moment; nothing sets it back. On Linux it stands still while the machine is suspended. */
  readonly elapsed: () => number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/** A wall clock that is ahead by more than this was not adjusted; the machine was suspended. */
const SUSPENDED_MS = 60_000;

/**
 * Whole milliseconds since the Unix epoch that only grow: the wall clock at first, and what has elapsed since. Comparable over
 * restarts. It follows a wall clock that leaps ahead, so that a day ends while the machine is suspended, and never one set back.
 */
export function steadyTime({ now, elapsed }: Clock): () => number {
  let startMs = now() - elapsed();
  return () => {
    const aheadMs = now() - elapsed() - startMs;
    if (aheadMs > SUSPENDED_MS) startMs += aheadMs;
    return Math.floor(startMs + elapsed());
  };
}
