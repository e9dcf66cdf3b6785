import { LRUCache } from 'lru-cache';
import type { CallerRequest } from '../common/caller-request.ts';
import { maxEntries } from '../common/memory.ts';
import type { Visitor } from '../quota/visitors.ts';
import { SECOND_MS } from '../common/plan.ts';
import { CROWD_MS, MIN_RETURN_MS } from '../common/call-times.ts';

const MAX_VISITORS_TOLD = 1_000;

/**
 * When the refused clients of one key are told to return. It counts them by the second, so that the next ones that are refused are
 * told a time at which the plan has room for them too. Nothing is reserved, and a time that is over is forgotten.
 *
 * A visitor counts once, however often it comes back before its time, and a request once, whatever it wants: a careless client
 * delays itself.
 */
export class ReturnTimes {
  /** In the order in which they were told, which is nearly that of the times. */
  #counts: Map<number, number> | undefined;
  /** When each visitor is to return; undefined before the first. */
  #visitors: LRUCache<string, number> | undefined;
  /** Requests without a visitor, by the second in which they were refused; undefined before the first. */
  #nameless: Map<number, number> | undefined;

  /** Returns how many are still to return. */
  count(nowMs: number): number {
    let count = 0;
    for (const [second, clients] of this.#counts ?? []) {
      if (second * SECOND_MS <= nowMs) this.#counts?.delete(second);
      else count += clients;
    }
    return count;
  }

  /** Tells a request when to return, unless it or its visitor was told before. Returns after which time. */
  promiseReturn(
    request: CallerRequest,
    waitMs: number,
    { nowMs, isCounted }: { nowMs: number; isCounted: boolean },
  ): number {
    const { visitor } = request;
    const beforeMs = Math.max(request.promisedAtMs, this.#promisedAtMs(visitor));
    if (beforeMs > nowMs) {
      request.promisedAtMs = beforeMs;
      return beforeMs - nowMs;
    }

    request.promisedAtMs = nowMs + this.retryAfterMs(waitMs);
    const second = Math.floor(request.promisedAtMs / SECOND_MS);
    const isNew = isCounted && (visitor !== undefined || this.#isNew(nowMs));
    if (isNew) add((this.#counts ??= new Map()), second);
    if (visitor !== undefined)
      (this.#visitors ??= new LRUCache(maxEntries(MAX_VISITORS_TOLD))).set(visitor, request.promisedAtMs);
    return request.promisedAtMs - nowMs;
  }

  /** Returns the wait with up to a second, so that not all return in one moment. */
  retryAfterMs(waitMs: number): number {
    return Math.max(MIN_RETURN_MS, waitMs) + Math.random() * SECOND_MS;
  }

  #promisedAtMs(visitor: Visitor): number {
    return (visitor === undefined ? undefined : this.#visitors?.get(visitor)) ?? -Infinity;
  }

  /** Counts a refused request without a visitor. Returns whether it is of a client that is not counted yet. */
  #isNew(nowMs: number): boolean {
    const second = Math.floor(nowMs / SECOND_MS);
    const nameless = (this.#nameless ??= new Map());
    add(nameless, second);

    let refusedLately = 0;
    for (const [refusedIn, requests] of nameless) {
      if ((refusedIn + 1) * SECOND_MS <= nowMs - CROWD_MS) nameless.delete(refusedIn);
      else refusedLately += requests;
    }
    return refusedLately > this.count(nowMs);
  }
}

/** Adds one to the count of a second. */
function add(counts: Map<number, number>, second: number): void {
  counts.set(second, (counts.get(second) ?? 0) + 1);
}
