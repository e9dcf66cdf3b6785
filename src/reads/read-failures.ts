import { PetqlError } from '../errors.ts';
import type { UpstreamFailure } from '../upstream/pet-api.ts';
import { mayAnswer } from './call-planner.ts';
import type { CallerParts } from './caller-parts.ts';
import { accepts } from './pending-reads.ts';
import type { Flight, PendingRead, PendingReads, Waiter } from './pending-reads.ts';
import { isList } from './read-key.ts';

/** How long a read pauses on average before its first and its second retry; there is no third. */
const PAUSES_MS = [100, 400];

/**
 * Decides whether the reads that wait for a failed call are retried, served stale or failed.
 *
 * @param onRetry is called when a backoff is over.
 */
export function createReadFailures(
  { clock, cache, retryBudget }: CallerParts,
  pending: PendingReads,
  onRetry: () => void,
) {
  let isClosed = false;
  return {
    /** @param error of the reads that fail. */
    receive(flight: Flight, failure: UpstreamFailure, error: PetqlError) {
      const { key } = flight;
      if (isList(key) && !isForeign(failure)) cache.listFailed(key);
      if (failure.kind === 'forbidden') cache.drop(key);
      const paused: PendingRead[] = [];
      for (const read of pending.concernedBy(key)) {
        const waiters = [...read.waiters].filter((waiter) => accepts(waiter, flight));
        if (waiters.length === 0 || !mayAnswer(key, read)) continue;
        if (failure.kind === 'route-gone' && !isList(key)) read.tried.add(key);
        else if (failure.kind === 'forbidden') for (const waiter of waiters) waiter.settle(error);
        else if (!isTransient(failure)) fallBack(read, waiters, { flight, failure, error });
        else if (mustBackOff(read, waiters, error)) paused.push(read);
      }
      backOff(paused, error);
    },
    /** Ends every backoff; from now on nothing is retried. */
    close() {
      isClosed = true;
      for (const { pausedUntilMs, waiters } of pending.reads.values()) {
        if (clock.elapsed() >= pausedUntilMs) continue;
        for (const waiter of waiters) if (waiter.failed) pending.fail([waiter], waiter.failed, 'UPSTREAM_FAILED');
      }
    },
  };

  /** A read whose own call failed fails; one that the call was to save gets another call. */
  function fallBack(
    read: PendingRead,
    waiters: readonly Waiter[],
    { flight: { key }, failure, error }: { flight: Flight; failure: UpstreamFailure; error: PetqlError },
  ): void {
    const isHopeless = isForeign(failure) && !waiters.some(pending.isCovered);
    if (!isList(key) || read.key === key || isHopeless) return pending.fail(waiters, error, 'UPSTREAM_FAILED');
    read.tried.add(key);
    for (const waiter of waiters) waiter.failed = error;
  }

  /**
   * Serves the waiters from the cache where that is accepted. The others do not go on to other calls: what failed this one
   * would most likely fail those too.
   */
  function mustBackOff(read: PendingRead, waiters: readonly Waiter[], error: PetqlError): boolean {
    read.failures += 1;
    for (const waiter of waiters) waiter.failed = error;
    if (read.failures > PAUSES_MS.length) pending.fail(waiters, error, 'UPSTREAM_FAILED');
    else if (!waiters.some(pending.isCovered)) {
      for (const waiter of waiters) pending.serveStale(waiter, 'UPSTREAM_FAILED');
      return read.waiters.size > 0;
    }
    return false;
  }

  /** Reads that failed together are retried together. */
  function backOff(reads: readonly PendingRead[], error: PetqlError): void {
    if (reads.length === 0) return;
    if (isClosed || !retryBudget.take()) {
      for (const { waiters } of reads) pending.fail(waiters, error, 'UPSTREAM_FAILED');
      return;
    }
    const failures = Math.max(...reads.map((read) => read.failures));
    const pauseMs = (PAUSES_MS[failures - 1] ?? 0) * (0.5 + Math.random());
    const untilMs = clock.elapsed() + pauseMs;
    for (const read of reads) {
      read.pausedUntilMs = untilMs;
      for (const waiter of read.waiters) if (waiter.request.deadlineMs < untilMs) waiter.settle(error);
    }
    setTimeout(() => {
      for (const read of reads) if (read.pausedUntilMs === untilMs) read.pausedUntilMs = -Infinity;
      onRetry();
    }, pauseMs);
  }
}

/** Whether the same call may succeed a moment later, and any other call may fail in the same way now. */
function isTransient(failure: UpstreamFailure): boolean {
  if (failure.kind === 'no-answer') return failure.reason !== 'too-large';
  return failure.kind === 'failed' && failure.status >= 500 && failure.status !== 501;
}

/** Whether any call would fail in the same way: a redirect, or a response that is not the upstream's own. */
function isForeign(failure: UpstreamFailure): boolean {
  if (failure.kind === 'wrong-base-path') return true;
  if (failure.kind === 'unreadable') return failure.foreign;
  return failure.kind === 'failed' && !isTransient(failure) && (failure.status < 400 || failure.status === 501);
}

/** The error of a read that no call can answer. */
export function unprovableError(): PetqlError {
  return new PetqlError(
    'DOWNSTREAM_SERVICE_ERROR',
    'petql cannot determine whether this pet exists: the API no longer supports lookup by id, and its lists of at most 100 ' +
      'pets do not show this one. Query by status instead.',
    { details: { upstream: {} } },
  );
}
