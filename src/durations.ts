/** What can be set in milliseconds, by a flag, a variable or an option: how little, how much, and what it is otherwise. */
export const DURATIONS = {
  /** How long one upstream call may take. */
  upstreamTimeoutMs: { lowest: 1, highest: 600_000, fallback: 5_000 },
  /** How long a request may wait for the plan. */
  maxWaitMs: { lowest: 0, highest: 600_000, fallback: 10_000 },
  /** How old an answer may be to be served as it is. */
  maxAgeMs: { lowest: 0, highest: 86_400_000, fallback: 1_000 },
  /** How old an answer may be to be better than none. */
  maxStaleMs: { lowest: 0, highest: 86_400_000, fallback: 600_000 },
} as const;
