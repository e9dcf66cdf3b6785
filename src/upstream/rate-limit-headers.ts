import type { RateLimitHeaders } from '../call-answer.ts';
import type { ResponseHeaders } from './exchange.ts';

/**
 * Reads the rate-limit headers (pet-api.md, "Rate-limit headers" and "Exceeding the limit"). The throttle decides what the
 * numbers mean.
 *
 * @param receivedAtMs petql's own clock, used where a Retry-After date comes without a Date header.
 */
export function readRateLimitHeaders(headers: ResponseHeaders, receivedAtMs: number): RateLimitHeaders {
  const dateMs = httpDate(single(headers['date']));
  return {
    limit: wholeNumber(single(headers['x-ratelimit-limit'])),
    remaining: wholeNumber(single(headers['x-ratelimit-remaining'])),
    reset: wholeNumber(single(headers['x-ratelimit-reset'])),
    retryAfterMs: waitMs(single(headers['retry-after']), dateMs ?? receivedAtMs),
    dateMs,
  };
}

/** Reads seconds or a date (RFC 9110, section 10.2.3). */
function waitMs(value: string | undefined, nowMs: number): number | undefined {
  if (/^\d{1,15}(?:\.\d{1,15})?$/.test(value ?? '')) return Math.ceil(Number(value)) * 1000;
  const date = httpDate(value);
  return date === undefined ? undefined : Math.max(0, date - nowMs);
}

/** Returns undefined for a header that came twice. */
function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? undefined : value?.trim();
}

function wholeNumber(value: string | undefined): number | undefined {
  // 15 digits are exact in a double, and more than any count or timestamp needs.
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Reads a date. Date.parse alone would read "12" as a year. */
function httpDate(value: string | undefined): number | undefined {
  if (value === undefined || !/^[A-Z][a-z]{2,8},? /.test(value)) return undefined;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? undefined : parsed;
}
