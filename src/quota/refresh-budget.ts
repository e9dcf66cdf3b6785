import type { Clock } from '../common/clock.ts';
import { DAY_MS, PLANS } from '../common/plan.ts';
import type { QuotaState } from './account/quota-state.ts';

/**
 * Shares of the day's quota, tuned by the simulated day (test/simulate): what may be used at once, and what is refilled over
 * the day. Together they leave some for writes and first reads.
 */
const BURST_SHARE = 0.12;
const FLOW_SHARE = 0.82;
/** Refreshes leave this share of the day's quota to other calls. */
const RESERVED_SHARE = 0.04;

type DayWindow = Pick<QuotaState['day'], 'limit' | 'remaining' | 'resetInMs'>;

/** Before the first call nothing is cached that could be refreshed. */
const UNKNOWN_DAY: DayWindow = { limit: PLANS.free.perDay, remaining: PLANS.free.perDay, resetInMs: 0 };

/** A token bucket for calls that only refresh an entry which is still good enough, so that a hot key lives through its day. */
export class RefreshBudget {
  readonly #clock: Pick<Clock, 'elapsed'>;
  /** What was used and has not been refilled, at `#countedAtMs` by `clock.elapsed()`. */
  #used = 0;
  #countedAtMs: number;

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock;
    this.#countedAtMs = clock.elapsed();
  }

  /** Returns how many calls it allows. */
  tokens(day: DayWindow = UNKNOWN_DAY, replicas: number): number {
    this.#refill(day, replicas);
    const { limit, remaining } = day;
    return Math.min(limit * BURST_SHARE - this.#used * replicas, remaining - limit * RESERVED_SHARE) / replicas;
  }

  /** Returns the minimum time until it allows `needed` calls: until it is refilled, or else until the day's reset. */
  waitMs(day: DayWindow = UNKNOWN_DAY, replicas: number, needed: number): number {
    this.#refill(day, replicas);
    const { limit, remaining, resetInMs } = day;
    if (remaining - limit * RESERVED_SHARE < needed * replicas) return resetInMs;
    const missing = needed * replicas - (limit * BURST_SHARE - this.#used * replicas);
    return Math.max(0, (missing * DAY_MS) / (limit * FLOW_SHARE));
  }

  /** Records that a call is sent, whatever it is for. */
  recordCall(day: DayWindow = UNKNOWN_DAY, replicas: number): void {
    this.#refill(day, replicas);
    this.#used += 1;
  }

  /** Takes back a call that was not sent after all. */
  refund(): void {
    this.#used = Math.max(0, this.#used - 1);
  }

  #refill({ limit }: DayWindow, replicas: number): void {
    const nowMs = this.#clock.elapsed();
    const refilled = (limit * FLOW_SHARE * (nowMs - this.#countedAtMs)) / DAY_MS / replicas;
    this.#used = Math.max(0, this.#used - refilled);
    this.#countedAtMs = nowMs;
  }
}
