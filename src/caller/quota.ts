import type { QuotaState } from '../throttle/account/quota-state.ts';
import type { ShownQuota } from '../throttle/visitor-shares.ts';

export type QuotaView = ReturnType<typeof quotaViewOf>;
export type QuotaWindow = ReturnType<typeof windowOf>;

/** GraphQL's Int holds no more, and the headers of an unlimited plan may. */
const MAX_SHOWN = 2 ** 31 - 1;

/**
 * What a caller has left of its quota, by petql's own count, which headers correct.
 *
 * @param queued how many calls wait.
 */
export function quotaViewOf(quotaState: ShownQuota, queued: number, nowMs: number) {
  const { minute, day, pausedForMs } = quotaState;
  return {
    /** "Free", or the figures of a plan without a name: "500/20000"; undefined while it is not known. */
    get plan() {
      return quotaState.plan;
    },
    /** Windows whose limit is known. */
    windows: [
      ...(minute.isKnown ? [windowOf('MINUTE', minute, nowMs)] : []),
      ...(day.isKnown ? [windowOf('DAY', day, nowMs)] : []),
    ],
    queued,
    /** Until when the key is paused after a 429. */
    pausedUntil: pausedForMs > 0 ? new Date(nowMs + pausedForMs) : undefined,
  };
}

function windowOf(window: 'DAY' | 'MINUTE', quotaState: QuotaState['day'], nowMs: number) {
  const { limit, used, remaining, resetInMs } = quotaState;
  /** Undefined while nothing was called in the window. */
  const resetAt = resetInMs > 0 ? new Date(nowMs + resetInMs) : undefined;
  return { window, limit: shown(limit), used: shown(used), remaining: shown(remaining), resetAt };
}

/** The window with the fewest calls left. */
export function tightestWindow({ windows }: QuotaView): QuotaWindow | undefined {
  return windows.toSorted((one, other) => one.remaining - other.remaining)[0];
}

function shown(calls: number): number {
  return Math.min(calls, MAX_SHOWN);
}
