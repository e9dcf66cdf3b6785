import type { UpstreamAnswer, UpstreamFailure, UpstreamOutcome } from '../upstream/outcome.ts';
import { readError } from '../upstream/upstream-errors.ts';
import type { CallerParts } from './caller-parts.ts';
import type { PendingReads } from './pending-reads.ts';
import type { ReadFailures } from './read-failures.ts';
import { isList, filterOf } from '../pets/read-key.ts';
import type { CallKey } from '../pets/read-key.ts';
import type { Int64 } from '../pets/int64.ts';
import type { Flight, ReadWaiter } from './read-waiter.ts';
import type { CallerLists } from './cache/caller-lists.ts';
import { listSnapshot, petSnapshot } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';

interface DepartingCall {
  readonly key: CallKey;
  readonly claims: readonly ReadWaiter[];
  readonly isRetry: boolean;
}

/** A pet that was there so lately is hardly gone. */
const MOMENT_AGO_MS = 10_000;

/** Sends the calls of one caller's reads, and brings each response to the cache and to the reads that it answers. */
export class ReadSender {
  readonly #parts: CallerParts;
  readonly #pending: PendingReads;
  readonly #failures: ReadFailures;
  /** Undefined without Redis. */
  readonly #lists: CallerLists | undefined;

  constructor(parts: CallerParts, pending: PendingReads, failures: ReadFailures, lists: CallerLists | undefined) {
    this.#parts = parts;
    this.#pending = pending;
    this.#failures = failures;
    this.#lists = lists;
  }

  /** Whether the call would be an early retry. */
  isRetry(key: CallKey): boolean {
    return this.#parts.failedCalls.find(key)?.isRetriedEarly ?? false;
  }

  /** Records a call that is sent at once. */
  depart({ key, claims, isRetry }: DepartingCall, payer: ReadWaiter): Flight {
    const { cache, clock, events, failedCalls, getRoute, line } = this.#parts;
    const sending = Promise.withResolvers<void>();
    const flight = { key, sentAtMs: clock.elapsed(), generation: cache.generation, billedTo: payer, sending };
    if (isRetry) events?.retried({ operation: isList(key) ? 'listPets' : 'getPet' });
    payer.sending = sending.promise;
    this.#pending.addFlight(flight);

    // No request that accepts stale data waits for a call that failed before.
    if (failedCalls.find(key)) {
      for (const waiter of claims) this.#pending.serveStale(waiter, 'UPSTREAM_FAILED');
    }
    // While the circuit is open, the probe is the only get.
    if (!isList(key) && !getRoute.isHealthy) line.change();
    return flight;
  }

  /** Makes a snapshot of the response. */
  async send(flight: Flight): Promise<UpstreamAnswer<Snapshot>> {
    const { quota, petApi, getRoute, cache } = this.#parts;
    const { key, sentAtMs, billedTo } = flight;
    const onSent = () => {
      billedTo.request.onBilled(billedTo.read.key);
      endSending(flight);
    };
    // The call belongs to the trace of the request that it is billed to.
    const call = { apiKey: quota.apiKey, trace: billedTo.request.trace, onSent };

    if (isList(key)) {
      const response = await petApi.listPets(filterOf(key), call);
      const outcome = mapped(response.outcome, (list) => listSnapshot(key, list, sentAtMs, cache));
      return { ...response, outcome };
    }

    getRoute.recordGet();
    const response = await petApi.getPet(key, call);
    const outcome = getRoute.judge(response.outcome, { id: key, sentAtMs, isKnown: this.#isKnown(key) });
    return {
      ...response,
      // That there is no such pet is an answer.
      failure: outcome.kind === 'ok' ? undefined : response.failure,
      outcome: mapped(outcome, (pet) => petSnapshot(key, pet, sentAtMs, cache)),
    };
  }

  /** Whether a response has shown this pet a moment ago. */
  #isKnown(id: Int64): boolean {
    const { cache, clock } = this.#parts;
    const entry = cache.find(id);
    return Boolean(entry?.found) && clock.elapsed() - (entry?.asOfMs ?? -Infinity) < MOMENT_AGO_MS;
  }

  receive(flight: Flight, { outcome, rateLimit }: UpstreamAnswer<Snapshot>): void {
    this.#pending.deleteFlight(flight);
    endSending(flight);

    if (outcome.kind === 'ok') this.#receiveSnapshot(flight, outcome.value);
    else this.#receiveFailure(flight, outcome, rateLimit?.retryAfterMs);
  }

  /** A defect of petql, or a key that the upstream rejects, concerns all reads. */
  fail(flight: Flight | undefined, error: unknown): void {
    if (flight) {
      this.#pending.deleteFlight(flight);
      endSending(flight);
    }
    this.#pending.failAll(error);
  }

  #receiveSnapshot(flight: Flight, snapshot: Snapshot): void {
    const { cache, failedCalls } = this.#parts;
    failedCalls.recordResponse(snapshot);
    // Rule 1: a write came after the call was sent, so its response is not stored.
    if (flight.generation === cache.generation) {
      cache.store(snapshot);
      void this.#lists?.share(snapshot);
    }
    this.#pending.settleFrom(snapshot, (waiter) => waiter.accepts(flight));
  }

  #receiveFailure(flight: Flight, failure: UpstreamFailure, retryAfterMs: number | undefined): void {
    // The line pauses the key, and the reads wait for it or fail with that.
    if (failure.kind === 'rate-limited') return;

    const mayBeBanned = this.#parts.quota.isAfter429;
    const error = readError(failure, mayBeBanned);
    const isRejected = failure.kind === 'unauthenticated' || (failure.kind === 'forbidden' && mayBeBanned);
    // A key that may be banned is served from the cache.
    if (isRejected) this.#pending.failAll(error);
    else this.#failures.receive(flight, { failure, error, retryAfterMs });
  }
}

/** Lets the results go to the request that the call is billed to: from now on the call counts, or never will. */
function endSending({ billedTo, sending }: Flight): void {
  billedTo.sending = undefined;
  sending.resolve();
}

function mapped<T, U>(outcome: UpstreamOutcome<T>, map: (value: T) => U): UpstreamOutcome<U> {
  return outcome.kind === 'ok' ? { kind: 'ok', value: map(outcome.value) } : outcome;
}
