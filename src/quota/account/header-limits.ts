import type { RateLimitHeaders } from '../../common/call-answer.ts';
import { DAY_MS, HOUR_MS } from '../../common/plan.ts';
import { MIN_TIMESTAMP_MS, MIN_TIMESTAMP_S } from '../../common/clock.ts';

/** The numbers of one window, whichever that is. */
export interface HeaderLimits {
  readonly limit: number;
  readonly remaining: number;
  /** Calls that the window has counted; NaN where more are remaining than the limit allows, which is no count. */
  readonly used: number;
  /** When it ends: from now on, and the upstream's timestamp in seconds. */
  readonly reset: { readonly inMs: number; readonly id: number } | undefined;
}

/**
 * Reads which window the headers of one response describe (pet-api.md, "Rate-limit headers"). The reset counts from the Date
 * of the same response, so that no clock of ours matters.
 *
 * @param nowMs our wall clock, used where the response has no Date.
 */
export function headerLimits(
  { limit, remaining, reset, dateMs }: RateLimitHeaders,
  nowMs: number,
): HeaderLimits | undefined {
  if (limit === undefined || remaining === undefined || limit < 1) return undefined;
  return {
    limit,
    remaining: Math.max(0, remaining),
    used: remaining > limit ? NaN : limit - Math.max(0, remaining),
    reset: reset === undefined ? undefined : headerReset(reset, dateMs ?? nowMs),
  };
}

/** Returns undefined for an impossible reset. */
function headerReset(reset: number, atMs: number): HeaderLimits['reset'] {
  const inMs = resetAtMs(reset, atMs) - atMs;
  if (inMs <= 0 || inMs > DAY_MS + HOUR_MS) return undefined;
  return { inMs, id: Math.round((atMs + inMs) / 1_000) };
}

function resetAtMs(reset: number, atMs: number): number {
  if (reset >= MIN_TIMESTAMP_MS) return reset;
  if (reset >= MIN_TIMESTAMP_S) return reset * 1_000;
  return atMs + reset * 1_000;
}
