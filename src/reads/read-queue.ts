import type { Refused } from '../throttle/refused.ts';
import type { Call } from '../throttle/waiter.ts';
import type { UpstreamAnswer, UpstreamFailure, UpstreamOutcome } from '../upstream/pet-api.ts';
import { readError } from '../upstream/upstream-errors.ts';
import { canAnswer, planCalls } from './call-planner.ts';
import type { CallPlan, PlannedRead } from './call-planner.ts';
import type { CallerParts } from './caller-parts.ts';
import type { Freshness } from './freshness.ts';
import { accepts, createPendingReads } from './pending-reads.ts';
import type { Flight, PendingRead } from './pending-reads.ts';
import { createReadFailures, unprovableError } from './read-failures.ts';
import { isList } from './read-key.ts';
import type { ReadKey } from './read-key.ts';
import type { StaleReason } from './read-request.ts';
import { listSnapshot, petSnapshot } from './snapshot.ts';
import type { Snapshot } from './snapshot.ts';

/** Calls of a plan that a line of the log names. */
const MAX_LOGGED = 10;

export type ReadQueue = ReturnType<typeof createReadQueue>;

/** The reads of one caller that wait for calls: those of all requests merge until the throttle grants a call. */
export function createReadQueue(parts: CallerParts) {
  const { clock, log, cache, failedCalls, throttle, getRoute } = parts;
  const { refreshBudget, retryBudget, rejectedKey, sharedLists } = parts;
  const pending = createPendingReads(parts, onChange);
  const { reads, flights, facts } = pending;
  const readFailures = createReadFailures(parts, pending, onChange);
  let plan: CallPlan<PendingRead> = { calls: new Map(), unprovable: [] };
  /** Since when each call of the plan is wanted. */
  let plannedAtMs = new Map<ReadKey, number>();
  /** Calls of the plan that failed a short while ago, and are not sent yet. */
  let held = new Map<ReadKey, readonly PendingRead[]>();
  let isPlanStale = false;
  let isReviewing = false;

  return {
    add: pending.add,
    whyNotRefresh,
    /** Returns the call that would answer this read if it came alone. */
    callFor: (key: ReadKey, freshness: Freshness) => callFor(unplannedRead(key, freshness)),
    isInFlight: (call: ReadKey) => [...flights].some(({ key }) => key === call),
    /** Another replica has called for it: the reads that it answers need no call. */
    learn(snapshot: Snapshot) {
      cache.store(snapshot);
      failedCalls.recordResponse(snapshot);
      const ageMs = clock.elapsed() - snapshot.asOfMs;
      pending.settleFrom(snapshot, ({ request }) => ageMs <= request.freshness.maxAgeMs);
      onChange();
    },
    /** Returns how many calls wait for a permit, as planned last: the next review plans again, and pulls. */
    wanted: () => plan.calls.size,
    next,
    refuse: refuseAll,
    fail: failAll,
    review: onChange,
    close: () => readFailures.close(),
  };

  /**
   * Returns why a stale answer is not refreshed now; undefined where a call for it is in flight, or may be sent at once.
   *
   * @param ahead calls that the same request needs before this one.
   */
  function whyNotRefresh(key: ReadKey, freshness: Freshness, ahead: number): StaleReason | undefined {
    if (!failedCalls.isEmpty || flights.size > 0) {
      const read = unplannedRead(key, freshness);
      if (isFailing(read)) return 'UPSTREAM_FAILED';
      for (const flight of flights) {
        if (flight.generation === cache.generation() && canAnswer(flight.key, read, facts)) return undefined;
      }
    }
    // A request that names its own age gets that age, while the upstream works.
    if (!freshness.mayServeStaleToSaveCalls) return undefined;
    const planned = currentPlan().calls.size + ahead;
    if (throttle.outlook(planned).waitMs > 0 || throttle.waitsForCalls(planned)) return whyNotNow();
    return reads.has(key) || refreshBudget.allows(planned) ? undefined : 'SAVING_QUOTA';
  }

  /** Whether the call that would refresh it failed, and waits for its next try or is in it: nobody with stale data waits twice. */
  function isFailing(read: PlannedRead): boolean {
    if (failedCalls.isEmpty) return false;
    const call = callFor(read);
    if (call === undefined || !failedCalls.find(call)) return false;
    return failedCalls.isBackingOff(call) || [...flights].some(({ key }) => key === call);
  }

  function unplannedRead(key: ReadKey, freshness: Freshness): PlannedRead {
    return { key, tried: pending.triedLists(key, freshness) };
  }

  function callFor(read: PlannedRead): ReadKey | undefined {
    const [call] = planCalls([read], facts).calls.keys();
    return call;
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

  /** Fails at once what cannot be served in time, and lets the throttle pull the calls of the plan. */
  function review(): void {
    pending.refuseLate();
    for (const { waiters } of currentPlan().unprovable) {
      for (const waiter of waiters) pending.fail([waiter], waiter.failed ?? unprovableError(), 'UPSTREAM_FAILED');
    }
    readFailures.reviewHeld(held);
    failHopeless();
    serveBusy();
    currentPlan();
    throttle.pull();
  }

  function currentPlan(): CallPlan<PendingRead> {
    if (!isPlanStale) return plan;
    plan = planCalls([...reads.values()].filter(pending.needsCall), facts);
    held = new Map([...plan.calls].filter(([call, waiting]) => readFailures.isHeld(call, waiting)));
    for (const call of held.keys()) plan.calls.delete(call);
    if (plan.calls.size > 0)
      log.debug?.({ calls: [...plan.calls.keys()].slice(0, MAX_LOGGED), reads: reads.size }, 'call plan');
    const nowMs = clock.elapsed();
    plannedAtMs = new Map([...plan.calls.keys()].map((key) => [key, plannedAtMs.get(key) ?? nowMs]));
    isPlanStale = false;
    return plan;
  }

  function failHopeless(): void {
    const { calls } = currentPlan();
    // The last call waits longest.
    if (calls.size === 0 || throttle.hasOldView() || throttle.outlook(calls.size - 1).waitMs === 0) return;
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

  /** Serves stale data to the reads whose call would wait for another one to end. */
  function serveBusy(): void {
    const { calls } = currentPlan();
    if (calls.size === 0 || !throttle.waitsForCalls(calls.size - 1)) return;
    for (const [position, waiting] of [...calls.values()].entries()) {
      if (!throttle.waitsForCalls(position)) continue;
      for (const waiter of waiting.flatMap(({ waiters }) => [...waiters])) {
        if (waiter.isRefresh && !pending.isCovered(waiter)) pending.serveStale(waiter, whyNotNow());
      }
    }
    isPlanStale = true;
  }

  /** Why the throttle lets no call through: after a 429 it sends none, and then one at a time. */
  function whyNotNow(): StaleReason {
    return throttle.mayBeBanned() ? 'PAUSED' : 'QUOTA_EXHAUSTED';
  }

  /** Refuses the reads that wait for a permit; those of a call in flight get its response. */
  function refuseAll(refused: Refused): void {
    for (const waiting of currentPlan().calls.values()) {
      for (const { waiters } of waiting) for (const waiter of waiters) pending.refuse(waiter, refused);
    }
    onChange();
  }

  /** Takes the call that leaves with a permit; undefined where none is wanted any more. */
  function next(): Call<Snapshot> | undefined {
    const flight = nextFlight();
    if (!flight) return undefined;
    return {
      kind: 'read',
      name: String(flight.key),
      requestId: flight.billedTo?.request.id,
      isRetry: flight.isRetry,
      waitingSinceMs: plannedAtMs.get(flight.key) ?? flight.sentAtMs,
      send: () => sendRead(flight, parts),
      receive: (answer) => receive(flight, answer),
      fail(error) {
        flights.delete(flight);
        endSending(flight);
        failAll(error);
      },
    };
  }

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
    const failed = failedCalls.find(key);
    const isRetry = failed?.isRetriedEarly ?? false;
    if (isRetry) parts.onRetry(key);
    // A call that saves others is billed to the read that it answers.
    const payer = waiting.find((read) => read.key === key) ?? waiting[0];
    const billedTo = payer && [...payer.waiters].find((waiter) => !pending.isCovered(waiter));
    if (!isRetry) billedTo?.request.onPermit();
    refreshBudget.spend();
    const sending = Promise.withResolvers<void>();
    if (billedTo) billedTo.sending = sending.promise;
    const flight = { key, sentAtMs: clock.elapsed(), generation: cache.generation(), isRetry, billedTo, sending };
    flights.add(flight);
    // Nobody who accepts stale data waits for a call that failed before.
    if (failed) {
      for (const { waiters } of waiting) for (const waiter of waiters) pending.serveStale(waiter, 'UPSTREAM_FAILED');
    }
    // While the circuit is open, the probe is the only get.
    if (!isList(key) && !getRoute.isHealthy()) onChange();
    return flight;
  }

  function receive(flight: Flight, answer: UpstreamAnswer<Snapshot>): void {
    const { outcome, sent, status, rateLimit } = answer;
    flights.delete(flight);
    endSending(flight);
    if (!sent) refreshBudget.refund();
    else if (!flight.isRetry) retryBudget.called();
    if (outcome.kind === 'ok') land(flight, outcome.value);
    else fail(flight, outcome, status === 503 ? rateLimit?.retryAfterMs : undefined);
    onChange();
  }

  function land(flight: Flight, snapshot: Snapshot): void {
    rejectedKey.accept();
    failedCalls.recordResponse(snapshot);
    if (flight.generation === cache.generation()) {
      cache.store(snapshot);
      void sharedLists?.share(snapshot);
    }
    pending.settleFrom(snapshot, (waiter) => accepts(waiter, flight));
  }

  function fail(flight: Flight, failure: UpstreamFailure, retryAfterMs: number | undefined): void {
    // The throttle pauses the key, and the reads wait for it or fail with that.
    if (failure.kind === 'rate-limited') return;
    const mayBeBanned = throttle.mayBeBanned();
    const error = readError(failure, mayBeBanned);
    const isRejected = failure.kind === 'unauthenticated' || (failure.kind === 'forbidden' && mayBeBanned);
    if (!isRejected) return readFailures.receive(flight, { failure, error, retryAfterMs });
    // A key that may be banned is served from the cache, and the throttle pauses it.
    if (!mayBeBanned) parts.onRejected();
    failAll(error);
  }

  function failAll(error: unknown): void {
    for (const { waiters } of reads.values()) pending.fail(waiters, error as Error, 'PAUSED');
    onChange();
  }
}

/** Sends the call of a flight, and makes a snapshot of its response. */
async function sendRead(
  flight: Flight,
  { apiKey, petApi, getRoute, cache: { known } }: CallerParts,
): Promise<UpstreamAnswer<Snapshot>> {
  const { key, sentAtMs, billedTo } = flight;
  const onSent = () => {
    billedTo?.request.onBilled(billedTo.read.key);
    endSending(flight);
  };
  // The call belongs to the trace of the request that it is billed to.
  const call = { apiKey, trace: billedTo?.request.trace, onSent };
  if (isList(key)) {
    const answer = await petApi.listPets(key === 'all' ? undefined : key, call);
    return { ...answer, outcome: mapped(answer.outcome, (list) => listSnapshot(key, list, sentAtMs, known)) };
  }
  getRoute.sending();
  const answer = await petApi.getPet(key, call);
  const outcome = getRoute.judge(answer.outcome, key);
  return { ...answer, outcome: mapped(outcome, (pet) => petSnapshot(key, pet, sentAtMs, known)) };
}

/** It is known whether the call is billed: its request may be answered. */
function endSending({ billedTo, sending }: Flight): void {
  if (billedTo) billedTo.sending = undefined;
  sending.resolve();
}

function mapped<T, U>(outcome: UpstreamOutcome<T>, map: (value: T) => U): UpstreamOutcome<U> {
  return outcome.kind === 'ok' ? { kind: 'ok', value: map(outcome.value) } : outcome;
}
