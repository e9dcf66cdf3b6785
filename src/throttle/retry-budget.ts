/** How many calls earn a retry. */
const CALLS_PER_RETRY = 10;
/** Retries that may be saved up. */
const MAX_RETRIES = 3;

export type RetryBudget = ReturnType<typeof createRetryBudget>;

/** A token bucket for the early retries of one key: an upstream that fails is not called much more than one that works. */
export function createRetryBudget() {
  let calls = 0;
  return {
    /** Records that a call was sent which is no retry. */
    recordCall() {
      calls = Math.min(calls + 1, MAX_RETRIES * CALLS_PER_RETRY);
    },
    /** Takes a retry; false where there is none. */
    take(): boolean {
      if (calls < CALLS_PER_RETRY) return false;
      calls -= CALLS_PER_RETRY;
      return true;
    },
  };
}
