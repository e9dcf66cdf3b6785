import type { PetqlError } from '../errors.ts';
import { MOMENT_MS, graceLeftMs, inTime } from '../time-limit.ts';
import type { Refused } from '../throttle/refused.ts';
import { canAnswer } from './call-planner.ts';
import type { PlanFacts, PlannedRead } from './call-planner.ts';
import type { CallerParts } from './caller-parts.ts';
import type { Freshness } from './freshness.ts';
import { LISTS, isList } from './read-key.ts';
import type { ReadKey } from './read-key.ts';
import type { ReadRequest, ReadResult, StaleReason } from './read-request.ts';
import { answerFrom } from './snapshot.ts';
import type { Snapshot } from './snapshot.ts';

/** One read of one request. */
export interface Waiter {
  readonly read: PendingRead;
  readonly request: ReadRequest;
  /** Generation at arrival … */
  readonly generation: number;
  /** … and the earliest moment at which a call may have been sent that answers it. */
  readonly notBeforeMs: number;
  /** Whether a stale answer would do: then it does not wait for the quota. */
  readonly isRefresh: boolean;
  /** When its deadline came, Infinity before. After that it waits only for calls that were sent before. */
  lateSinceMs: number;
  /** While it is not known whether the call that left for it has a connection, and so is billed to it. */
  sending: Promise<void> | undefined;
  /** The error of a call that it waited for. */
  failed: PetqlError | undefined;
  /** The first result counts. */
  readonly settle: (result: ReadResult) => void;
}

/** A read that waits for a call, and all requests that wait for it. */
export interface PendingRead extends PlannedRead {
  readonly tried: Set<ReadKey>;
  readonly waiters: Set<Waiter>;
  /** The latest generation of its waiters. */
  generation: number;
}

/** A call in flight. */
export interface Flight {
  readonly key: ReadKey;
  readonly sentAtMs: number;
  readonly generation: number;
  /** Whether it is an early retry (failed-calls.ts). */
  readonly isRetry: boolean;
  readonly billedTo: Waiter | undefined;
  /** Settles once the call has a connection, or has none. */
  readonly sending: PromiseWithResolvers<void>;
}

/** Different reads that may wait at a time. */
const MAX_PENDING = 1_000;

/** Read your writes, and no answer from before the moment that the request names. */
export function accepts(waiter: Waiter, { sentAtMs, generation }: Flight): boolean {
  return generation >= waiter.generation && sentAtMs >= waiter.notBeforeMs;
}

export type PendingReads = ReturnType<typeof createPendingReads>;

/**
 * The reads of one caller that wait, its calls in flight, and every way in which a wait ends.
 *
 * @param onChange is called when reads have come or gone.
 */
