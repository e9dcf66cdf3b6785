import { PetqlError } from '../errors.ts';
import type { UpstreamFailure } from '../upstream/outcome.ts';
import type { CallerParts } from './caller-parts.ts';
import type { FailedCall } from './failed-calls.ts';
import type { PendingReads } from './pending-reads.ts';
import { ALL_PETS, LISTS } from '../pets/read-key.ts';
import type { CallKey, ListName } from '../pets/read-key.ts';
import { waitersOf } from './read-waiter.ts';
import type { Flight, PendingRead, ReadWaiter } from './read-waiter.ts';

interface ReceivedFailure {
  readonly failure: UpstreamFailure;
  /** The error of the reads that fail. */
  readonly error: PetqlError;
  /** The `Retry-After` of the response. */
  readonly retryAfterMs: number | undefined;
}

/**
 * Decides what becomes of the reads that wait for a call that failed: they wait for another try, get a call of their own, or are
 * served stale data or an error.
 */
export class ReadFailures {
  readonly #parts: CallerParts;
  readonly #pending: PendingReads;
  /** Ends the backoff that is over first, at `#wakeAtMs` by `clock.elapsed()`. */
  #timer: NodeJS.Timeout | undefined;
  #wakeAtMs = Infinity;
  #isClosed = false;

  constructor(parts: CallerParts, pending: PendingReads) {
    this.#parts = parts;
    this.#pending = pending;
  }

  /** Records that a call failed, which has ended, and decides for each read that waited for it. */
  receive(flight: Flight, received: ReceivedFailure): void {
    const { failure } = received;
    const { key } = flight;
    const waiting = this.#pending.waitersFor(flight);
    // No call has worked yet: a list shows whether the base URL is right, and then the pet is called for again.
    if (failure.kind === 'not-found') return;

    if (failure.kind === 'route-gone') return this.#tryLists(flight, received, waiting);

    const failed = this.#record(flight, received, waiting);
    if (failure.kind === 'forbidden') this.#parts.cache.drop(key);

    for (const waiter of waiting) {
      waiter.failed = failed.error;
      if (waiter.read.key === key) this.#failOwn(waiter, failure, failed);
      else if (isForeign(failure)) this.#failOther(waiter, flight, received);
      else if (!failed.isTransient) waiter.read.tried.add(key);
    }
  }

  /** Whether the call is not sent yet, since it failed a short while ago. */
  isPostponed(call: CallKey, reads: readonly PendingRead[]): boolean {
    const { clock, failedCalls } = this.#parts;
    const failed = failedCalls.find(call);
    if (!failed || this.#isClosed || clock.elapsed() >= failed.retryAtMs) return false;
    const own = reads.find(({ key }) => key === call);
    if (!own) return true;
    // A read of that very call that still waits came after the failure, or waits for an early retry.
    return failed.isRetriedEarly && [...own.waiters].every((waiter) => canWait(waiter, failed));
  }

  /**
   * Serves stale data to the reads of postponed calls. The others wait for the first try of a list that was to save them, and get
   * calls of their own after the second failure.
   *
   * @returns whether that changes what they want.
   */
  reviewPostponed(calls: ReadonlyMap<CallKey, readonly PendingRead[]>): boolean {
    let hasChanged = false;
    for (const [call, reads] of calls) {
      const failed = this.#parts.failedCalls.find(call);
      if (!failed) continue;

      for (const waiter of waitersOf(reads)) {
        if (this.#postpone(waiter, call, failed)) hasChanged = true;
      }
      this.#wakeAt(failed.retryAtMs);
    }
    return hasChanged;
  }

  /** Ends every backoff; from now on nothing is retried. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const waiter of this.#pending.waiters()) {
      const { failed } = waiter;
      if (failed && !this.#pending.isCovered(waiter)) this.#pending.fail(waiter, failed, 'UPSTREAM_FAILED');
    }
  }

  /** A get found no route. Where that may concern this id alone, only a list that may show all pets is tried for it. */
  #tryLists(flight: Flight, received: ReceivedFailure, waiting: readonly ReadWaiter[]): void {
    const { cache, getRoute } = this.#parts;
    const isUseful = (list: ListName) => !getRoute.isHealthy || (list === ALL_PETS && cache.sizeOf(list) !== 'large');
    const useless = LISTS.filter((list) => !isUseful(list));
    for (const { read } of waiting) for (const call of [flight.key, ...useless]) read.tried.add(call);
    if (!getRoute.isHealthy) return;

    this.#record(flight, received, waiting);
    for (const waiter of waiting) waiter.failed = received.error;
  }

  #record({ key, sentAtMs }: Flight, received: ReceivedFailure, waiting: readonly ReadWaiter[]): FailedCall {
    const { failedCalls, retryBudget } = this.#parts;
    const { failure, error, retryAfterMs } = received;
    return failedCalls.record(key, {
      error,
      isTransient: isTransient(failure),
      sentAtMs,
      retryAfterMs,
      takeRetry: () => {
        const isWanted = !this.#isClosed && !waiting.every(({ hasData }) => hasData);
        return isWanted && retryBudget.take();
      },
    });
  }

