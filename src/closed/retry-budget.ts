/** How many calls earn a retry. */
const CALLS_PER_RETRY = 10;
/** Retries that may be saved up. */
const MAX_RETRIES = 3;

/** A token bucket for the early retries of one key: an upstream that fails is not called much more than one that works. */
export class RetryBudget {
  #calls = 0;

  /** Records that a call was sent which is no retry. */
  recordCall(): void {
    this.#calls = Math.min(this.#calls + 1, MAX_RETRIES * CALLS_PER_RETRY);
  }

  /** Uses a retry; false where there is none. */
  use(): boolean {
    if (this.#calls < CALLS_PER_RETRY) return false;
    this.#calls -= CALLS_PER_RETRY;
    return true;
  }
}
