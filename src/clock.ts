/** The time, injected wherever it matters so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. Whoever keeps the machine may set it back or forth. */
  now(): number;
  /** Milliseconds since some moment, which nothing sets back. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/**
 * Whole milliseconds since the Unix epoch that only ever grow: the wall clock as it was at first, and what has elapsed
 * since. Comparable over restarts, and unmoved when somebody sets the wall clock.
 */
export function steadyTime({ now, elapsed }: Clock): () => number {
  const startMs = now() - elapsed();
  return () => Math.floor(startMs + elapsed());
}
