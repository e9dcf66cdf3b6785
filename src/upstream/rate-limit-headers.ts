import type { RateLimitHeaders } from '../common/call-answer.ts';
import type { ResponseHeaders } from './exchange.ts';
import { MIN_TIMESTAMP_MS, MIN_TIMESTAMP_S } from '../common/clock.ts';

/**
 * Reads the rate-limit headers (pet-api.md, "Rate-limit headers" and "Exceeding the limit"). What the numbers mean is
 * decided in `quota/account`.
 *
 * @param receivedAtMs petql's own clock, used where a Retry-After date comes without a Date header.
 */
export function readRateLimitHeaders(headers: ResponseHeaders, receivedAtMs: number): RateLimitHeaders {
  const dateMs = httpDate(single(headers['date']));
  return {
    limit: wholeNumber(single(headers['x-ratelimit-limit'])),
    remaining: wholeNumber(single(headers['x-ratelimit-remaining'])),
    reset: wholeNumber(single(headers['x-ratelimit-reset'])),
    retryAfterMs: longestWaitMs(headers['retry-after'], dateMs ?? receivedAtMs),
    dateMs,
  };
}

/** Returns the longest of several waits: a proxy may have added its own, and each is a minimum. */
function longestWaitMs(value: string | string[] | undefined, nowMs: number): number | undefined {
  const texts = [value ?? []].flat();
  // A date has a comma of its own.
  const parts = [...texts, ...texts.flatMap((text) => text.split(','))].map((text) => waitMs(text.trim(), nowMs));
  const waits = parts.filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** Reads seconds or a date (RFC 9110, section 10.2.3). */
function waitMs(value: string, nowMs: number): number | undefined {
  if (!/^\d{1,15}(?:\.\d{1,15})?$/.test(value)) {
    const date = httpDate(value);
    return date === undefined ? undefined : Math.max(0, date - nowMs);
  }

  const seconds = Math.ceil(Number(value));
  if (seconds >= MIN_TIMESTAMP_MS) return Math.max(0, seconds - nowMs);
  return seconds >= MIN_TIMESTAMP_S ? Math.max(0, seconds * 1_000 - nowMs) : seconds * 1_000;
}

/** Returns undefined for a header that came twice. */
function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? undefined : value?.trim();
}

function wholeNumber(value: string | undefined): number | undefined {
  // 15 digits are exact in a double, and more than any count or timestamp needs.
  return value !== undefined && /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/**
 * Reads a date in one of the three forms of RFC 9110, section 5.6.7, of which that of asctime names no zone: all are in UTC.
 * Date.parse alone would read "12" as a year.
 */
function httpDate(value: string | undefined): number | undefined {
  if (value === undefined || !/^[A-Z][a-z]{2,8},? /.test(value)) return undefined;
  const parsed = Date.parse(/(?:GMT|UTC|[+-]\d{4})$/.test(value) ? value : `${value} GMT`);
  return Number.isNaN(parsed) ? undefined : parsed;
}
