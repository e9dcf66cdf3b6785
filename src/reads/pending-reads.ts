import type { CallerRequest, Freshness } from '../common/caller-request.ts';
import type { Clock } from '../common/clock.ts';
import type { Events } from '../common/events.ts';
import type { KeyLog } from '../common/log.ts';
import { MOMENT_MS, waitAtMost } from '../common/time-limit.ts';
import { MAX_LATE_MS } from '../common/call-times.ts';
import { whyNoCall } from '../line/admission.ts';
import type { CallLine } from '../line/call-line.ts';
import type { KeyQuota } from '../quota/key-quota.ts';
import type { Refusal } from '../line/refusal.ts';
import type { Int64 } from '../pets/int64.ts';
import { canAnswer, maxCalls } from '../pets/call-planner.ts';
import type { PlanFacts, PlannedRead } from '../pets/call-planner.ts';
import type { GetRoute } from '../pets/get-route.ts';
import type { PetApi } from '../pets/pet-api.ts';
import type { PetCache } from './cache/pet-cache.ts';
import type { FailedCalls } from './failed-calls.ts';
import { LISTS, callsFor, isList, readKindOf, readOf } from '../pets/read-key.ts';
import type { CallKey, ListName, ReadKey } from '../pets/read-key.ts';
import { ownRequest } from './own-request.ts';
import { ReadWaiter } from './read-waiter.ts';
import type { StaleReason } from '../common/usage.ts';
import type { Flight, PendingRead, ReadResult } from './read-waiter.ts';
import { answerFrom, listsWithout } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';

/** What the reads of one caller are made of. */
export interface ReadParts {
  readonly quota: KeyQuota;
  readonly line: CallLine;
  readonly cache: PetCache;
  readonly failedCalls: FailedCalls;
  /** Names the key by its hash. */
  readonly log: KeyLog;
  // All callers share these.
  readonly petApi: PetApi;
  readonly getRoute: GetRoute;
  readonly clock: Clock;
  readonly events: Events | undefined;
}

/** Different reads that may wait at a time. */
const MAX_PENDING = 1_000;

/** The reads of one caller that wait, its calls in flight, and every way in which a wait ends. */
export class PendingReads {
  readonly #parts: ReadParts;
  /** The reads that wait, in order of arrival. */
  readonly #reads = new Map<ReadKey, PendingRead>();
  /** The calls in flight. */
  readonly #flights = new Map<CallKey, Set<Flight>>();
  /** What the planner goes by. */
  readonly facts: PlanFacts;

  constructor(parts: ReadParts) {
    this.#parts = parts;
    const { cache, getRoute, quota } = parts;
    this.facts = {
      get mayGet() {
        // While the API is closed, any call may be the try that opens it.
        return getRoute.mayGet && (quota.closed.mayGet || quota.closed.isApiClosed(quota));
      },
      sizeOf: (list) => cache.sizeOf(list),
      hasShown: (list, id) => cache.hasShown(list, id),
      hasCalledOther: (call) => cache.hasOther(call) || this.#flights.size > (this.#flights.has(call) ? 1 : 0),
    };
  }

