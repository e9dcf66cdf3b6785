import type { Standing, WindowStanding } from '../throttle/standing.ts';

export interface QuotaView {
  /** "Free", or the figures of a plan without a name: "500/20000"; undefined while it is not known. */
  readonly plan: string | undefined;
  /** Windows whose limit is known. */
  readonly windows: readonly QuotaWindow[];
  /** Calls that wait for the quota. */
  readonly queued: number;
  /** Until when the key is paused after a 429. */
  readonly pausedUntil: Date | undefined;
}

export interface QuotaWindow {
  readonly window: 'DAY' | 'MINUTE';
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Undefined while nothing was called in the window. */
  readonly resetAt: Date | undefined;
}

/** GraphQL's Int holds no more, and the headers of an unlimited plan may. */
const MAX_SHOWN = 2 ** 31 - 1;

/**
 * What a caller has left of its quota, by petql's own count, which headers correct.
 *
 * @param queued how many calls wait.
 */
export function quotaViewOf({ plan, minute, day, pausedForMs }: Standing, queued: number, nowMs: number): QuotaView {
  return {
    plan,
    windows: [
      ...(minute.isKnown ? [windowOf('MINUTE', minute, nowMs)] : []),
      ...(day.isKnown ? [windowOf('DAY', day, nowMs)] : []),
    ],
    queued,
    pausedUntil: pausedForMs > 0 ? new Date(nowMs + pausedForMs) : undefined,
  };
}

function windowOf(window: QuotaWindow['window'], standing: WindowStanding, nowMs: number): QuotaWindow {
  const { limit, used, remaining, resetInMs } = standing;
  const resetAt = resetInMs > 0 ? new Date(nowMs + resetInMs) : undefined;
  return { window, limit: shown(limit), used: shown(used), remaining: shown(remaining), resetAt };
}

/** The window with the fewest calls left. */
export function tightestWindow({ windows }: QuotaView): QuotaWindow | undefined {
  return windows.reduce<QuotaWindow | undefined>(
    (least, window) => (least && least.remaining <= window.remaining ? least : window),
    undefined,
  );
}

function shown(calls: number): number {
  return Math.min(calls, MAX_SHOWN);
}
