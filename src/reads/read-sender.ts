import type { Clock } from '../clock.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { VisitorShares } from '../throttle/visitor-shares.ts';
import type { Call } from '../throttle/call.ts';
import type { UpstreamAnswer, UpstreamFailure, UpstreamOutcome } from '../upstream/outcome.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import { readError } from '../upstream/upstream-errors.ts';
import type { PlannedCall } from './current-plan.ts';
import type { FailedCalls } from './failed-calls.ts';
import type { GetRoute } from './get-route.ts';
import { possiblePayers } from './payers.ts';
import type { PendingReads } from './pending-reads.ts';
import type { PetCache } from './cache/pet-cache.ts';
import type { ReadFailures } from './read-failures.ts';
import { isList } from './cache/read-key.ts';
import type { CallKey, ReadKey } from './cache/read-key.ts';
import { accepts, waitersOf } from './read-waiter.ts';
import type { Flight, PendingRead, ReadWaiter } from './read-waiter.ts';
import type { RefreshBudget } from './refresh-budget.ts';
import type { RejectedKey } from './rejected-key.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { CallerLists } from './cache/caller-lists.ts';
import { listSnapshot, petSnapshot } from './cache/snapshot.ts';
import type { Snapshot } from './cache/snapshot.ts';

export interface ReadSenderOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly clock: Clock;
  readonly throttle: Pick<Throttle, 'isAfter429'>;
  readonly cache: PetCache;
  readonly failedCalls: FailedCalls;
  /** Shared by all callers. */
  readonly getRoute: GetRoute;
  readonly refreshBudget: RefreshBudget;
  readonly visitorShares: VisitorShares;
  /** Shared by all callers. */
  readonly retryBudget: RetryBudget;
  readonly rejectedKey: RejectedKey;
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
  /** Called when a retry is sent. */
  readonly onRetry: (call: CallKey) => void;
}

interface ReadSenderLinks {
  readonly pending: PendingReads;
  readonly failures: ReadFailures;
  readonly onChange: () => void;
}

/** Sends the calls of one caller's reads, and brings each response to the cache and to the reads that it answers. */
export class ReadSender {
  readonly #options: ReadSenderOptions;
  readonly #pending: PendingReads;
  readonly #failures: ReadFailures;
  /** Called when the reads need another plan. */
  readonly #onChange: () => void;

  constructor(options: ReadSenderOptions, { pending, failures, onChange }: ReadSenderLinks) {
    this.#options = options;
    this.#pending = pending;
    this.#failures = failures;
    this.#onChange = onChange;
  }

  /** Returns the call for the throttle, which has a permit for it and sends it at once. */
  depart({ key, reads, payer, wantedSinceMs }: PlannedCall): Call<Snapshot> {
    const { failedCalls, getRoute } = this.#options;
    const failed = failedCalls.find(key);
    const flight = this.#createFlight(key, this.#payerOf(key, reads, payer), failed?.isRetriedEarly ?? false);
    this.#pending.addFlight(flight);

    // No request that accepts stale data waits for a call that failed before.
    if (failed) {
      for (const waiter of waitersOf(reads)) this.#pending.serveStale(waiter, 'UPSTREAM_FAILED');
    }
    // While the circuit is open, the probe is the only get.
    if (!isList(key) && !getRoute.isHealthy) this.#onChange();

    return {
      kind: 'read',
      name: String(key),
      requestId: flight.billedTo?.request.id,
      isRetry: flight.isRetry,
      waitingSinceMs: wantedSinceMs,
      send: () => this.#send(flight),
      receive: (response) => this.#receive(flight, response),
      fail: (error) => this.#fail(flight, error),
    };
  }

  #createFlight(key: CallKey, billedTo: ReadWaiter | undefined, isRetry: boolean): Flight {
    const { cache, clock, refreshBudget, visitorShares, onRetry } = this.#options;
    const sentAtMs = clock.elapsed();
    if (isRetry) onRetry(key);
    else billedTo?.request.onPermit();
    refreshBudget.recordCall();
    visitorShares.charge(billedTo?.request.visitor, sentAtMs);