  /** Adds the reads of one request as one batch, with one abort listener. Resolves once all have ended. */
  async add(keys: readonly ReadKey[], request: CallerRequest): Promise<ReadResult[]> {
    const signal = request.signal();
    const waiters = keys.map((key) => this.#addWaiter(key, request));

    const onAbort = () => this.#abort(waiters);
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    else this.#parts.line.reviewSoon();

    const timer = this.#endAtDeadline(waiters, request);
    const results = await Promise.all(waiters.map(({ result }) => result.promise));
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    return results;
  }

  /** Asks for a list that no request wants. It belongs to no visitor and to no operation. */
  ask(list: ListName): void {
    const { clock, log } = this.#parts;
    log.debug?.({ list }, 'petql asks for a list');
    void this.add([list], ownRequest(clock.elapsed()));
  }

  /** Asks for the gets of pets that no request wants, though lists show them. */
  askForGets(ids: readonly Int64[]): void {
    void this.add(ids, ownRequest(this.#parts.clock.elapsed()));
    for (const id of ids) for (const list of LISTS) this.#reads.get(id)?.tried.add(list);
  }

  /** How many reads wait. */
  get size(): number {
    return this.#reads.size;
  }

  has(key: ReadKey): boolean {
    return this.#reads.has(key);
  }

  /** Yields all waiters; they may end meanwhile. */
  *waiters(): Generator<ReadWaiter> {
    for (const { waiters } of this.#reads.values()) yield* waiters;
  }

  /** Returns the reads that the planner has to find calls for. */
  readsToPlan(): PendingRead[] {
    return [...this.#reads.values()].filter((read) => this.needsCall(read));
  }

  /** Whether a waiter needs a call. */
  needsCall({ waiters }: PendingRead): boolean {
    for (const waiter of waiters) {
      if (!this.isCovered(waiter)) return true;
    }
    return false;
  }

  /** Whether a call in flight may answer it. */
  isCovered(waiter: ReadWaiter): boolean {
    return this.#isInFlightFor(waiter.read, (flight) => waiter.isInTime(flight) && waiter.accepts(flight));
  }

  /** Returns the maximum of calls that reads which come now can cost, retries aside: the cache answers those with a fresh entry. */
  maxCalls(keys: readonly ReadKey[], freshness: Freshness): number {
    const { cache, getRoute, quota } = this.#parts;
    const needed = [...new Set(keys)].filter((key) => cache.findAccepted(key, freshness)?.isStale ?? true);
    const reads = needed.map((key) => this.unplannedRead(key, freshness));
    const { isBeforeSunset } = getRoute;
    const { areGetsOpen } = quota.closed;
    const calls = maxCalls(reads, { ...this.facts, mayGet: isBeforeSunset && areGetsOpen });
    // While gets are closed, lists are tried first, and a get may open them at any moment.
    const gets = reads.filter(({ key }) => readOf(key).kind === 'pet').length;
    return areGetsOpen || !isBeforeSunset ? calls : calls + gets;
  }

  /** Returns a read as the planner would see it if it came now. */
  unplannedRead(key: ReadKey, freshness: Freshness): PlannedRead {
    return { key, tried: this.#triedLists(key, freshness) };
  }

  /** Records a call that is about to be sent. */
  addFlight(flight: Flight): void {
    this.#flights.set(flight.key, (this.#flights.get(flight.key) ?? new Set()).add(flight));
  }

  /** Records that a call has ended: it covers no read any more. */
  deleteFlight(flight: Flight): void {
    const same = this.#flights.get(flight.key);
    same?.delete(flight);
    if (same?.size === 0) this.#flights.delete(flight.key);
  }

  get hasFlights(): boolean {
    return this.#flights.size > 0;
  }

  isInFlight(call: CallKey): boolean {
    return this.#flights.has(call);
  }

  /** Whether a call in flight may answer a read that comes now. */
  isOnItsWay(read: PlannedRead): boolean {
    const { generation } = this.#parts.cache;
    return this.#isInFlightFor(read, (flight) => flight.generation === generation);
  }

  /** Returns the waiters that waited for this call, which has ended, and wait for no other one in flight. */
  waitersFor(flight: Flight): ReadWaiter[] {
    const answerable = this.#concernedBy(flight.key).filter((read) => canAnswer(flight.key, read, this.facts));
    const waiters = answerable.flatMap((read) => [...read.waiters]);
    return waiters.filter((waiter) => waiter.accepts(flight) && !this.isCovered(waiter));
  }

  /** Ends the waits that a snapshot answers, if it is for them. A list that shows nothing of a read has been tried. */
  finishFrom(snapshot: Snapshot, isFor: (waiter: ReadWaiter) => boolean): void {
    const { key: call, asOfMs } = snapshot;
    for (const read of this.#concernedBy(call)) {
      const takers = [...read.waiters].filter(isFor);
      const found = answerFrom(snapshot, read.key);
      if (found === undefined) {
        if (takers.length < read.waiters.size) continue;
        for (const list of listsWithout(snapshot, read.key)) read.tried.add(list);
        continue;
      }
      for (const waiter of takers) this.finish(waiter, { found, asOfMs, staleReason: undefined, waiter });
    }
  }

  /** Takes a snapshot that another replica has called for: the reads that it answers need no call. */
  receiveShared(snapshot: Snapshot): void {
    const { cache, clock, failedCalls, line, quota } = this.#parts;
    cache.store(snapshot);
    failedCalls.recordResponse(snapshot);
    quota.closed.recordElsewhere(snapshot.asOfMs);
    const ageMs = clock.elapsed() - snapshot.asOfMs;
    this.finishFrom(snapshot, ({ request }) => ageMs <= request.freshness.maxAgeMs);
    line.reviewSoon();
  }

  /** Ends the wait with the cached entry, and returns true, if the request accepts it. */
  serveStale(waiter: ReadWaiter, reason: StaleReason): boolean {
    const { cache } = this.#parts;
    const { read, request } = waiter;
    const isFailing = reason === 'UPSTREAM_FAILED';
    const accepted =
      cache.findAccepted(read.key, request.freshness) ??
      (isFailing ? cache.findBeforeUnknownWrite(read.key, request.freshness) : undefined);
    if (!accepted) return false;
    const staleReason = accepted.isStale ? reason : undefined;
    this.finish(waiter, { ...accepted.entry, staleReason, waiter });
    return true;
  }

  /** Ends the wait with the cached entry, or else with the error. */
  fail(waiter: ReadWaiter, error: Error, reason: StaleReason): void {
    if (!this.serveStale(waiter, reason)) this.finish(waiter, error);
  }

  /** Ends all waits in this way, after an error that concerns all calls of the key. */
  failAll(error: unknown): void {
    for (const waiter of this.waiters()) this.fail(waiter, error as Error, 'PAUSED');
    this.#parts.line.reviewSoon();
  }

  /** Ends a wait for which no call is sent in time. */
  refuse(waiter: ReadWaiter, refusal: Refusal): void {
    const { failed, request, read } = waiter;
    const { log, quota } = this.#parts;
    log.debug?.(
      {
        request: request.id,
        read: readKindOf(read.key).logName(read.key),
        reason: refusal.reason,
        window: refusal.window,
      },
      'read refused',
    );

    const isFailing = refusal.reason === 'outage' || (failed && !quota.isAfter429);
    const reason = isFailing ? 'UPSTREAM_FAILED' : whyNoCall(quota, { isQuotaLeft: refusal.reason === 'in-flight' });
    this.fail(waiter, failed ?? refusal.error(), reason);
  }

  /** Ends a wait. The first result counts. */
  finish(waiter: ReadWaiter, result: ReadResult): void {
    const { read, sending } = waiter;
    read.waiters.delete(waiter);
    if (read.waiters.size === 0 && this.#reads.get(read.key) === read) this.#reads.delete(read.key);

    if (!sending) return waiter.result.resolve(result);
    // The response to the client says how many calls it has cost.
    void waitAtMost(sending, MOMENT_MS).then(() => waiter.result.resolve(result));
  }

  /** Ends the reads that no call claims: the line, which ends the others, has never heard of them. */
  #endAtDeadline(waiters: readonly ReadWaiter[], { deadlineMs }: CallerRequest): NodeJS.Timeout {
    const { clock, line } = this.#parts;
    const isUnclaimed = (waiter: ReadWaiter) => !waiter.hasStoodInLine && !this.isCovered(waiter);
    const end = () => {
      const late = waiters.filter((waiter) => waiter.read.waiters.has(waiter) && isUnclaimed(waiter));
      for (const waiter of late) this.refuse(waiter, line.refusal('read', 'late'));
    };
    const waitMs = deadlineMs + MAX_LATE_MS - clock.elapsed();
    // After a blocked event loop the line is reviewed before.
    return setTimeout(() => setImmediate(end), Math.max(0, Math.ceil(waitMs)));
  }

  #addWaiter(key: ReadKey, request: CallerRequest): ReadWaiter {
    const { cache, clock, line } = this.#parts;
    const { freshness } = request;
    const isCrowded = !this.#reads.has(key) && this.#reads.size >= MAX_PENDING;
    const notBeforeMs = clock.elapsed() - freshness.coalesceWithinMs;
    const waiter = new ReadWaiter(this.#openRead(key, freshness, notBeforeMs), request, notBeforeMs, cache);
    waiter.read.waiters.add(waiter);
    if (isCrowded) this.refuse(waiter, line.refusal('read', 'crowded'));
    return waiter;
  }

  /** Returns the read that waits already, or adds one. */
  #openRead(key: ReadKey, freshness: Freshness, notBeforeMs: number): PendingRead {
    const generation = this.#parts.cache.generation;
    const read = this.#reads.get(key);
    if (!read) {
      const added = { key, tried: this.#triedLists(key, freshness), waiters: new Set<ReadWaiter>(), generation };
      this.#reads.set(key, added);
      this.#tryClosedLists(key);
      return added;
    }

    // A list that was tried before may answer a read that wants newer data.
    if (read.generation < generation || notBeforeMs > -Infinity) read.tried.clear();
    read.generation = generation;
    return read;
  }

  /** Returns the lists that are no use for a read that comes now: they are fresh and came without it, or fail. */
  #triedLists(key: ReadKey, freshness: Freshness): Set<CallKey> {
    const { cache, clock, failedCalls } = this.#parts;
    const tried = new Set<CallKey>(cache.freshListsWithout(key, clock.elapsed() - freshness.maxAgeMs));
    if (!failedCalls.isEmpty) {
      const isStaleAccepted = cache.findAccepted(key, freshness) !== undefined;
      for (const list of LISTS) {
        if (failedCalls.isAvoided(list, isStaleAccepted)) tried.add(list);
      }
    }
    tried.delete(key);
    return tried;
  }

  /** Reads get calls of their own instead of a closed list, so petql tries it beside them. */
  #tryClosedLists(key: ReadKey): void {
    const { failedCalls, quota } = this.#parts;
    if (failedCalls.isEmpty || quota.closed.isApiClosed(quota)) return;
    const read = { key, tried: new Set<CallKey>() };
    for (const list of LISTS) {
      const isTried = list === key || this.#reads.has(list) || this.isInFlight(list);
      if (!isTried && failedCalls.isDue(list) && canAnswer(list, read, this.facts)) this.ask(list);
    }
  }

  #abort(waiters: readonly ReadWaiter[]): void {
    const { line } = this.#parts;
    const error = line.refusal('read', 'aborted').error();
    for (const waiter of waiters) this.finish(waiter, error);
    line.reviewSoon();
  }

  /** Whether such a call is in flight that may answer the read. */
  #isInFlightFor(read: PlannedRead, isSuch: (flight: Flight) => boolean): boolean {
    return callsFor(read.key).some((call) => {
      const flights = this.#flights.get(call);
      return flights !== undefined && canAnswer(call, read, this.facts) && [...flights].some(isSuch);
    });
  }

  /** Returns the reads that a call may concern: its own, or for a list, all of them. */
  #concernedBy(call: CallKey): readonly PendingRead[] {
    if (isList(call)) return [...this.#reads.values()];
    const own = this.#reads.get(call);
    return own ? [own] : [];
  }
}
