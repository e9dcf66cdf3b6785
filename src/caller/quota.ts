import type { PlanWindow } from '../plan.ts';
import type { QuotaState } from '../throttle/account/quota-state.ts';
import type { ShownQuota } from '../throttle/visitors.ts';

export type { ShownQuota };

/**
 * What a caller has left of its quota, as people and programs see it. QuotaState has durations by the clock of the store; these
 * are dates by the clock of this process, and numbers that GraphQL can hold.
 */
export interface QuotaView {
  /** "Free", or the figures of a plan without a name: "500/20000"; undefined while it is not known. */
  readonly plan: string | undefined;
  /** The windows whose limit is known. */
  readonly windows: readonly QuotaWindow[];
  /** Calls that wait in this process. */
  readonly queued: number;
  /** The end of the pause after a 429; undefined while the key is not paused. */
  readonly pausedUntil: Date | undefined;
}

export interface QuotaWindow {
  readonly window: PlanWindow;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Undefined while nothing was called in the window. */
  readonly resetAt: Date | undefined;
}

/** GraphQL's Int holds no more, and the headers of an unlimited plan may. */
const MAX_SHOWN = 2 ** 31 - 1;

/** @param line the calls that wait. */
export function quotaViewOf(
  quotaState: ShownQuota,
  line: { readonly length: number } | undefined,
  nowMs: number,
): QuotaView {
  const { minute, day, pausedForMs } = quotaState;
  const windows: QuotaWindow[] = [];
  if (minute.isKnown) windows.push(windowOf('MINUTE', minute, nowMs));
  if (day.isKnown) windows.push(windowOf('DAY', day, nowMs));
  return {
    // Computed when it is read: the headers do not show it.
    get plan() {
      return quotaState.plan;
    },
    windows,
    get queued() {
      return line?.length ?? 0;
    },
    pausedUntil: pausedForMs > 0 ? new Date(nowMs + pausedForMs) : undefined,
  };
}

function windowOf(window: QuotaWindow['window'], quotaState: QuotaState['day'], nowMs: number): QuotaWindow {
  const { limit, used, remaining, resetInMs } = quotaState;
  const resetAt = resetInMs > 0 ? new Date(nowMs + resetInMs) : undefined;
  return { window, limit: shown(limit), used: shown(used), remaining: shown(remaining), resetAt };
}

/** Returns the window with the fewest calls left. */
export function tightestWindow({ windows }: QuotaView): QuotaWindow | undefined {
  const [first, second] = windows;
  return first && second && second.remaining < first.remaining ? second : first;
}

function shown(calls: number): number {
  return Math.min(calls, MAX_SHOWN);
}
