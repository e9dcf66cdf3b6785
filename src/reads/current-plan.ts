import type { Clock } from '../clock.ts';
import type { KeyLog } from '../log.ts';
import type { Visitor, VisitorShares } from '../throttle/visitor-shares.ts';
import { planCalls } from './call-planner.ts';
import { NO_PAYERS, findPayers } from './payers.ts';
import type { Payers } from './payers.ts';
import type { PendingReads } from './pending-reads.ts';
import type { ReadFailures } from './read-failures.ts';
import type { CallKey } from './cache/read-key.ts';
import type { PendingRead, ReadWaiter } from './read-waiter.ts';

export interface CurrentPlanOptions {
  readonly clock: Clock;
  readonly log: KeyLog;
  readonly visitorShares: VisitorShares;
}

/** A call that is to be sent. */
export interface PlannedCall {
  readonly key: CallKey;
  /** The reads that wait for it. */
  readonly reads: readonly PendingRead[];
  /** The waiter whose visitor pays for it; undefined without visitors. */
  readonly payer: ReadWaiter | undefined;
  /** By `clock.elapsed()`. */
  readonly wantedSinceMs: number;
}

/** The call plan for the waiting reads, sorted by what may be sent now. */
interface SortedPlan {
  /** The calls to send, in this order, with the reads that wait for each. `take` deletes them. */
  readonly calls: Map<CallKey, readonly PendingRead[]>;
  /** Calls that failed a short while ago, and are not sent yet. */
  readonly postponed: ReadonlyMap<CallKey, readonly PendingRead[]>;
  /** Reads that no call can answer. */
  readonly unprovable: readonly PendingRead[];
  /** Who pays for the calls, where visitors share the quota; and the calls that nobody may make. */
  readonly payers: Payers;
  /** Since when each call is wanted, by `clock.elapsed()`. */
  readonly wantedSinceMs: ReadonlyMap<CallKey, number>;
}

const NO_CALLS: SortedPlan = {
  calls: new Map(),
  postponed: new Map(),
  unprovable: [],
  payers: NO_PAYERS,
  wantedSinceMs: new Map(),
};
/** Calls of a plan that a line of the log names. */
const MAX_LOGGED = 10;

/** The call plan of one caller: made for the waiting reads when it is needed after a change. */
export class CurrentPlan {
  readonly #options: CurrentPlanOptions;
  readonly #pending: PendingReads;
  readonly #failures: ReadFailures;
  /** As planned last. */
  #planned = NO_CALLS;
  /** Whether the reads have changed since. */
  #isStale = false;

  constructor(options: CurrentPlanOptions, pending: PendingReads, failures: ReadFailures) {
    this.#options = options;
    this.#pending = pending;
    this.#failures = failures;
  }

  /** Returns how many calls were planned last and are not sent yet. */
  get lastSize(): number {
    return this.#planned.calls.size;
  }

  /** Records a change: `current` plans again. */
  expire(): void {
    this.#isStale = true;
  }

  /** Returns the plan, without the calls that were sent since it was made. */
  current(): SortedPlan {
    if (this.#isStale) this.#planned = this.#plan();
    this.#isStale = false;
    return this.#planned;
  }

  /** Takes the next call that a read still needs; undefined where there is none. */
  take(): PlannedCall | undefined {
    const { calls, payers, wantedSinceMs } = this.current();
    for (const [key, planned] of calls) {
      calls.delete(key);
      const reads = planned.filter((read) => this.#pending.needsCall(read));
      if (reads.length === 0) continue;
      const sinceMs = wantedSinceMs.get(key) ?? this.#options.clock.elapsed();
      return { key, reads, payer: payers.byCall.get(key), wantedSinceMs: sinceMs };
    }
    return undefined;
  }

  /** Returns how many calls of the plan this visitor pays for. */
  sizeFor(visitor: Visitor): number {
    const { calls, payers } = this.current();
    return [...calls.keys()].filter((call) => payers.byCall.get(call)?.request.visitor === visitor).length;
  }

  #plan(): SortedPlan {
    const { clock, log } = this.#options;
    // 1. The fewest calls for all reads.
    const { calls, unprovable } = planCalls(this.#pending.readsToPlan(), this.#pending.facts);

    // 2. Those that are not sent now.
    const postponed = new Map([...calls].filter(([call, reads]) => this.#failures.isPostponed(call, reads)));
    for (const call of postponed.keys()) calls.delete(call);
    const payers = this.#findPayers(calls);
    for (const call of payers.unpaid.keys()) calls.delete(call);

    // 3. The others, for the log and for the wait that clients see.
    if (calls.size > 0) {
      log.debug?.({ calls: [...calls.keys()].slice(0, MAX_LOGGED), reads: this.#pending.size }, 'call plan');
    }
    const nowMs = clock.elapsed();
    const before = this.#planned.wantedSinceMs;
    const wantedSinceMs = new Map([...calls.keys()].map((call) => [call, before.get(call) ?? nowMs]));
    return { calls, postponed, unprovable, payers, wantedSinceMs };
  }

  /** Most gateways do not tell visitors apart. */
  #findPayers(calls: SortedPlan['calls']): Payers {
    return this.#pending.hasVisitors ? findPayers(calls, this.#pending, this.#options.visitorShares) : NO_PAYERS;
  }
}
