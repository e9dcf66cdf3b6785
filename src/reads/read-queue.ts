import type { Refusal } from '../throttle/refusal.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { Visitor, VisitorShares } from '../throttle/visitor-shares.ts';
import type { Call } from '../throttle/waiter.ts';
import { planCalls } from './call-planner.ts';
import type { PlannedRead } from './call-planner.ts';
import type { Freshness } from './freshness.ts';
import { NO_PAYERS, findPayers } from './payers.ts';
import type { Payers } from './payers.ts';
import { PendingReads } from './pending-reads.ts';
import type { PendingReadsOptions } from './pending-reads.ts';
import { ReadFailures, unprovableError } from './read-failures.ts';
import type { ReadFailuresOptions } from './read-failures.ts';
import type { ReadKey } from './read-key.ts';
import type { ReadRequest, ReadResult, RequestTerms, StaleReason } from './read-request.ts';
import { ReadSender } from './read-sender.ts';
import type { ReadSenderOptions } from './read-sender.ts';
import type { PendingRead, ReadWaiter } from './read-waiter.ts';
import type { Snapshot } from './snapshot.ts';

interface ReadQueueOptions extends PendingReadsOptions, ReadFailuresOptions, ReadSenderOptions {
  readonly throttle: Throttle;
  readonly visitorShares: VisitorShares;
  /** Called when a read is refused since its visitor has used its share. */
  readonly onVisitorRefused: (kind: 'read') => void;
}

/** The calls that the waiting reads need. */
interface CurrentPlan {
  /** The calls to send, in this order, with the reads that wait for each. */
  readonly calls: Map<ReadKey, readonly PendingRead[]>;
  /** Calls that failed a short while ago, and are not sent yet. */
  readonly postponed: ReadonlyMap<ReadKey, readonly PendingRead[]>;
  /** Reads that no call can answer. */
  readonly unprovable: readonly PendingRead[];
  /** Who pays for the calls, where visitors share the quota; and the calls that nobody may make. */
  readonly payers: Payers;
  /** Since when each call is wanted, by `clock.elapsed()`. */
  readonly wantedSinceMs: ReadonlyMap<ReadKey, number>;
}

const NO_CALLS: CurrentPlan = {
  calls: new Map(),
  postponed: new Map(),
  unprovable: [],
  payers: NO_PAYERS,
  wantedSinceMs: new Map(),
};
/** Calls of a plan that a line of the log names. */
const MAX_LOGGED = 10;

/**
 * The reads of one caller that wait for calls. Those of all requests merge until the throttle has a permit:
 *
 * 1. `add` takes the reads of a request, and `review` follows every change: once a turn of the event loop, for all changes in it.
 * 2. A review plans the calls, ends the waits that no call can end in time, and lets the throttle pull.
 * 3. The throttle takes `next` for each permit. ReadSender sends the call, and brings its response to the reads.
 * 4. ReadFailures decides about the reads of a call that failed. Either way another review follows.
 */
export class ReadQueue {
  readonly #options: ReadQueueOptions;
  readonly #pending: PendingReads;
  readonly #failures: ReadFailures;
  readonly #sender: ReadSender;
  #plan = NO_CALLS;
  /** Whether the reads have changed since they were planned. */
  #isPlanStale = false;
  #isReviewScheduled = false;
  /** Whether any request has named its visitor. */
  #hasVisitors = false;

  constructor(options: ReadQueueOptions) {
    const onChange = () => this.review();
    this.#options = options;
    this.#pending = new PendingReads(options, onChange);
    this.#failures = new ReadFailures(options, this.#pending, onChange);
    this.#sender = new ReadSender(options, { pending: this.#pending, failures: this.#failures, onChange });
  }

  /** Resolves once all reads of the batch are settled; with an error in the place of each one that failed. */
  add(keys: readonly ReadKey[], request: ReadRequest): Promise<ReadResult[]> {
    this.#hasVisitors ||= request.visitor !== undefined;
    return this.#pending.add(keys, request);
  }

  /** Returns the call that would answer this read if it came alone. */
  callFor(key: ReadKey, freshness: Freshness): ReadKey | undefined {
    return this.#callFor(this.#pending.unplannedRead(key, freshness));
  }

  isInFlight(call: ReadKey): boolean {
    return this.#pending.isInFlight(call);
  }

