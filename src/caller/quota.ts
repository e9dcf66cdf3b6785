import type { PlanWindow } from '../plan.ts';
import type { QuotaState } from '../throttle/account/quota-state.ts';

/**
 * What is left of a quota, as everybody sees it: headers, `rateLimit`, logs, metrics and reports. Plain JSON, with times of this
 * process's clock in ISO 8601, and numbers that GraphQL can hold.
 */
export interface QuotaView {
  /** "Free", or the figures of a plan without a name: "500/20000"; null while it is not known. */
  readonly plan: string | null;
  /** The windows whose limit is known: of all replicas, as this process saw them last. */
  readonly windows: readonly QuotaWindow[];
  /** The end of the pause after a 429; null while the key is not paused. */
  readonly pausedUntil: string | null;
}

export interface QuotaWindow {
  readonly window: PlanWindow;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Null while nothing was called in the window. */
  readonly resetAt: string | null;
}

/** GraphQL's Int holds no more, and the headers of an unlimited plan may. */
const MAX_SHOWN = 2 ** 31 - 1;

/** Returns the quota of a key or of a visitor. Its durations are from `nowMs`, which is the wall clock's. */
export function quotaView(
  { plan, minute, day, pausedForMs }: Pick<QuotaState, 'day' | 'minute' | 'pausedForMs' | 'plan'>,
  nowMs: number,
): QuotaView {
  const windows: QuotaWindow[] = [];
  if (minute.isKnown) windows.push(windowView('MINUTE', minute, nowMs));
  if (day.isKnown) windows.push(windowView('DAY', day, nowMs));
  return { plan: plan ?? null, windows, pausedUntil: timeIn(pausedForMs, nowMs) };
}

function windowView(
  window: PlanWindow,
  { limit, used, remaining, resetInMs }: QuotaState['day'],
  nowMs: number,
): QuotaWindow {
  return {
    window,
    limit: shown(limit),
    used: shown(used),
    remaining: shown(remaining),
    resetAt: timeIn(resetInMs, nowMs),
  };
}

function timeIn(ms: number, nowMs: number): string | null {
  return ms > 0 ? new Date(nowMs + ms).toISOString() : null;
}

/** Returns the window with the fewest calls left. */
export function tightestWindow({ windows }: QuotaView): QuotaWindow | undefined {
  const [first, second] = windows;
  return first && second && second.remaining < first.remaining ? second : first;
}

function shown(calls: number): number {
  return Math.min(calls, MAX_SHOWN);
}
