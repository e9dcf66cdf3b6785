import type { PetqlError } from '../errors.ts';
import type { Int64 } from '../pets/int64.ts';
import type { UpstreamCall } from '../pets/pet-api.ts';
import { ALL_PETS, LISTS, filterOf, readKindOf, readOf } from '../pets/read-key.ts';
import type { CallKey, ListName } from '../pets/read-key.ts';
import { listSnapshot, petSnapshot } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import type { ServeStale } from '../throttle/admission.ts';
import type { LineCall } from '../throttle/line-call.ts';
import type { Refusal } from '../throttle/refusal.ts';
import { isForeign, isTransient } from '../upstream/outcome.ts';
import type { OwnFailure, UpstreamAnswer, UpstreamOutcome } from '../upstream/outcome.ts';
import { readError } from '../upstream/upstream-errors.ts';
import type { CallerLists } from './cache/caller-lists.ts';
import type { FailedCall } from './failed-calls.ts';
import type { PendingReads, ReadParts } from './pending-reads.ts';
import { canWait } from './read-waiter.ts';
import type { Flight, ReadWaiter } from './read-waiter.ts';

/** A failure that concerns the reads which waited for the call. */
interface ReceivedFailure {
  readonly failure: OwnFailure;
  /** The error of the reads that fail. */
  readonly error: PetqlError;
  /** The `Retry-After` of the response. */
  readonly retryAfterMs: number | undefined;
  readonly flight: Flight;
  /** Who waited for this call, and waits for no other one in flight. */
  readonly waiting: readonly ReadWaiter[];
}

/** A pet that was there so lately is hardly gone. */
const MOMENT_AGO_MS = 10_000;

/** One call for reads, from the plan to its response: it stands in the line, is in flight, and settles the reads that it answers. */
export class ReadCall implements LineCall<ReadWaiter, UpstreamAnswer<Snapshot>> {
  readonly kind = 'read';
  readonly key: CallKey;
  readonly claims: readonly ReadWaiter[];
  readonly waitingSinceMs: number;
  readonly isRetry: boolean;
  readonly #parts: ReadParts;
  readonly #pending: PendingReads;
  /** Undefined without Redis. */
  readonly #lists: CallerLists | undefined;
  /** Undefined before it is sent. */
  #flight: Flight | undefined;

  constructor(
    parts: ReadParts,
    pending: PendingReads,
    lists: CallerLists | undefined,
    { key, claims, waitingSinceMs }: Pick<ReadCall, 'claims' | 'key' | 'waitingSinceMs'>,
  ) {
    this.#parts = parts;
    this.#pending = pending;
    this.#lists = lists;
    this.key = key;
    this.claims = claims;
    this.waitingSinceMs = waitingSinceMs;
    this.isRetry = parts.failedCalls.find(key)?.isRetriedEarly ?? false;
  }

  get name(): string {
    return readKindOf(this.key).logName(this.key);
  }

  get outageKind(): string {
    return readKindOf(this.key).outageKind(this.key);
  }

  refuse(waiter: ReadWaiter, refusal: Refusal): void {
    this.#pending.refuse(waiter, refusal);
  }

  serveStale(waiter: ReadWaiter, reason: ServeStale['reason']): void {
    this.#pending.serveStale(waiter, waiter.failed ? 'UPSTREAM_FAILED' : reason);
  }

  send(payer: ReadWaiter): Promise<UpstreamAnswer<Snapshot>> {
    this.#flight = this.#depart(payer);
    return this.#exchange(this.#flight);
  }

  /** Takes the response: each read that waited for the call is answered, fails, or waits for another call. */
  receive({ outcome, rateLimit }: UpstreamAnswer<Snapshot>): void {
    const flight = this.#land();
    if (!flight) return;
    if (outcome.kind === 'ok') return this.#deliver(flight, outcome.value);

    // 1. The reads wait: the line pauses the key after a 429, and after a 404 that proves nothing a list shows if any call works.
    if (outcome.kind === 'rate-limited' || outcome.kind === 'not-found') return;

    // 2. The key is rejected, and so is any other call. One that may be banned is served from the cache.
    const mayBeBanned = this.#parts.quota.isAfter429;
    const error = readError(outcome, mayBeBanned);
    const isRejected = outcome.kind === 'unauthenticated' || (outcome.kind === 'forbidden' && mayBeBanned);
    if (isRejected) return this.#pending.failAll(error);

    // 3. The call itself failed, for those who waited for it.
    const waiting = this.#pending.waitersFor(flight);
    const received = { failure: outcome, error, retryAfterMs: rateLimit?.retryAfterMs, flight, waiting };
    if (outcome.kind === 'route-gone') this.#tryLists(received);
    else this.#failReads(received);
  }

  /** A defect of petql, or a key that the upstream rejects, concerns all reads. */
  fail(error: unknown): void {
    this.#land();
    this.#pending.failAll(error);
  }

  #depart(payer: ReadWaiter): Flight {
    const { cache, clock, events, failedCalls, getRoute, line } = this.#parts;
    const { key } = this;
    const sending = Promise.withResolvers<void>();
    const flight = { key, sentAtMs: clock.elapsed(), generation: cache.generation, billedTo: payer, sending };
    if (this.isRetry) events?.retried({ operation: readKindOf(key).operation });
    payer.sending = sending.promise;
    this.#pending.addFlight(flight);

