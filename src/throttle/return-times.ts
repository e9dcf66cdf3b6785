import type { CallerRequest } from '../caller-request.ts';

const SECOND_MS = 1_000;
const MIN_RETRY_AFTER_MS = 1_000;

/**
 * When the refused requests of one key are told to return. It counts them by the second, so that the next ones that are refused
 * are told a time at which the plan has room for them too. Nothing is reserved, and a time that is over is forgotten.
 *
 * A request counts once, whatever it wants: most want one call, and more would keep the plan idle for those that never return.
 */
export class ReturnTimes {
  /** In the order in which they were told, which is nearly that of the times. */
  readonly #counts = new Map<number, number>();

  /** Returns how many are still to return. */
  count(nowMs: number): number {
    let count = 0;
    for (const [second, calls] of this.#counts) {
      if (second * SECOND_MS <= nowMs) this.#counts.delete(second);
      else count += calls;
    }
    return count;
  }

  /** Tells a request when to return, unless it was told before. Returns after which time. */
  tell(request: CallerRequest, waitMs: number, { nowMs, isCounted }: { nowMs: number; isCounted: boolean }): number {
    if (request.toldAtMs > nowMs) return request.toldAtMs - nowMs;

    request.toldAtMs = nowMs + this.retryAfterMs(waitMs);
    const second = Math.floor(request.toldAtMs / SECOND_MS);
    if (isCounted) this.#counts.set(second, (this.#counts.get(second) ?? 0) + 1);
    return request.toldAtMs - nowMs;
  }

  /** Returns the wait with up to a second, so that not all return in one moment. */
  retryAfterMs(waitMs: number): number {
    return Math.max(MIN_RETRY_AFTER_MS, waitMs) + Math.random() * SECOND_MS;
  }
}
