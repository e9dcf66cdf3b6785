import type { Refusal } from '../throttle/refusal.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { Visitor, VisitorShares } from '../throttle/visitor-shares.ts';
import type { Call } from '../throttle/call.ts';
import { planCalls } from './call-planner.ts';
import type { PlannedRead } from './call-planner.ts';
import { CurrentPlan } from './current-plan.ts';
import type { CurrentPlanOptions } from './current-plan.ts';
import type { Freshness } from './cache/freshness.ts';
import { PendingReads } from './pending-reads.ts';
import type { PendingReadsOptions } from './pending-reads.ts';
import { ReadFailures, unprovableError } from './read-failures.ts';
import type { ReadFailuresOptions } from './read-failures.ts';
import type { CallKey, ReadKey } from './cache/read-key.ts';
import type { ReadRequest, ReadResult, RequestTerms, StaleReason } from './read-request.ts';
import { ReadSender } from './read-sender.ts';
import type { ReadSenderOptions } from './read-sender.ts';
import { waitersOf } from './read-waiter.ts';
import type { Snapshot } from './cache/snapshot.ts';

interface ReadQueueOptions extends PendingReadsOptions, ReadFailuresOptions, ReadSenderOptions, CurrentPlanOptions {
  readonly throttle: Throttle;
  readonly visitorShares: VisitorShares;
  /** Called when a read is refused since its visitor has used its share. */
  readonly onVisitorRefused: (kind: 'read') => void;
}

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
  readonly #plan: CurrentPlan;
  #isReviewScheduled = false;

  constructor(options: ReadQueueOptions) {
    const onChange = () => this.review();
    this.#options = options;
    this.#pending = new PendingReads(options, onChange);
    this.#failures = new ReadFailures(options, this.#pending, onChange);
    this.#plan = new CurrentPlan(options, this.#pending, this.#failures);
    this.#sender = new ReadSender(options, { pending: this.#pending, failures: this.#failures, onChange });
  }

  /** Resolves once all reads of the batch are settled; with an error in the place of each one that failed. */
  async add(keys: readonly ReadKey[], request: ReadRequest): Promise<ReadResult[]> {
    const { throttle, visitorShares } = this.#options;
    const others = keys.length - 1;
    // What this replica saw may be over: no visitor is refused by it.
    if (throttle.hasOldView() && !visitorShares.hasShare(request.visitor, { own: others, ahead: others })) {
      await throttle.readQuotaState();
    }
    return this.#pending.add(keys, request);
  }

  /** Returns the call that would answer this read if it came alone. */
  callFor(key: ReadKey, freshness: Freshness): CallKey | undefined {
    return this.#callFor(this.#pending.unplannedRead(key, freshness));
  }

  isInFlight(call: CallKey): boolean {
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
    const planned = this.#plan.current().calls.size + ahead;
    if (throttle.waitOf(planned).waitMs > 0 || throttle.waitsForCalls(planned)) return this.#whyNotNow();

    // 4. A read that waits already pays for it, or else the refresh budget and the share of its visitor.
    if (this.#pending.has(key)) return undefined;
    const own = visitor === undefined ? 0 : this.#plan.sizeFor(visitor) + ahead;
    if (!visitorShares.hasShare(visitor, { own, ahead: planned })) return 'QUOTA_EXHAUSTED';
    return refreshBudget.allows(planned, visitorShares.usedLately(visitor) + own) ? undefined : 'SAVING_QUOTA';
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
    return this.#plan.lastSize;
  }

  /** Takes the call that is sent with a permit; undefined where none is wanted any more. */
  next(): Call<Snapshot> | undefined {
    // The upstream may have rejected the key in another call meanwhile.
    const rejected = this.#options.rejectedKey.error();
    if (rejected) this.#pending.failAll(rejected);

    const planned = this.#plan.take();
    return planned && this.#sender.depart(planned);
  }

  /** Refuses the reads that wait for a permit; those of a call in flight get its response. */
  refuse(refusal: Refusal): void {
    for (const reads of this.#plan.current().calls.values()) {
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
    this.#plan.expire();
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
    this.#failures.reviewPostponed(this.#plan.current().postponed);

    // 3. Reads whose visitor or key has used its quota.
    this.#refuseUnpaid();
    this.#refuseHopeless();

    // 4. Reads that accept stale data, and would wait for other calls.
    this.#serveBusy();

    // 5. The others get their calls.
    this.#plan.current();
    this.#options.throttle.pull();
  }

  #failUnprovable(): void {
    for (const waiter of waitersOf(this.#plan.current().unprovable)) {
      this.#pending.fail(waiter, waiter.failed ?? unprovableError(), 'UPSTREAM_FAILED');
    }
  }

  /** Refuses the reads whose visitors have all used their shares. */
  #refuseUnpaid(): void {
    const { visitorShares, onVisitorRefused } = this.#options;
    const { calls, payers } = this.#plan.current();
    if (payers.unpaid.size === 0) return;

    const refusals = new Map<Visitor, Refusal>();
    for (const waiter of waitersOf([...payers.unpaid.values()].flat())) {
      if (!this.#pending.isInNeed(waiter)) continue;
      const { visitor } = waiter.request;
      const planned = { own: this.#plan.sizeFor(visitor), ahead: calls.size };
      const refusal = refusals.get(visitor) ?? visitorShares.refusal(visitor, planned);
      refusals.set(visitor, refusal);
      this.#pending.refuse(waiter, refusal);
      onVisitorRefused('read');
    }
    this.#plan.expire();
  }

  /** Refuses the reads whose call cannot be sent before their deadline. Refreshes do not wait at all. */
  #refuseHopeless(): void {
    const { clock, throttle } = this.#options;
    const { calls } = this.#plan.current();
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
    this.#plan.expire();
  }

  /** Serves stale data to the reads whose call would wait for another one to end. */
  #serveBusy(): void {
    const { throttle } = this.#options;
    const { calls } = this.#plan.current();
    if (calls.size === 0 || !throttle.waitsForCalls(calls.size - 1)) return;

    for (const [position, reads] of [...calls.values()].entries()) {
      if (!throttle.waitsForCalls(position)) continue;
      for (const waiter of waitersOf(reads)) {
        if (waiter.isRefresh && !this.#pending.isCovered(waiter)) this.#pending.serveStale(waiter, this.#whyNotNow());
      }
    }
    this.#plan.expire();
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

  #callFor(read: PlannedRead): CallKey | undefined {
    const [call] = planCalls([read], this.#pending.facts).calls.keys();
    return call;
  }
}