  /** The call of the read itself failed: it is served stale data, waits for an early retry, or fails. */
  #failOwn(waiter: ReadWaiter, failure: UpstreamFailure, failed: FailedCall): void {
    if (failure.kind === 'forbidden') return this.#pending.settle(waiter, failed.error);
    if (this.#pending.serveStale(waiter, 'UPSTREAM_FAILED')) return;
    if (failed.isRetriedEarly && canWait(waiter, failed)) return;
    this.#pending.settle(waiter, failed.error);
  }

  /** A list that was to save calls failed in a way in which the call of the read would fail too. */
  #failOther(waiter: ReadWaiter, { sentAtMs }: Flight, { error, retryAfterMs }: ReceivedFailure): void {
    const { failedCalls } = this.#parts;
    const failure = { error, isTransient: false, sentAtMs, retryAfterMs, takeRetry: () => false };
    failedCalls.record(waiter.read.key, failure);
    this.#pending.fail(waiter, error, 'UPSTREAM_FAILED');
  }

  #postpone(waiter: ReadWaiter, call: CallKey, failed: FailedCall): boolean {
    if (this.#pending.isCovered(waiter)) return false;
    waiter.failed ??= failed.error;
    if (this.#pending.serveStale(waiter, 'UPSTREAM_FAILED')) return true;

    const isTooLong = !canWait(waiter, failed) || (failed.failures > 1 && !failed.isRetriedEarly);
    if (!isTooLong || waiter.read.key === call) return false;
    waiter.read.tried.add(call);
    return true;
  }

  #wakeAt(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return;
    clearTimeout(this.#timer);
    this.#wakeAtMs = atMs;
    const waitMs = Math.max(0, Math.ceil(atMs - this.#parts.clock.elapsed()));
    this.#timer = setTimeout(() => this.#wake(atMs), waitMs);
  }

  #wake(atMs: number): void {
    this.#wakeAtMs = Infinity;
    this.#parts.failedCalls.endBackoffs(atMs);
    this.#parts.line.change();
  }
}

function canWait({ request }: ReadWaiter, { retryAtMs }: FailedCall): boolean {
  return request.deadlineMs >= retryAtMs;
}

/** Whether the same call may succeed a moment later. */
function isTransient(failure: UpstreamFailure): boolean {
  if (failure.kind === 'no-answer') return failure.reason !== 'too-large';
  return failure.kind === 'failed' && failure.status >= 500 && failure.status !== 501;
}

/** Whether any call would fail in the same way: a redirect, or a response that is not the upstream's own. */
function isForeign(failure: UpstreamFailure): boolean {
  if (failure.kind === 'wrong-base-path') return true;
  if (failure.kind === 'unreadable') return failure.isForeign;
  return failure.kind === 'failed' && !isTransient(failure) && (failure.status < 400 || failure.status === 501);
}

/** Returns the error of a read that no call can answer. */
export function unprovableError(): PetqlError {
  return new PetqlError(
    'DOWNSTREAM_SERVICE_ERROR',
    'petql cannot tell whether this pet exists: the pet API has no lookup by id now, and its lists of at most 100 pets do not ' +
      'show this one. Query by status instead.',
    { details: { upstream: {} } },
  );
}