export function createPendingReads(parts: CallerParts, onChange: () => void) {
  const { clock, log, cache, failedCalls, getRoute, throttle } = parts;
  const reads = new Map<ReadKey, PendingRead>();
  const flights = new Set<Flight>();
  /** What is known of the store at the moment. */
  const facts: PlanFacts = {
    get size() {
      return cache.size();
    },
    get mayGet() {
      return getRoute.mayGet();
    },
    hasShown: cache.hasShown,
    hasCalledOther: (key) => cache.hasOther(key) || [...flights].some((flight) => flight.key !== key),
  };
  const waits = { add, needsCall, isCovered, waitersFor, hasData, triedLists };
  const ends = { settleFrom, serveStale, fail, refuse, refuseLate };
  return { reads, flights, facts, ...waits, ...ends };

  /** Adds the reads of one request as one batch: one timer, one abort listener. Resolves once all are settled. */
  async function add(keys: readonly ReadKey[], request: ReadRequest): Promise<ReadResult[]> {
    const signal = request.signal();
    const waiters: Waiter[] = [];
    const results = keys.map((key) => {
      const { promise, resolve } = Promise.withResolvers<ReadResult>();
      const isCrowded = !reads.has(key) && reads.size >= MAX_PENDING;
      const waiter = addWaiter(key, request, resolve);
      waiters.push(waiter);
      if (isCrowded) refuse(waiter, throttle.refusal('crowded'));
      return promise;
    });
    const onAbort = () => {
      for (const waiter of waiters) waiter.settle(throttle.refusal('aborted').error());
      onChange();
    };
    const onDeadline = () => {
      for (const waiter of waiters) waiter.lateSinceMs = clock.elapsed();
      onChange();
    };
    const timer = setTimeout(onDeadline, Math.max(0, graceLeftMs(request.deadlineMs, clock)));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    else onChange();
    const settled = await Promise.all(results);
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    return settled;
  }

  function addWaiter(key: ReadKey, request: ReadRequest, resolve: (result: ReadResult) => void): Waiter {
    const { freshness } = request;
    const generation = cache.generation();
    const notBeforeMs = clock.elapsed() - freshness.coalesceWithinMs;
    const others = reads.get(key);
    const read = others ?? createRead(key, freshness);
    reads.set(key, read);
    // A list that was tried before may answer a read that wants newer data.
    if (others && (read.generation < generation || notBeforeMs > -Infinity)) read.tried.clear();
    read.generation = generation;
    const waiter: Waiter = {
      read,
      request,
      generation,
      notBeforeMs,
      isRefresh: freshness.mayServeStaleToSaveCalls && cache.findAccepted(key, freshness) !== undefined,
      lateSinceMs: Infinity,
      failed: undefined,
      sending: undefined,
      settle(result) {
        read.waiters.delete(waiter);
        if (read.waiters.size === 0 && reads.get(key) === read) reads.delete(key);
        if (!waiter.sending) return resolve(result);
        // The response tells what it has cost.
        void inTime(waiter.sending, MOMENT_MS).then(() => resolve(result));
      },
    };
    read.waiters.add(waiter);
    return waiter;
  }

  function createRead(key: ReadKey, freshness: Freshness): PendingRead {
    return { key, tried: triedLists(key, freshness), waiters: new Set(), generation: cache.generation() };
  }

  /** The lists that are no use for a read that comes now: they are fresh and came without it, or fail. */
  function triedLists(key: ReadKey, freshness: Freshness): Set<ReadKey> {
    const tried = new Set<ReadKey>(cache.freshLists(clock.elapsed() - freshness.maxAgeMs));
    if (!failedCalls.isEmpty) {
      const isStaleAccepted = cache.findAccepted(key, freshness) !== undefined;
      for (const list of LISTS) if (failedCalls.isAvoided(list, isStaleAccepted)) tried.add(list);
    }
    tried.delete(key);
    return tried;
  }

  /** Whether a waiter before its deadline needs a call. */
  function needsCall({ waiters }: PendingRead): boolean {
    for (const waiter of waiters) if (waiter.lateSinceMs === Infinity && !isCovered(waiter)) return true;
    return false;
  }

  /** Whether a call in flight may answer it. */
  function isCovered(waiter: Waiter): boolean {
    for (const flight of flights) {
      const isInTime = flight.sentAtMs <= waiter.lateSinceMs;
      if (isInTime && accepts(waiter, flight) && canAnswer(flight.key, waiter.read, facts)) return true;
    }
    return false;
  }

  /** The waiters that wait for this call, and for no other one in flight. */
  function waitersFor(flight: Flight): Waiter[] {
    const answerable = concernedBy(flight.key).filter((read) => canAnswer(flight.key, read, facts));
    const waiters = answerable.flatMap((read) => [...read.waiters]);
    return waiters.filter((waiter) => accepts(waiter, flight) && !isCovered(waiter));
  }

  /** Whether a cached answer would do if calls fail. */
  function hasData({ read, request }: Waiter): boolean {
    return cache.findAccepted(read.key, request.freshness) !== undefined;
  }

  /** The reads that a call may concern: its own, or for a list, all of them. */
  function concernedBy(call: ReadKey): readonly PendingRead[] {
    const read = reads.get(call);
    if (isList(call)) return [...reads.values()];
    return read ? [read] : [];
  }

  /** Settles the waiters that a snapshot answers, as far as it is for them; the others have tried its list. */
  function settleFrom(snapshot: Snapshot, isFor: (waiter: Waiter) => boolean): void {
    const { key: call, asOfMs } = snapshot;
    for (const read of concernedBy(call)) {
      const found = answerFrom(snapshot, read.key);
      const takers = [...read.waiters].filter(isFor);
      if (found === undefined && isList(call) && takers.length === read.waiters.size) read.tried.add(call);
      if (found !== undefined)
        for (const waiter of takers) waiter.settle({ found, asOfMs, staleReason: undefined, hasWaited: true });
    }
  }

  /** Settles with the cached answer, if the request accepts it. */
  function serveStale(waiter: Waiter, reason: StaleReason): boolean {
    const accepted = cache.findAccepted(waiter.read.key, waiter.request.freshness);
    if (accepted) {
      waiter.settle({ ...accepted.answer, staleReason: accepted.isStale ? reason : undefined, hasWaited: true });
    }
    return accepted !== undefined;
  }

  function fail(waiters: Iterable<Waiter>, error: Error, reason: StaleReason): void {
    for (const waiter of waiters) if (!serveStale(waiter, reason)) waiter.settle(error);
  }

  /** The throttle lets no call through for it in time. */
  function refuse(waiter: Waiter, refused: Refused): void {
    const { failed, request, read } = waiter;
    log.debug?.(
      { request: request.id, read: read.key, reason: refused.reason, window: refused.window },
      'read refused',
    );
    const isPaused = refused.reason === 'banned' || throttle.isPaused();
    const reason = isPaused ? 'PAUSED' : failed ? 'UPSTREAM_FAILED' : 'QUOTA_EXHAUSTED';
    fail([waiter], failed ?? refused.error(request.freshness.maxAgeMs < 0), reason);
  }

  /** Refuses the waiters past their deadline that no call in flight may answer. */
  function refuseLate(): void {
    for (const { waiters } of reads.values()) {
      for (const waiter of waiters) {
        if (waiter.lateSinceMs < Infinity && !isCovered(waiter)) refuse(waiter, throttle.outlook(0).refused);
      }
    }
  }
}
