import type { Refused } from '../throttle/refused.ts';
import type { UpstreamAnswer, UpstreamFailure, UpstreamOutcome } from '../upstream/pet-api.ts';
import { readError } from '../upstream/upstream-errors.ts';
import { planCalls, willAnswer } from './call-planner.ts';
import type { CallPlan, PlanFacts } from './call-planner.ts';
import type { CallerParts } from './caller-parts.ts';
import { accepts, createPendingReads } from './pending-reads.ts';
import type { Flight, PendingRead, StaleReason } from './pending-reads.ts';
import { createReadFailures, unprovableError } from './read-failures.ts';
import { isList } from './read-key.ts';
import type { ReadKey } from './read-key.ts';
import { listSnapshot, petSnapshot } from './snapshot.ts';
import type { Snapshot } from './snapshot.ts';

/** Max permits requested at a time: as many as two rounds of concurrent calls need. */
const MAX_SLOTS = 100;

export type ReadQueue = ReturnType<typeof createReadQueue>;

/** The reads of one caller that wait for calls: those of all requests merge until the throttle grants a call. */
export function createReadQueue(parts: CallerParts) {
  const { clock, cache, throttle, getRoute, refreshBudget, retryBudget, rejectedKey, sharedLists } = parts;
  const pending = createPendingReads(parts, onChange);
  const { reads, flights } = pending;
  const readFailures = createReadFailures(parts, pending, onChange);
  /** Requests for permits that the throttle has not granted. */
  const slots = new Set<AbortController>();
  let plan: CallPlan<PendingRead> = { calls: new Map(), unprovable: [] };
  let isPlanStale = false;
  let isReviewing = false;

  return {
    add: pending.add,
    whyNotRefresh,
    /** Another replica has called for it: the reads that it answers need no call. */
    learn(snapshot: Snapshot) {
      cache.store(snapshot);
      const ageMs = clock.elapsed() - snapshot.asOfMs;
      pending.settleFrom(snapshot, ({ request }) => ageMs <= request.freshness.maxAgeMs);
      onChange();
    },
    /** How many calls wait to be sent. */
    planned: () => currentPlan().calls.size,
    review: onChange,
    close: readFailures.close,
  };

  /**
   * Returns why a stale answer is not refreshed now; undefined where a call for it is in flight, or may be sent at once.
   *
   * @param ahead calls that the same request needs before this one.
   */
  function whyNotRefresh(key: ReadKey, ahead: number): StaleReason | undefined {
    for (const flight of flights) {
      if (flight.generation === cache.generation() && willAnswer(flight.key, key, facts())) return undefined;
    }
    const waiting = reads.get(key);
    if (waiting && clock.elapsed() < waiting.pausedUntilMs) return 'UPSTREAM_FAILED';
    const planned = currentPlan().calls.size + ahead;
    if (throttle.outlook(planned).waitMs > 0) return throttle.isPaused() ? 'PAUSED' : 'QUOTA_EXHAUSTED';
    return waiting || refreshBudget.allows(planned) ? undefined : 'SAVING_QUOTA';
  }

  function facts(): PlanFacts {
    const hasCalled = cache.hasCalled() || flights.size > 0;
    return { size: cache.size(), hasCalled, mayGet: getRoute.mayGet(), hasShown: cache.hasShown };
  }

  /** Plans and reviews once a turn of the event loop, for all changes in it. */
  function onChange(): void {
    isPlanStale = true;
    if (isReviewing) return;
    isReviewing = true;
    setImmediate(() => {
      isReviewing = false;
      review();
    });
  }

  /** Fails at once what cannot be served in time, and requests a permit for each call of the plan. */
  function review(): void {
    pending.refuseLate();
    for (const { waiters } of currentPlan().unprovable) {
      for (const waiter of waiters) pending.fail([waiter], waiter.failed ?? unprovableError(), 'UPSTREAM_FAILED');
    }
    failHopeless();
    const wanted = Math.min(currentPlan().calls.size, MAX_SLOTS);
    for (const slot of [...slots].slice(wanted)) {
      slots.delete(slot);
      slot.abort();
    }
    while (slots.size < wanted) void requestPermit();
  }

  function currentPlan(): CallPlan<PendingRead> {
    if (isPlanStale) plan = planCalls([...reads.values()].filter(pending.needsCall), facts());
    isPlanStale = false;
    return plan;
  }

  function failHopeless(): void {
    const { calls } = currentPlan();
    // The last call waits longest.
    if (calls.size === 0 || throttle.outlook(calls.size - 1).waitMs === 0) return;
    let position = 0;
    for (const waiting of calls.values()) {
      const { waitMs, refused } = throttle.outlook(position);
      const untilMs = clock.elapsed() + waitMs;
      for (const waiter of waiting.flatMap(({ waiters }) => [...waiters])) {
        const isHopeless = waitMs > 0 && (waiter.isRefresh || untilMs > waiter.request.deadlineMs);
        if (isHopeless && !pending.isCovered(waiter)) pending.refuse(waiter, refused);
      }
      if (waiting.some(pending.needsCall)) position += 1;
    }
    isPlanStale = true;
  }

  async function requestPermit(): Promise<void> {
    const slot = new AbortController();
    slots.add(slot);
    let flight: Flight | undefined;
    const send = () => {
      slots.delete(slot);
      flight = nextFlight();
      return flight && sendRead(flight, parts);
    };
    try {
      const passage = await throttle.pass({ kind: 'read', deadlineMs: Infinity, signal: slot.signal }, send);
      slots.delete(slot);
      if (passage.kind === 'refused') slotRefused(passage);
      else if (passage.kind === 'answered' && flight) receive(flight, passage.answer);
    } catch (error) {
      // Only a defect of petql throws in a call; the reads must not wait for ever because of it.
      slots.delete(slot);
      if (flight) flights.delete(flight);
      failAll(error as Error);
    }
  }

  /** A full throttle queue refuses the last call of the plan; any other refusal concerns all calls. */
  function slotRefused(refused: Refused): void {
    if (refused.reason === 'aborted') return;
    const calls = [...currentPlan().calls.values()];
    for (const waiting of refused.reason === 'crowded' ? calls.slice(-1) : calls) {
      for (const { waiters } of waiting) for (const waiter of waiters) pending.refuse(waiter, refused);
    }
    onChange();
  }

  /** The call that leaves with this permit; undefined where none is needed any more. */
  function nextFlight(): Flight | undefined {
    // The upstream may have rejected the key in another call meanwhile.
    const rejected = rejectedKey.error();
    if (rejected) failAll(rejected);
    const { calls } = currentPlan();
    for (const [key, planned] of calls) {
      calls.delete(key);
      const waiting = planned.filter(pending.needsCall);
      if (waiting.length > 0) return depart(key, waiting);
    }
    return undefined;
  }

  function depart(key: ReadKey, waiting: readonly PendingRead[]): Flight {
    const isRetry = waiting.every(({ failures }) => failures > 0);
    if (isRetry) parts.onRetry(key);
    // A call that saves others is billed to the read that it answers.
    const payer = waiting.find((read) => read.key === key) ?? waiting[0];
    const billedTo = payer && [...payer.waiters].find((waiter) => !pending.isCovered(waiter));
    billedTo?.request.charge(billedTo.read.key, isRetry);
    refreshBudget.spend();
    const flight = { key, sentAtMs: clock.elapsed(), generation: cache.generation(), isRetry, billedTo };
    flights.add(flight);
    // While the circuit is open, the probe is the only get.
    if (!isList(key) && !getRoute.isHealthy()) onChange();
    return flight;
  }

  function receive(flight: Flight, { outcome, sent }: UpstreamAnswer<Snapshot>): void {
    flights.delete(flight);
    if (!sent) {
      flight.billedTo?.request.refund(flight.billedTo.read.key);
      refreshBudget.refund();
    } else if (!flight.isRetry) retryBudget.called();
    if (outcome.kind === 'ok') land(flight, outcome.value);
    else fail(flight, outcome);
    onChange();
  }

  function land(flight: Flight, snapshot: Snapshot): void {
    rejectedKey.accept();
    if (flight.generation === cache.generation()) {
      cache.store(snapshot);
      sharedLists?.share(snapshot);
    }
    pending.settleFrom(snapshot, (waiter) => accepts(waiter, flight));
  }

  function fail(flight: Flight, failure: UpstreamFailure): void {
    // The throttle pauses the key, and the reads wait for it or fail with that.
    if (failure.kind === 'rate-limited') return;
    const mayBeBanned = throttle.mayBeBanned();
    const error = readError(failure, mayBeBanned);
    const isRejected = failure.kind === 'unauthenticated' || (failure.kind === 'forbidden' && mayBeBanned);
    if (!isRejected) return readFailures.receive(flight, failure, error);
    // A key that may be banned is served from the cache, and the throttle pauses it.
    if (!mayBeBanned) parts.onRejected();
    failAll(error);
  }

  function failAll(error: Error): void {
    for (const { waiters } of reads.values()) pending.fail(waiters, error, 'PAUSED');
    onChange();
  }
}

/** Sends the call of a flight, and makes a snapshot of its response. */
async function sendRead(
  { key, sentAtMs, billedTo }: Flight,
  { apiKey, petApi, getRoute, cache: { known } }: CallerParts,
): Promise<UpstreamAnswer<Snapshot>> {
  // The call belongs to the trace of the request that it is billed to.
  const call = { apiKey, trace: billedTo?.request.trace };
  if (isList(key)) {
    const answer = await petApi.listPets(key === 'all' ? undefined : key, call);
    return { ...answer, outcome: mapped(answer.outcome, (list) => listSnapshot(key, list, sentAtMs, known)) };
  }
  getRoute.sending();
  const answer = await petApi.getPet(key, call);
  const outcome = getRoute.judge(answer.outcome, key);
  return { ...answer, outcome: mapped(outcome, (pet) => petSnapshot(key, pet, sentAtMs, known)) };
}

function mapped<T, U>(outcome: UpstreamOutcome<T>, map: (value: T) => U): UpstreamOutcome<U> {
  return outcome.kind === 'ok' ? { kind: 'ok', value: map(outcome.value) } : outcome;
}
