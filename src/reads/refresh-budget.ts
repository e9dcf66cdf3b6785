import type { Clock } from '../clock.ts';
import { PLANS } from '../plan.ts';
import type { Throttle } from '../throttle/throttle.ts';

const DAY_MS = 86_400_000;
/**
 * Shares of the day's quota, tuned by the simulated day (test/simulate): what may be used at once, and what is refilled over
 * the day. Together they leave some for writes and first reads.
 */
const BURST_SHARE = 0.12;
const FLOW_SHARE = 0.82;
/** Of what is left of the day, this share of the quota is not for refreshing. */
const RESERVED_SHARE = 0.04;

interface DayQuota {
  readonly limit: number;
  readonly remaining: number;
}

/** Before the first call nothing is cached that could be refreshed. */
const UNKNOWN_DAY: DayQuota = { limit: PLANS.free.perDay, remaining: PLANS.free.perDay };

interface RefreshBudgetOptions {
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly throttle: Pick<Throttle, 'quotaState'>;
  /** How many replicas share the plan. */
  readonly replicas: () => number;
}

/** A token bucket for calls that only refresh an entry which is still good enough, so that a hot key lives through its day. */
export class RefreshBudget {
  readonly #options: RefreshBudgetOptions;
  /** What was used and has not been refilled, at `#countedAtMs` by `clock.elapsed()`. */
  #used = 0;
  #countedAtMs: number;
  #calls = 0;

  constructor(options: RefreshBudgetOptions) {
    this.#options = options;
    this.#countedAtMs = options.clock.elapsed();
  }

  /** All calls that were sent so far. */
  get calls(): number {
    return this.#calls;
  }

  /**
   * @param planned calls that are planned already and not sent yet.
   * @param usedLately calls of the visitor in the last hour: it may use as much of the budget as it leaves.
   */
  allows(planned: number, usedLately: number): boolean {
    this.#refill();
    const replicas = this.#options.replicas();
    const { limit, remaining } = this.#day;
    const unused = Math.min(limit * BURST_SHARE - this.#used * replicas, remaining - limit * RESERVED_SHARE);
    return unused / replicas - planned >= Math.max(1, usedLately);
  }

  /** Records that a call is sent, whatever it is for. */
  recordCall(): void {
    this.#refill();
    this.#used += 1;
    this.#calls += 1;
  }

  /** Takes back a call that was not sent after all. */
  refund(): void {
    this.#used = Math.max(0, this.#used - 1);
    this.#calls -= 1;
  }

  #refill(): void {
    const { clock, replicas } = this.#options;
    const nowMs = clock.elapsed();
    const refilled = (this.#day.limit * FLOW_SHARE * (nowMs - this.#countedAtMs)) / DAY_MS / replicas();
    this.#used = Math.max(0, this.#used - refilled);
    this.#countedAtMs = nowMs;
  }

  get #day(): DayQuota {
    return this.#options.throttle.quotaState()?.day ?? UNKNOWN_DAY;
  }
}