    // No request that accepts stale data waits for a call that failed before.
    if (failedCalls.find(key)) {
      for (const waiter of this.claims) this.#pending.serveStale(waiter, 'UPSTREAM_FAILED');
    }
    // While the circuit is open, the probe is the only get.
    if (readOf(key).kind === 'pet' && !getRoute.isHealthy) line.reviewSoon();
    return flight;
  }

  /** Makes a snapshot of the response. */
  #exchange(flight: Flight): Promise<UpstreamAnswer<Snapshot>> {
    const { quota } = this.#parts;
    const { billedTo } = flight;
    const onSent = () => {
      billedTo.isBilled = true;
      billedTo.request.upstreamCalls += 1;
      endSending(flight);
    };
    // The call belongs to the trace of the request that it is billed to.
    const call = { apiKey: quota.apiKey, trace: billedTo.request.trace, onSent };

    const read = readOf(flight.key);
    switch (read.kind) {
      case 'list':
        return this.#list(read.list, flight, call);
      case 'pet':
        return this.#get(read.id, flight, call);
    }
  }

  async #list(list: ListName, { sentAtMs }: Flight, call: UpstreamCall): Promise<UpstreamAnswer<Snapshot>> {
    const { cache, petApi } = this.#parts;
    const response = await petApi.listPets(filterOf(list), call);
    const outcome = mapped(response.outcome, (pets) => listSnapshot(list, pets, sentAtMs, cache));
    return { ...response, outcome };
  }

  async #get(id: Int64, { sentAtMs }: Flight, call: UpstreamCall): Promise<UpstreamAnswer<Snapshot>> {
    const { cache, getRoute, petApi } = this.#parts;
    getRoute.recordGet();
    const response = await petApi.getPet(id, call);
    const outcome = getRoute.judge(response.outcome, { id, sentAtMs, isKnown: this.#isKnown(id) });
    return {
      ...response,
      // That there is no such pet is an answer.
      failure: outcome.kind === 'ok' ? undefined : response.failure,
      outcome: mapped(outcome, (pet) => petSnapshot(id, pet, sentAtMs, cache)),
    };
  }

  /** Whether a response has shown this pet a moment ago. */
  #isKnown(id: Int64): boolean {
    const { cache, clock } = this.#parts;
    const entry = cache.find(id);
    return Boolean(entry?.found) && clock.elapsed() - (entry?.asOfMs ?? -Infinity) < MOMENT_AGO_MS;
  }

  /** Ends the flight; undefined where the call was not sent. */
  #land(): Flight | undefined {
    const flight = this.#flight;
    if (!flight) return undefined;
    this.#pending.deleteFlight(flight);
    endSending(flight);
    return flight;
  }

  #deliver(flight: Flight, snapshot: Snapshot): void {
    const { cache, failedCalls } = this.#parts;
    failedCalls.recordResponse(snapshot);
    // Rule 1: a write came after the call was sent, so its response is not stored.
    if (flight.generation === cache.generation) {
      cache.store(snapshot);
      void this.#lists?.share(snapshot);
    }
    this.#pending.finishFrom(snapshot, (waiter) => waiter.accepts(flight));
  }

  /** A get found no route. Where that may concern this id alone, only a list that may show all pets is tried for it. */
  #tryLists(received: ReceivedFailure): void {
    const { cache, getRoute } = this.#parts;
    const isUseful = (list: ListName) => !getRoute.isHealthy || (list === ALL_PETS && cache.sizeOf(list) !== 'large');
    const useless = LISTS.filter((list) => !isUseful(list));
    for (const { read } of received.waiting) for (const call of [this.key, ...useless]) read.tried.add(call);
    if (!getRoute.isHealthy) return;

    this.#recordFailure(received);
    for (const waiter of received.waiting) waiter.failed = received.error;
  }

  #failReads(received: ReceivedFailure): void {
    const { failure, waiting } = received;
    const failed = this.#recordFailure(received);
    if (failure.kind === 'forbidden') this.#parts.cache.drop(this.key);

    for (const waiter of waiting) {
      waiter.failed = failed.error;
      if (waiter.read.key === this.key) this.#failOwn(waiter, failure, failed);
      else if (isForeign(failure)) this.#failAlike(waiter, received);
      // A list that was to save a call, and failed in a way that passes, is waited for once more.
      else if (!failed.isTransient) waiter.read.tried.add(this.key);
    }
  }

  #recordFailure({ failure, error, retryAfterMs, flight, waiting }: ReceivedFailure): FailedCall {
    const { failedCalls, retryBudget } = this.#parts;
    return failedCalls.record(this.key, {
      error,
      isTransient: isTransient(failure),
      sentAtMs: flight.sentAtMs,
      retryAfterMs,
      takeRetry: () => !waiting.every(({ hasAcceptedEntry }) => hasAcceptedEntry) && retryBudget.take(),
    });
  }

  /** The call of the read itself failed: it is served stale data, waits for an early retry, or fails. */
  #failOwn(waiter: ReadWaiter, failure: OwnFailure, failed: FailedCall): void {
    if (failure.kind === 'forbidden') return this.#pending.finish(waiter, failed.error);
    if (this.#pending.serveStale(waiter, 'UPSTREAM_FAILED')) return;
    if (failed.isRetriedEarly && canWait(waiter, failed)) return;
    this.#pending.finish(waiter, failed.error);
  }

  /** A list that was to save calls failed in a way in which the call of the read would fail too. */
  #failAlike(waiter: ReadWaiter, { error, retryAfterMs, flight: { sentAtMs } }: ReceivedFailure): void {
    const failure = { error, isTransient: false, sentAtMs, retryAfterMs, takeRetry: () => false };
    this.#parts.failedCalls.record(waiter.read.key, failure);
    this.#pending.fail(waiter, error, 'UPSTREAM_FAILED');
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