  /**
   * Returns why a stale entry is not refreshed now; undefined where a call for it is in flight, or may be sent at once.
   *
   * @param ahead calls that the same request needs before this one.
   */
  whyNotRefresh(
    key: ReadKey,
    { freshness, visitor }: Pick<RequestTerms, 'freshness' | 'visitor'>,
    ahead: number,
  ): StaleReason | undefined {
    const { failedCalls, refreshBudget, throttle, visitorShares } = this.#options;
    // 1. A call for it has failed, or is in flight.
    if (!failedCalls.isEmpty || this.#pending.hasFlights) {
      const read = this.#pending.unplannedRead(key, freshness);
      if (this.#isFailing(read)) return 'UPSTREAM_FAILED';
      if (this.#pending.isOnItsWay(read)) return undefined;
    }

    // 2. A request that names its own age gets that age, while the upstream works.
    if (!freshness.mayServeStaleToSaveCalls) return undefined;

    // 3. A refresh waits for no quota and for no other call.
    const planned = this.#currentPlan().calls.size + ahead;
    if (throttle.waitOf(planned).waitMs > 0 || throttle.waitsForCalls(planned)) return this.#whyNotNow();

    // 4. A read that waits already pays for it, or else the refresh budget and the share of its visitor.
    if (this.#pending.has(key)) return undefined;
    const own = this.#plannedFor(visitor) + ahead;
    if (!visitorShares.hasShare(visitor, { own, ahead: planned })) return 'QUOTA_EXHAUSTED';
    return refreshBudget.allows(planned) ? undefined : 'SAVING_QUOTA';
  }

  /** Takes a snapshot that another replica has called for: the reads that it answers need no call. */
  receiveShared(snapshot: Snapshot): void {
    const { cache, clock, failedCalls } = this.#options;
    cache.store(snapshot);
    failedCalls.recordResponse(snapshot);
    const ageMs = clock.elapsed() - snapshot.asOfMs;
    this.#pending.settleFrom(snapshot, ({ request }) => ageMs <= request.freshness.maxAgeMs);
    this.review();
  }

  /** Returns how many calls wait for a permit, as planned last: the next review plans again, and pulls. */
  wanted(): number {
    return this.#plan.calls.size;
  }

  /** Takes the call that is sent with a permit; undefined where none is wanted any more. */
  next(): Call<Snapshot> | undefined {
    // The upstream may have rejected the key in another call meanwhile.
    const rejected = this.#options.rejectedKey.error();
    if (rejected) this.#pending.failAll(rejected);

    const { calls, payers, wantedSinceMs } = this.#currentPlan();
    for (const [key, planned] of calls) {
      calls.delete(key);
      const reads = planned.filter((read) => this.#pending.needsCall(read));
      if (reads.length === 0) continue;
      return this.#sender.depart(key, reads, { payer: payers.payers.get(key), waitingSinceMs: wantedSinceMs.get(key) });
    }
    return undefined;
  }

  /** Refuses the reads that wait for a permit; those of a call in flight get its response. */
  refuse(refusal: Refusal): void {
    for (const reads of this.#currentPlan().calls.values()) {
      for (const waiter of waitersOf(reads)) this.#pending.refuse(waiter, refusal);
    }
    this.review();
  }

  /** Ends all waits, by an error that concerns all calls of the key. */
  fail(error: unknown): void {
    this.#pending.failAll(error);
  }

  /** Reviews the reads at the end of this turn of the event loop, for all changes in it. */
  review(): void {
    this.#isPlanStale = true;
    if (this.#isReviewScheduled) return;
    this.#isReviewScheduled = true;
    setImmediate(() => {
      this.#isReviewScheduled = false;
      this.#review();
    });
  }

  /** Ends the wait for further tries of calls that failed. */
  close(): void {
    this.#failures.close();
  }

  /** Ends the waits that no call can end in time, and lets the throttle pull the calls of the plan. */
  #review(): void {
    // 1. Reads past their deadline, and those that no call can answer.
    this.#pending.refuseLate();
    this.#failUnprovable();

    // 2. Reads whose calls failed a short while ago.
    this.#failures.reviewPostponed(this.#plan.postponed);

    // 3. Reads whose visitor or key has used its quota.
    this.#refuseUnpaid();
    this.#refuseHopeless();

    // 4. Reads that accept stale data, and would wait for other calls.
    this.#serveBusy();

    // 5. The others get their calls.
    this.#currentPlan();
    this.#options.throttle.pull();
  }

  #failUnprovable(): void {
    for (const waiter of waitersOf(this.#currentPlan().unprovable)) {
      this.#pending.fail(waiter, waiter.failed ?? unprovableError(), 'UPSTREAM_FAILED');
    }
  }

  /** Refuses the reads whose visitors have all used their shares. */
  #refuseUnpaid(): void {
    const { visitorShares, onVisitorRefused } = this.#options;
    const { calls, payers } = this.#currentPlan();
    if (payers.unpaid.size === 0) return;

    const refusals = new Map<Visitor, Refusal>();
    for (const waiter of waitersOf([...payers.unpaid.values()].flat())) {
      if (!this.#pending.isInNeed(waiter)) continue;
      const { visitor } = waiter.request;
      const refusal =
        refusals.get(visitor) ?? visitorShares.refusal(visitor, { own: this.#plannedFor(visitor), ahead: calls.size });
      refusals.set(visitor, refusal);
      this.#pending.refuse(waiter, refusal);
      onVisitorRefused('read');
    }
    this.#isPlanStale = true;
  }

  /** Refuses the reads whose call cannot be sent before their deadline. Refreshes do not wait at all. */
  #refuseHopeless(): void {
    const { clock, throttle } = this.#options;
    const { calls } = this.#currentPlan();
    // The last call waits longest.
    if (calls.size === 0 || throttle.hasOldView() || throttle.waitOf(calls.size - 1).waitMs === 0) return;

    let position = 0;
    for (const reads of calls.values()) {
      const { waitMs, refusal } = throttle.waitOf(position);
      const untilMs = clock.elapsed() + waitMs;
      for (const waiter of waitersOf(reads)) {
        const isHopeless = waitMs > 0 && (waiter.isRefresh || untilMs > waiter.request.deadlineMs);
        if (isHopeless && !this.#pending.isCovered(waiter)) this.#pending.refuse(waiter, refusal);
      }
      if (reads.some((read) => this.#pending.needsCall(read))) position += 1;
    }
    this.#isPlanStale = true;
  }

  /** Serves stale data to the reads whose call would wait for another one to end. */
  #serveBusy(): void {
    const { throttle } = this.#options;
    const { calls } = this.#currentPlan();
    if (calls.size === 0 || !throttle.waitsForCalls(calls.size - 1)) return;

    for (const [position, reads] of [...calls.values()].entries()) {
      if (!throttle.waitsForCalls(position)) continue;
      for (const waiter of waitersOf(reads)) {
        if (waiter.isRefresh && !this.#pending.isCovered(waiter)) this.#pending.serveStale(waiter, this.#whyNotNow());
      }
    }
    this.#isPlanStale = true;
  }

  /** Returns the call plan; plans again after a change. */
  #currentPlan(): CurrentPlan {
    if (!this.#isPlanStale) return this.#plan;
    const { clock, log } = this.#options;
    const { calls, unprovable } = planCalls(this.#pending.readsToPlan(), this.#pending.facts);

    const postponed = new Map([...calls].filter(([call, reads]) => this.#failures.isPostponed(call, reads)));
    for (const call of postponed.keys()) calls.delete(call);
    const payers = this.#findPayers(calls);
    for (const call of payers.unpaid.keys()) calls.delete(call);
    if (calls.size > 0) {
      log.debug?.({ calls: [...calls.keys()].slice(0, MAX_LOGGED), reads: this.#pending.size }, 'call plan');
    }

    const nowMs = clock.elapsed();
    const before = this.#plan.wantedSinceMs;
    const wantedSinceMs = new Map([...calls.keys()].map((call) => [call, before.get(call) ?? nowMs]));
    this.#isPlanStale = false;
    this.#plan = { calls, postponed, unprovable, payers, wantedSinceMs };
    return this.#plan;
  }

  /** Most gateways do not tell visitors apart. */
  #findPayers(calls: CurrentPlan['calls']): Payers {
    if (!this.#hasVisitors) return NO_PAYERS;
    const { throttle, visitorShares: shares } = this.#options;
    return findPayers(calls, { pending: this.#pending, throttle, shares, before: this.#plan.payers.payers });
  }

  /** Returns how many calls of the plan this visitor pays for. */
  #plannedFor(visitor: Visitor): number {
    const { calls, payers } = this.#currentPlan();
    return [...calls.keys()].filter((call) => payers.payers.get(call)?.request.visitor === visitor).length;
  }

  /** Returns why the throttle lets no call through: after a 429 it sends none, and then one at a time. */
  #whyNotNow(): StaleReason {
    return this.#options.throttle.isAfter429() ? 'PAUSED' : 'QUOTA_EXHAUSTED';
  }

  /** Whether the call that would refresh it failed, and waits for its next try or is in it: no stale entry is waited for twice. */
  #isFailing(read: PlannedRead): boolean {
    const { failedCalls } = this.#options;
    if (failedCalls.isEmpty) return false;
    const call = this.#callFor(read);
    if (call === undefined || !failedCalls.find(call)) return false;
    return failedCalls.isBackingOff(call) || this.#pending.isInFlight(call);
  }

  #callFor(read: PlannedRead): ReadKey | undefined {
    const [call] = planCalls([read], this.#pending.facts).calls.keys();
    return call;
  }
}

/** Returns the waiters at this moment: some may be settled meanwhile. */
function waitersOf(reads: readonly PendingRead[]): ReadWaiter[] {
  return reads.flatMap(({ waiters }) => [...waiters]);
}