    const sending = Promise.withResolvers<void>();
    if (billedTo) billedTo.sending = sending.promise;
    return { key, sentAtMs, generation: cache.generation, isRetry, billedTo, sending };
  }

  /** Returns the waiter that the plan has found, or else the first one. */
  #payerOf(key: CallKey, reads: readonly PendingRead[], payer: ReadWaiter | undefined): ReadWaiter | undefined {
    if (payer?.read.waiters.has(payer) && this.#pending.isInNeed(payer)) return payer;
    return possiblePayers(key, reads).find((waiter) => !this.#pending.isCovered(waiter));
  }

  /** Makes a snapshot of the response. */
  async #send(flight: Flight): Promise<UpstreamAnswer<Snapshot>> {
    const { apiKey, petApi, getRoute, cache } = this.#options;
    const { key, sentAtMs, billedTo } = flight;
    const onSent = () => {
      billedTo?.request.onBilled(billedTo.read.key);
      endSending(flight);
    };
    const findEarlier = (earlier: ReadKey) => cache.findEarlier(earlier);
    // The call belongs to the trace of the request that it is billed to.
    const call = { apiKey, trace: billedTo?.request.trace, onSent };

    if (isList(key)) {
      const response = await petApi.listPets(key === 'all' ? undefined : key, call);
      const outcome = mapped(response.outcome, (list) => listSnapshot(key, list, sentAtMs, findEarlier));
      return { ...response, outcome };
    }

    getRoute.recordGet();
    const response = await petApi.getPet(key, call);
    const outcome = getRoute.judge(response.outcome, key);
    return { ...response, outcome: mapped(outcome, (pet) => petSnapshot(key, pet, sentAtMs, findEarlier)) };
  }

  #receive(flight: Flight, { outcome, sent, status, rateLimit }: UpstreamAnswer<Snapshot>): void {
    const { refreshBudget, retryBudget, visitorShares } = this.#options;
    this.#pending.deleteFlight(flight);
    endSending(flight);
    if (!sent) {
      refreshBudget.refund();
      visitorShares.refund(flight.billedTo?.request.visitor, flight.sentAtMs);
    } else if (!flight.isRetry) {
      retryBudget.recordCall();
    }

    if (outcome.kind === 'ok') this.#receiveSnapshot(flight, outcome.value);
    else this.#receiveFailure(flight, outcome, status === 503 ? rateLimit?.retryAfterMs : undefined);
    this.#onChange();
  }

  #receiveSnapshot(flight: Flight, snapshot: Snapshot): void {
    const { cache, failedCalls, rejectedKey, sharedLists } = this.#options;
    rejectedKey.accept();
    failedCalls.recordResponse(snapshot);
    // Rule 2: a write came after the call was sent, so its response is not stored.
    if (flight.generation === cache.generation) {
      cache.store(snapshot);
      void sharedLists?.share(snapshot);
    }
    this.#pending.settleFrom(snapshot, (waiter) => accepts(waiter, flight));
  }

  #receiveFailure(flight: Flight, failure: UpstreamFailure, retryAfterMs: number | undefined): void {
    const { rejectedKey, throttle } = this.#options;
    // The throttle pauses the key, and the reads wait for it or fail with that.
    if (failure.kind === 'rate-limited') return;

    const mayBeBanned = throttle.isAfter429();
    const error = readError(failure, mayBeBanned);
    const isRejected = failure.kind === 'unauthenticated' || (failure.kind === 'forbidden' && mayBeBanned);
    if (!isRejected) return this.#failures.receive(flight, { failure, error, retryAfterMs });

    // A key that may be banned is served from the cache, and the throttle pauses it.
    if (!mayBeBanned) rejectedKey.reject();
    this.#pending.failAll(error);
  }

  /** A defect of petql concerns all reads. */
  #fail(flight: Flight, error: unknown): void {
    this.#pending.deleteFlight(flight);
    endSending(flight);
    this.#pending.failAll(error);
  }
}

/** Lets the results go to the request that the call is billed to: from now on the call counts, or never will. */
function endSending({ billedTo, sending }: Flight): void {
  if (billedTo) billedTo.sending = undefined;
  sending.resolve();
}

function mapped<T, U>(outcome: UpstreamOutcome<T>, map: (value: T) => U): UpstreamOutcome<U> {
  return outcome.kind === 'ok' ? { kind: 'ok', value: map(outcome.value) } : outcome;
}
