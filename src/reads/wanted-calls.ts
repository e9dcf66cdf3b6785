import type { CallerRequest, Freshness } from '../common/caller-request.ts';
import { PetqlError } from '../common/errors.ts';
import { planCalls } from '../pets/call-planner.ts';
import type { PlannedRead } from '../pets/call-planner.ts';
import { ALL_PETS, readKindOf } from '../pets/read-key.ts';
import type { CallKey, ReadKey } from '../pets/read-key.ts';
import type { CallSource } from '../line/line-call.ts';
import type { CallerLists } from './cache/caller-lists.ts';
import type { FailedCall } from './failed-calls.ts';
import type { PendingReads, ReadParts } from './pending-reads.ts';
import { ReadCall } from './read-call.ts';
import { canWait, waitersOf } from './read-waiter.ts';
import type { StaleReason } from '../common/usage.ts';
import type { PendingRead, ReadWaiter } from './read-waiter.ts';

/** The call plan for the waiting reads, sorted by what may be sent now. */
interface SortedPlan {
  /** The calls to send, in this order. */
  readonly calls: readonly ReadCall[];
  /** Calls that failed a short while ago, and are not sent yet. */
  readonly postponed: ReadonlyMap<CallKey, readonly PendingRead[]>;
  /** Reads that no call can answer. */
  readonly unprovable: readonly PendingRead[];
}

/** Calls of a plan that a line of the log names. */
const MAX_LOGGED = 10;

/** The calls that the waiting reads of one caller want: planned when the line asks for them after a change, for all requests together. */
export class WantedCalls implements CallSource {
  readonly #parts: ReadParts;
  readonly #pending: PendingReads;
  /** Undefined without Redis. */
  readonly #lists: CallerLists | undefined;
  /** Undefined after a change of the reads. */
  #planned: SortedPlan | undefined;
  /** Since when each call of the latest plan is wanted, by `clock.elapsed()`. */
  #wantedSinceMs = new Map<CallKey, number>();

  constructor(parts: ReadParts, pending: PendingReads, lists: CallerLists | undefined) {
    this.#parts = parts;
    this.#pending = pending;
    this.#lists = lists;
  }

  /** Returns the call that would answer this read if it came alone. */
  callFor(key: ReadKey, freshness: Freshness): CallKey | undefined {
    return this.#callFor(this.#pending.unplannedRead(key, freshness));
  }

