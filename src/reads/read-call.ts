import type { PetqlError } from '../common/errors.ts';
import type { Int64 } from '../pets/int64.ts';
import type { Pet } from '../pets/pet.ts';
import type { UpstreamCall } from '../pets/pet-api.ts';
import { ALL_PETS, LISTS, filterOf, isList, readKindOf, readOf } from '../pets/read-key.ts';
import type { CallKey, ListName } from '../pets/read-key.ts';
import { listSnapshot, petSnapshot } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import { PETS_WITHOUT_ROUTE } from '../closed/closed-for-key.ts';
import type { ServeStale } from '../line/admission.ts';
import type { LineCall } from '../line/line-call.ts';
import type { Refusal } from '../line/refusal.ts';
import { isAboutKey, isTransient } from '../upstream/outcome.ts';
import type { OwnFailure, UpstreamAnswer, UpstreamOutcome } from '../upstream/outcome.ts';
import { readError } from '../upstream/upstream-errors.ts';
import type { CallerLists } from './cache/caller-lists.ts';
import type { FailedCall } from './failed-calls.ts';
import type { PendingReads, ReadParts } from './pending-reads.ts';
import { canWait } from './read-waiter.ts';
import type { Flight, ReadWaiter } from './read-waiter.ts';
import { EVIDENCE_MS, SHOWN_BY_LIST_MS } from '../common/call-times.ts';

