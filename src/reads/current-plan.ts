import { planCalls } from '../pets/call-planner.ts';
import type { CallerParts } from './caller-parts.ts';
import type { PendingReads } from './pending-reads.ts';
import type { ReadFailures } from './read-failures.ts';
import type { CallKey } from '../pets/read-key.ts';
import type { PendingRead } from './read-waiter.ts';
import { ReadCall } from './read-call.ts';
import type { ReadSender } from './read-sender.ts';

/** The call plan for the waiting reads, sorted by what may be sent now. */
interface SortedPlan {
  /** The calls to send, in this order. */
  readonly calls: readonly ReadCall[];
  /** Calls that failed a short while ago, and are not sent yet. */
  readonly postponed: ReadonlyMap<CallKey, readonly PendingRead[]>;
  /** Reads that no call can answer. */
  readonly unprovable: readonly PendingRead[];
}

/** Calls of a plan that a line of the log names. */
const MAX_LOGGED = 10;

/** The call plan of one caller: made for the waiting reads when it is needed after a change. */
export class CurrentPlan {
  readonly #parts: CallerParts;
  readonly #pending: PendingReads;
  readonly #failures: ReadFailures;
  readonly #sender: ReadSender;
  /** Undefined after a change of the reads. */
  #current: SortedPlan | undefined;
  /** Since when each call of the latest plan is wanted, by `clock.elapsed()`. */
  #wantedSinceMs = new Map<CallKey, number>();

  constructor(parts: CallerParts, pending: PendingReads, failures: ReadFailures, sender: ReadSender) {
    this.#parts = parts;
    this.#pending = pending;
    this.#failures = failures;
    this.#sender = sender;
  }

  /** Records a change: `current` plans again. */
  expire(): void {
    this.#current = undefined;
  }

  /** Returns the plan for the reads that wait now. */
  current(): SortedPlan {
    return (this.#current ??= this.#plan());
  }

  #plan(): SortedPlan {
    const reads = this.#pending.readsToPlan();
    // 1. The fewest calls for all reads.
    const { calls, unprovable } = planCalls(reads, this.#pending.facts);

    // 2. Those that are not sent now.
    const postponed = new Map([...calls].filter(([call, needing]) => this.#failures.isPostponed(call, needing)));
    for (const call of postponed.keys()) calls.delete(call);

    // 3. The others, for the line and for the log.
    if (calls.size > 0) {
      const names = [...calls.keys()].slice(0, MAX_LOGGED);
      this.#parts.log.debug?.({ calls: names, reads: this.#pending.size }, 'call plan');
    }
    this.#keepTimes(calls);
    return { calls: [...calls].map(([call, needing]) => this.#createCall(call, needing)), postponed, unprovable };
  }

  /** A call that is planned again has been wanted since its first plan. */
  #keepTimes(calls: ReadonlyMap<CallKey, unknown>): void {
    const before = this.#wantedSinceMs;
    if (calls.size === 0 && before.size === 0) return;
    const nowMs = this.#parts.clock.elapsed();
    this.#wantedSinceMs = new Map([...calls.keys()].map((call) => [call, before.get(call) ?? nowMs]));
  }

  #createCall(call: CallKey, reads: readonly PendingRead[]): ReadCall {
    // Those of the read that the call is for pay before those that it saves a call.
    const own = reads.filter(({ key }) => key === call);
    const others = reads.filter(({ key }) => key !== call);
    const waiters = [...own, ...others].flatMap((read) => [...read.waiters]);
    const claims = waiters.filter((waiter) => !this.#pending.isCovered(waiter));
    const waitingSinceMs = this.#wantedSinceMs.get(call) as number;
    return new ReadCall(this.#sender, this.#pending, { key: call, claims, waitingSinceMs });
  }
}
