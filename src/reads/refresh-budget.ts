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

/** Before the first call nothing is cached that could be refreshed. */
const UNKNOWN_DAY = { limit: PLANS.free.perDay, remaining: PLANS.free.perDay };

export type RefreshBudget = ReturnType<typeof createRefreshBudget>;

/**
 * A token bucket for calls that only refresh an answer which is still good enough, so that a hot key lives through its day.
 *
 * @param replicas how many of them share the plan.
 */
export function createRefreshBudget(
  elapsed: () => number,
  throttle: Pick<Throttle, 'quotaState'>,
  replicas: () => number,
) {
  const day = () => throttle.quotaState()?.day ?? UNKNOWN_DAY;
  /** What was used and has not been refilled. */
  let used = 0;
  let countedAtMs = elapsed();
  let calls = 0;

  return {
    /** @param planned calls that are planned already and not sent yet. */
    allows(planned: number): boolean {
      refill();
      const { limit, remaining } = day();
      const left = Math.min(limit * BURST_SHARE - used * replicas(), remaining - limit * RESERVED_SHARE) / replicas();
      return left - planned >= 1;
    },
    /** A call is sent, whatever it is for. */
    spend() {
      refill();
      used += 1;
      calls += 1;
    },
    /** A call was not sent after all. */
    refund() {
      used = Math.max(0, used - 1);
      calls -= 1;
    },
    /** All calls that were sent so far. */
    calls: () => calls,
  };

  function refill(): void {
    const nowMs = elapsed();
    const refilled = (day().limit * FLOW_SHARE * (nowMs - countedAtMs)) / DAY_MS / replicas();
    used = Math.max(0, used - refilled);
    countedAtMs = nowMs;
  }
}