/** A failure that concerns the reads which waited for the call. */
interface ReceivedFailure {
  readonly failure: OwnFailure;
  /** The error of the reads that fail. */
  readonly error: PetqlError;
  /** The `Retry-After` of the response. */
  readonly retryAfterMs: number | undefined;
  /** What the log says of it. */
  readonly details: object;
  readonly flight: Flight;
  /** Who waited for this call, and waits for no other one in flight. */
  readonly waiting: readonly ReadWaiter[];
}

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

  get operation(): string {
    return this.isList ? this.key : readKindOf(this.key).operation;
  }

  get isList(): boolean {
    return isList(this.key);
  }

  get shownInput(): string | undefined {
    const { cache, clock } = this.#parts;
    const read = readOf(this.key);
    const isShown = read.kind === 'pet' && cache.isShownSince(read.id, clock.elapsed() - SHOWN_BY_LIST_MS);
    return isShown ? this.key : undefined;
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
  receive({ outcome, rateLimit, status, failure }: UpstreamAnswer<Snapshot>): void {
    const flight = this.#land();
    if (!flight) return;
    if (outcome.kind === 'ok') return this.#deliver(flight, outcome.value);

    // 1. The reads wait: the line pauses the key after a 429, and a list finds out what a 401 or an unproven 404 means.
    const { quota } = this.#parts;
    if (outcome.kind === 'rate-limited' || outcome.kind === 'not-found') return;
    if (outcome.kind === 'unauthenticated' && quota.closed.isInDoubt) return;

    // 2. The key is rejected, and so is any other call: one that may be banned is served from the cache.
    const error = readError(outcome, readKindOf(this.key).operation, quota.ban);
    const isRejected = quota.rejection !== undefined || quota.ban !== undefined;
    if (isRejected && isAboutKey(outcome)) return this.#pending.failAll(error);

    // 3. The call itself failed, for those who waited for it.
    const waiting = this.#pending.waitersFor(flight);
    const details = { status, ...failure };
    const received = { failure: outcome, error, retryAfterMs: rateLimit?.retryAfterMs, details, flight, waiting };
    if (outcome.kind === 'route-gone') this.#tryLists(received);
    else this.#failReads(received);
  }

  /** A defect of petql, or a key that the upstream rejects, concerns all reads. */
  fail(error: unknown): void {
    this.#land();
    this.#pending.failAll(error);
  }

  #depart(payer: ReadWaiter): Flight {
    const { cache, clock, events, failedCalls, line, quota } = this.#parts;
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
    // While gets are closed, the try is the only one.
    if (!this.isList && !quota.closed.areGetsOpen) line.reviewSoon();
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
    const asOfMs = sentAtMs - (response.ageMs ?? 0);
    const outcome = mapped(response.outcome, ({ pets, complete }) => {
      // A list from before a write proves no absence.
      const isProof = complete && !this.#isFromBeforeWrite(response, asOfMs);
      if (isProof && list === ALL_PETS) this.#checkList(pets, asOfMs);
      return listSnapshot(list, { pets, complete: isProof }, asOfMs, cache);
    });
    return { ...response, outcome };
  }

  /** Checks whether a complete list of all lacks pets that the upstream has shown. */
  #checkList(pets: readonly Pet[], asOfMs: number): void {
    const { cache, log } = this.#parts;
    const doubt = cache.checkList(pets, asOfMs);
    if (doubt) log.warn({ ...doubt }, 'lists of the pet API lack pets that it has, and prove no absence for a while');
  }

  async #get(id: Int64, { sentAtMs }: Flight, call: UpstreamCall): Promise<UpstreamAnswer<Snapshot>> {
    const { cache, getRoute, petApi } = this.#parts;
    const response = await petApi.getPet(id, call);
    const asOfMs = sentAtMs - (response.ageMs ?? 0);
    const isFromBefore = this.#isFromBeforeWrite(response, asOfMs);
    const outcome = getRoute.judge(isFromBefore ? withoutAbsence(response.outcome) : response.outcome);
    return {
      ...response,
      // That there is no such pet is an answer.
      failure: outcome.kind === 'ok' ? undefined : response.failure,
      outcome: mapped(outcome, (pet) => petSnapshot(id, pet, asOfMs, cache)),
    };
  }

  /** Whether a response from a cache may be from before the latest write. */
  #isFromBeforeWrite({ ageMs }: Pick<UpstreamAnswer<unknown>, 'ageMs'>, asOfMs: number): boolean {
    if (ageMs === undefined) return false;
    return this.#parts.cache.hasChangedSince(ageMs > 0 ? asOfMs : asOfMs - EVIDENCE_MS);
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
    const { cache, getRoute, quota } = this.#parts;
    const hasGets = getRoute.isBeforeSunset && quota.closed.areGetsOpen;
    const isUseful = (list: ListName) => !hasGets || (list === ALL_PETS && cache.sizeOf(list) !== 'large');
    const useless = LISTS.filter((list) => !isUseful(list));
    for (const { read } of received.waiting) for (const call of [this.key, ...useless]) read.tried.add(call);
    if (!hasGets) return;
    this.#askForShownPets();

    this.#recordFailure(received);
    for (const waiter of received.waiting) waiter.failed = received.error;
  }

  /** Whether this pet or all gets have no route is shown by the gets of pets that lists have shown. */
  #askForShownPets(): void {
    const { cache, clock, quota } = this.#parts;
    const shown = cache.petsShownSince(clock.elapsed() - SHOWN_BY_LIST_MS, PETS_WITHOUT_ROUTE);
    if (shown.length === PETS_WITHOUT_ROUTE && quota.closed.askForGets()) this.#pending.askForGets(shown);
  }

  #failReads(received: ReceivedFailure): void {
    const { failure, waiting } = received;
    const failed = this.#recordFailure(received);
    if (failure.kind === 'forbidden') this.#parts.cache.drop(this.key);

    for (const waiter of waiting) {
      waiter.failed = failed.error;
      if (waiter.read.key === this.key) this.#failOwn(waiter, failure, failed);
      // Nothing has worked below this base URL yet.
      else if (failure.kind === 'wrong-base-path') this.#pending.fail(waiter, failed.error, 'UPSTREAM_FAILED');
      // A list that was to save a call, and failed in a way that passes, is waited for once more.
      else if (!failed.isTransient) waiter.read.tried.add(this.key);
    }
  }

  #recordFailure({ failure, error, retryAfterMs, details, flight, waiting }: ReceivedFailure): FailedCall {
    const { failedCalls, quota } = this.#parts;
    return failedCalls.record(this.key, {
      error,
      // A list has no input that could be at fault, and lists have shown that the API accepts the key.
      isTransient:
        isTransient(failure) || failure.kind === 'unauthenticated' || (this.isList && failure.kind !== 'forbidden'),
      sentAtMs: flight.sentAtMs,
      retryAfterMs,
      details,
      useRetry: () => !waiting.every(({ hasAcceptedEntry }) => hasAcceptedEntry) && quota.retryBudget.use(),
    });
  }

  /** The call of the read itself failed: it is served stale data, waits for an early retry, or fails. */
  #failOwn(waiter: ReadWaiter, failure: OwnFailure, failed: FailedCall): void {
    if (failure.kind === 'forbidden') return this.#pending.finish(waiter, failed.error);
    if (this.#pending.serveStale(waiter, 'UPSTREAM_FAILED')) return;
    if (failed.isRetriedEarly && canWait(waiter, failed)) return;
    this.#pending.finish(waiter, failed.error);
  }
}

/** Lets the results go to the request that the call is billed to: from now on the call counts, or never will. */
function endSending({ billedTo, sending }: Flight): void {
  billedTo.sending = undefined;
  sending.resolve();
}

/** A 404 from a cache may be from before the pet was there. */
function withoutAbsence<T>(outcome: UpstreamOutcome<T>): UpstreamOutcome<T> {
  return outcome.kind === 'not-found' ? { kind: 'failed', status: 404, error: undefined } : outcome;
}

function mapped<T, U>(outcome: UpstreamOutcome<T>, map: (value: T) => U): UpstreamOutcome<U> {
  return outcome.kind === 'ok' ? { kind: 'ok', value: map(outcome.value) } : outcome;
}