  /**
   * Returns why a stale entry is served as it is; undefined where a call for it is in flight, or may be sent at once.
   *
   * @param more calls that the same request needs before this one.
   */
  whyServeStale(key: ReadKey, request: CallerRequest, more: number): StaleReason | undefined {
    const { failedCalls, line } = this.#parts;
    const { freshness } = request;
    // 1. A call for it has failed, or is in flight.
    if (!failedCalls.isEmpty || this.#pending.hasFlights) {
      const read = this.#pending.unplannedRead(key, freshness);
      if (this.#isFailing(read)) return 'UPSTREAM_FAILED';
      if (this.#pending.isOnItsWay(read)) return undefined;
    }

    // 2. A request that names its own age gets that age, while the upstream works.
    if (!freshness.mayServeStaleToSaveCalls) return undefined;

    // 3. The line decides about any other call.
    return line.whyNotRefresh(request, { more, isPaid: this.#pending.has(key) });
  }

  /** Returns the minimum time until a stale entry may be refreshed for a request. */
  refreshWaitMs({ key, asOfMs }: { readonly key: ReadKey; readonly asOfMs: number }, request: CallerRequest): number {
    const { clock, failedCalls, line } = this.#parts;
    const { freshness } = request;
    const failedMs = failedCalls.isEmpty ? 0 : failedCalls.waitMs(this.callFor(key, freshness) ?? key);
    const usableMs = asOfMs + freshness.maxStaleMs - clock.elapsed();
    return Math.max(failedMs, line.refreshWaitMs(request, usableMs));
  }

  prepare(): void {
    const { failedCalls } = this.#parts;
    for (const waiter of waitersOf(this.#plan().unprovable)) {
      this.#pending.fail(waiter, waiter.failed ?? unprovableError(), 'UPSTREAM_FAILED');
      this.discardPlan();
    }

    for (const [call, reads] of this.#plan().postponed) {
      const failed = failedCalls.find(call);
      if (!failed) continue;
      for (const waiter of waitersOf(reads)) this.#postpone(waiter, call, failed);
      failedCalls.wakeAt(failed.retryAtMs);
    }
  }

  calls(): readonly ReadCall[] {
    return this.#plan().calls;
  }

  askForList(): void {
    this.#pending.ask(ALL_PETS);
  }

  discardPlan(): void {
    this.#planned = undefined;
  }

  /** No data of a key that the upstream rejects is served: here at once, by other replicas within a second. */
  recordRejection(isDropped: boolean): void {
    const { cache, log, quota } = this.#parts;
    if (isDropped) cache.clear();
    // Nobody has data of a key that was made up: announcing it would store a document, and a warning would fill the log.
    if (!quota.isProven) return log.debug?.({}, 'the pet API does not know this key');
    log.warn({ ...quota.closed.details401 }, 'the pet API rejects a key that it has accepted before');
    void this.#lists?.announce();
  }

  fail(error: unknown): void {
    this.#pending.failAll(error);
  }

  /** Ends the wait for further tries of calls that failed. */
  close(): void {
    this.#parts.failedCalls.close();
    for (const waiter of this.#pending.waiters()) {
      const { failed } = waiter;
      if (failed && !this.#pending.isCovered(waiter)) this.#pending.fail(waiter, failed, 'UPSTREAM_FAILED');
    }
  }

  /** Whether the call that would refresh the entry has failed. Then the stale entry is served, also while the next try is in flight. */
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

  /** Returns the plan for the reads that wait now. */
  #plan(): SortedPlan {
    return (this.#planned ??= this.#makePlan());
  }

  #makePlan(): SortedPlan {
    // 1. The fewest calls for all reads.
    const { calls, unprovable } = planCalls(this.#pending.readsToPlan(), this.#pending.facts);

    // 2. Those that are not sent now.
    const postponed = new Map([...calls].filter(([call, reads]) => this.#isPostponed(call, reads)));
    for (const call of postponed.keys()) calls.delete(call);

    // 3. The others, for the line and for the log.
    if (calls.size > 0) this.#parts.log.debug?.({ calls: namesOf(calls), reads: this.#pending.size }, 'call plan');
    this.#keepTimes(calls);
    return { calls: [...calls].map(([call, reads]) => this.#createCall(call, reads)), postponed, unprovable };
  }

  /** Whether the call is not sent yet, since it failed a short while ago. */
  #isPostponed(call: CallKey, reads: readonly PendingRead[]): boolean {
    const { failedCalls } = this.#parts;
    const failed = failedCalls.find(call);
    if (!failed || !failedCalls.isPostponed(call)) return false;
    const own = reads.find(({ key }) => key === call);
    if (!own) return true;
    // A read of that very call that still waits came after the failure, or waits for an early retry.
    return failed.isRetriedEarly && [...own.waiters].every((waiter) => canWait(waiter, failed));
  }

  /** A call that is planned again has been wanted since its first plan. */
  #keepTimes(calls: ReadonlyMap<CallKey, unknown>): void {
    const before = this.#wantedSinceMs;
    if (calls.size === 0 && before.size === 0) return;
    const nowMs = this.#parts.clock.elapsed();
    this.#wantedSinceMs = new Map([...calls.keys()].map((call) => [call, before.get(call) ?? nowMs]));
  }

  #createCall(key: CallKey, reads: readonly PendingRead[]): ReadCall {
    // Those of the read that the call is for pay before those that it saves a call.
    const own = reads.filter((read) => read.key === key);
    const others = reads.filter((read) => read.key !== key);
    const claims = waitersOf([...own, ...others]).filter((waiter) => !this.#pending.isCovered(waiter));
    for (const claim of claims) claim.hasStoodInLine = true;
    const waitingSinceMs = this.#wantedSinceMs.get(key) as number;
    return new ReadCall(this.#parts, this.#pending, this.#lists, { key, claims, waitingSinceMs });
  }

  /** Serves stale data. Else it waits for the first try of a list that was to save its call, and gets a call of its own after the second. */
  #postpone(waiter: ReadWaiter, call: CallKey, failed: FailedCall): void {
    if (this.#pending.isCovered(waiter)) return;
    waiter.failed ??= failed.error;
    if (this.#pending.serveStale(waiter, 'UPSTREAM_FAILED')) return this.discardPlan();

    const isTooLong = !canWait(waiter, failed) || (failed.backoff.failures > 1 && !failed.isRetriedEarly);
    if (!isTooLong || waiter.read.key === call) return;
    waiter.read.tried.add(call);
    this.discardPlan();
  }
}

function namesOf(calls: ReadonlyMap<CallKey, unknown>): string[] {
  return [...calls.keys()].slice(0, MAX_LOGGED).map((key) => readKindOf(key).logName(key));
}

/** Returns the error of a read that no call can answer. */
function unprovableError(): PetqlError {
  return new PetqlError(
    'DOWNSTREAM_SERVICE_ERROR',
    'petql cannot tell whether this pet exists: the pet API has no lookup by id now, and its lists of at most 100 pets do not ' +
      'show this one. Query by status instead.',
    { details: { upstream: {} } },
  );
}
