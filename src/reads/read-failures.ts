import { PetqlError } from '../errors.ts';
import type { UpstreamFailure } from '../upstream/pet-api.ts';
import type { CallerParts } from './caller-parts.ts';
import type { FailedCall } from './failed-calls.ts';
import type { Flight, PendingRead, PendingReads, Waiter } from './pending-reads.ts';
import { isList } from './read-key.ts';
import type { ReadKey } from './read-key.ts';

interface ReceivedFailure {
  readonly failure: UpstreamFailure;
  /** The error of the reads that fail. */
  readonly error: PetqlError;
  /** What a 503 asked for. */
  readonly retryAfterMs: number | undefined;
}

/**
 * Decides what becomes of the reads that wait for a call that failed: they wait for another try, get a call of their own, or are
 * served stale data or an error.
 *
 * @param onChange is called when reads have gone, or the backoff of a call is over.
 */
export function createReadFailures(
  { clock, cache, failedCalls, retryBudget }: CallerParts,
  pending: PendingReads,
  onChange: () => void,
) {
  let isClosed = false;
  let wakeAtMs = Infinity;
  let timer: NodeJS.Timeout | undefined;

  return {
    receive,
    /** Whether the call is not sent yet, since it failed a short while ago. */
    isHeld(call: ReadKey, reads: readonly PendingRead[]): boolean {
      const failed = failedCalls.find(call);
      if (!failed || isClosed || clock.elapsed() >= failed.retryAtMs) return false;
      const own = reads.find(({ key }) => key === call);
      if (!own) return true;
      // A read of that very call that still waits came after the failure, or waits for an early retry.
      return failed.isRetriedEarly && [...own.waiters].every((waiter) => canWait(waiter, failed));
    },
    /**
     * Serves stale data to the reads of held calls. The others wait for the first try of a list that was to save them, and get
     * calls of their own after the second failure.
     */
    reviewHeld(held: ReadonlyMap<ReadKey, readonly PendingRead[]>) {
      for (const [call, reads] of held) {
        const failed = failedCalls.find(call);
        if (!failed) continue;
        for (const { waiters } of reads) for (const waiter of waiters) hold(waiter, call, failed);
        wakeAt(failed.retryAtMs);
      }
    },
    /** Ends every backoff; from now on nothing is retried. */
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const { waiters } of pending.reads.values()) {
        for (const waiter of waiters) {
          if (waiter.failed && !pending.isCovered(waiter)) pending.fail([waiter], waiter.failed, 'UPSTREAM_FAILED');
        }
      }
    },
  };

  function receive(flight: Flight, { failure, error, retryAfterMs }: ReceivedFailure): void {
    const { key, sentAtMs } = flight;
    const waiting = pending.waitersFor(flight);
    if (failure.kind === 'route-gone' && !isList(key)) {
      for (const { read } of waiting) read.tried.add(key);
      return;
    }

    const failed = failedCalls.record(key, {
      error,
      isTransient: isTransient(failure),
      sentAtMs,
      retryAfterMs,
      takeRetry: () => !isClosed && !waiting.every(pending.hasData) && retryBudget.take(),
    });
    if (failure.kind === 'forbidden') cache.drop(key);

    for (const waiter of waiting) {
      const { read } = waiter;
      waiter.failed = error;
      if (read.key === key && failure.kind === 'forbidden') waiter.settle(error);
      else if (read.key === key) failOwn(waiter, failed);
      else if (isForeign(failure)) {
        failedCalls.record(read.key, { error, isTransient: false, sentAtMs, retryAfterMs, takeRetry: () => false });
        pending.fail([waiter], error, 'UPSTREAM_FAILED');
      } else if (!failed.isTransient) read.tried.add(key);
    }
  }

  /** The call of the read itself failed: it is served stale data, waits for an early retry, or fails. */
  function failOwn(waiter: Waiter, failed: FailedCall): void {
    const isServed = pending.serveStale(waiter, 'UPSTREAM_FAILED');
    if (!isServed && !(failed.isRetriedEarly && canWait(waiter, failed))) waiter.settle(failed.error);
  }

  function hold(waiter: Waiter, call: ReadKey, failed: FailedCall): void {
    if (pending.isCovered(waiter)) return;
    waiter.failed ??= failed.error;
    if (pending.serveStale(waiter, 'UPSTREAM_FAILED')) return onChange();
    const isTooLong = !canWait(waiter, failed) || (failed.failures > 1 && !failed.isRetriedEarly);
    if (!isTooLong || waiter.read.key === call) return;
    waiter.read.tried.add(call);
    onChange();
  }

  function wakeAt(atMs: number): void {
    if (atMs >= wakeAtMs) return;
    clearTimeout(timer);
    wakeAtMs = atMs;
    const wake = () => {
      wakeAtMs = Infinity;
      failedCalls.endBackoffs(atMs);
      onChange();
    };
    timer = setTimeout(wake, Math.max(0, Math.ceil(atMs - clock.elapsed())));
  }
}

function canWait({ request }: Waiter, { retryAtMs }: FailedCall): boolean {
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
