import type { LineReads } from '../throttle/line-call.ts';
import { planCalls } from '../pets/call-planner.ts';
import type { PlannedRead } from '../pets/call-planner.ts';
import { CurrentPlan } from './current-plan.ts';
import type { Freshness } from './cache/freshness.ts';
import type { CallerLists } from './cache/caller-lists.ts';
import type { CallerParts } from './caller-parts.ts';
import type { PendingReads } from './pending-reads.ts';
import type { ReadCall } from './read-call.ts';
import { ReadFailures, unprovableError } from './read-failures.ts';
import type { CallKey, ReadKey } from '../pets/read-key.ts';
import type { ReadRequest, ReadResult, RequestTerms, StaleReason } from './read-request.ts';
import { ReadSender } from './read-sender.ts';
import { waitersOf } from './read-waiter.ts';

/**
 * The reads of one caller that wait for calls. Those of all requests merge until a call is sent:
 *
 * 1. `add` takes the reads of a request. The line reviews every change once a turn of the event loop.
 * 2. A review plans the `calls`. The line decides which of them go, wait, are refused or served stale.
 * 3. ReadSender sends a call, and brings its response to the reads.
 * 4. ReadFailures decides about the reads of a call that failed. Either way another review follows.
 */
export class ReadQueue implements LineReads {
  readonly #parts: CallerParts;
  readonly #pending: PendingReads;
  readonly #lists: CallerLists | undefined;
  readonly #failures: ReadFailures;
  readonly #plan: CurrentPlan;

  constructor(parts: CallerParts, pending: PendingReads, lists: CallerLists | undefined) {
    this.#parts = parts;
    this.#pending = pending;
    this.#lists = lists;
    this.#failures = new ReadFailures(parts, pending);
    const sender = new ReadSender(parts, pending, this.#failures, lists);
    this.#plan = new CurrentPlan(parts, pending, this.#failures, sender);
    parts.line.serve(this);
  }

  /** Resolves once all reads of the batch are settled; with an error in the place of each one that failed. */
  add(keys: readonly ReadKey[], request: ReadRequest): Promise<ReadResult[]> {
    return this.#pending.add(keys, request);
  }

  /** Returns the call that would answer this read if it came alone. */
  callFor(key: ReadKey, freshness: Freshness): CallKey | undefined {
    return this.#callFor(this.#pending.unplannedRead(key, freshness));
  }

  isInFlight(call: CallKey): boolean {
    return this.#pending.isInFlight(call);
  }

  /**
   * Returns why a stale entry is served as it is; undefined where a call for it is in flight, or may be sent at once.
   *
   * @param more calls that the same request needs before this one.
   */
  whyServeStale(
    key: ReadKey,
    { freshness, isBackground, visitor }: Pick<RequestTerms, 'freshness' | 'isBackground' | 'visitor'>,
    more: number,
  ): StaleReason | undefined {
    const { failedCalls, line } = this.#parts;
    // 1. A call for it has failed, or is in flight.
    if (!failedCalls.isEmpty || this.#pending.hasFlights) {
      const read = this.#pending.unplannedRead(key, freshness);
      if (this.#isFailing(read)) return 'UPSTREAM_FAILED';
      if (this.#pending.isOnItsWay(read)) return undefined;
    }

    // 2. A request that names its own age gets that age, while the upstream works.
    if (!freshness.mayServeStaleToSaveCalls) return undefined;

    // 3. The line decides about any other call.
    return line.whyNotRefresh({ isBackground, visitor }, { more, needsBudget: !this.#pending.has(key) });
  }

  prepare(): void {
    for (const waiter of waitersOf(this.#plan.current().unprovable)) {
      this.#pending.fail(waiter, waiter.failed ?? unprovableError(), 'UPSTREAM_FAILED');
      this.expire();
    }

    if (this.#failures.reviewPostponed(this.#plan.current().postponed)) this.expire();
  }

  calls(): readonly ReadCall[] {
    return this.#plan.current().calls;
  }

  expire(): void {
    this.#plan.expire();
  }

  /** No data of a key that the upstream rejects is served: here at once, by other replicas within a second. */
  forget(): void {
    const { cache, log, quota } = this.#parts;
    cache.clear();
    // Nobody has data of a key that was made up: announcing it would store a document, and a warning would fill the log.
    if (!quota.isProven) return log.debug?.({}, 'the pet API does not know this key');
    log.warn({}, 'the pet API rejects a key that it has accepted before');
    void this.#lists?.announce();
  }

  fail(error: unknown): void {
    this.#pending.failAll(error);
  }

  /** Ends the wait for further tries of calls that failed. */
  close(): void {
    this.#failures.close();
  }

  /** Whether the call that would refresh it failed, and waits for its next try or is in it: no stale entry is waited for twice. */
  #isFailing(read: PlannedRead): boolean {
    const { failedCalls } = this.#parts;
    if (failedCalls.isEmpty) return false;
    const call = this.#callFor(read);
    if (call === undefined || !failedCalls.find(call)) return false;
    return failedCalls.isBackingOff(call) || this.#pending.isInFlight(call);
  }

  #callFor(read: PlannedRead): CallKey | undefined {
    const [call] = planCalls([read], this.#pending.facts).calls.keys();
    return call;
  }
}
