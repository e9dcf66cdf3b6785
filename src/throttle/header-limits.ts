import type { RateLimitHeaders } from '../upstream/rate-limit-headers.ts';

/** The window that one response's headers describe (pet-api.md, "Rate-limit headers"). */
export interface HeaderLimits {
  readonly limit: number;
  readonly remaining: number;
  /** Undefined where it is missing or impossible. */
  readonly reset: { readonly inMs: number; readonly id: number } | undefined;
}

const DAY_MS = 86_400_000;
/** Timestamps of our time: in seconds below the one and in milliseconds above the other; what is smaller is seconds from now. */
const MIN_TIMESTAMP_S = 1_000_000_000;
const MIN_TIMESTAMP_MS = 100_000_000_000;

/**
 * Reads the headers of one response. The reset counts from the Date of the same response, so that no clock of ours matters.
 *
 * @param nowMs our wall clock, used where the response has no Date.
 */
export function headerLimits(
  { limit, remaining, reset, dateMs }: RateLimitHeaders,
  nowMs: number,
): HeaderLimits | undefined {
  if (limit === undefined || remaining === undefined || limit < 1 || remaining > limit) return undefined;
  return { limit, remaining, reset: reset === undefined ? undefined : headerReset(reset, dateMs ?? nowMs) };
}

function headerReset(reset: number, atMs: number): HeaderLimits['reset'] {
  const inMs = resetAtMs(reset, atMs) - atMs;
  if (inMs <= 0 || inMs > DAY_MS + 3_600_000) return undefined;
  return { inMs, id: Math.round((atMs + inMs) / 1_000) };
}

function resetAtMs(reset: number, atMs: number): number {
  if (reset >= MIN_TIMESTAMP_MS) return reset;
  if (reset >= MIN_TIMESTAMP_S) return reset * 1_000;
  return atMs + reset * 1_000;
}
