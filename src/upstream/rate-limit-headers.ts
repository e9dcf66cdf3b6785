import type { ResponseHeaders } from './http-transport.ts';

/**
 * What a response says about the rate limit (pet-api.md, "Rate-limit headers" and "Exceeding the limit"), as it was sent. A
 * header that is missing or malformed is undefined. The throttle judges what the numbers mean.
 */
export interface RateLimitHeaders {
  /** Calls that the window allows. */
  readonly limit: number | undefined;
  /** Calls left in the window. */
  readonly remaining: number | undefined;
  /** When the window resets: a Unix timestamp, in seconds by the contract. */
  readonly reset: number | undefined;
  /** How long to wait after a 429, in milliseconds; counted from the upstream's clock where it was sent as a date. */
  readonly retryAfterMs: number | undefined;
  /** The upstream's clock at the response, in milliseconds since the Unix epoch. */
  readonly dateMs: number | undefined;
}

/**
 * Reads the rate-limit headers of any response, errors included.
 *
 * @param receivedAtMs petql's own clock, used where a Retry-After date comes without a Date header.
 */
export function readRateLimitHeaders(headers: ResponseHeaders, receivedAtMs: number): RateLimitHeaders {
  const dateMs = httpDate(single(headers['date']));
  return {
    limit: wholeNumber(single(headers['x-ratelimit-limit'])),
    remaining: wholeNumber(single(headers['x-ratelimit-remaining'])),
    reset: wholeNumber(single(headers['x-ratelimit-reset'])),
    retryAfterMs: retryAfter(headers['retry-after'], dateMs ?? receivedAtMs),
    dateMs,
  };
}

/** Reads seconds or a date (RFC 9110, section 10.2.3). A call that comes too early may mean a ban, so the longest of several waits counts. */
function retryAfter(value: string | string[] | undefined, nowMs: number): number | undefined {
  const waitsMs = [value ?? []].flat().map((each) => waitMs(each.trim(), nowMs));
  const known = waitsMs.filter((wait) => wait !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

function waitMs(value: string, nowMs: number): number | undefined {
  if (/^\d{1,15}(?:\.\d{1,15})?$/.test(value)) return Math.ceil(Number(value)) * 1000;
  const date = httpDate(value);
  return date === undefined ? undefined : Math.max(0, date - nowMs);
}

/** Returns undefined for a header that came twice with different values. */
function single(value: string | string[] | undefined): string | undefined {
  if (!Array.isArray(value)) return value?.trim();
  return new Set(value).size === 1 ? value[0]?.trim() : undefined;
}

function wholeNumber(value: string | undefined): number | undefined {
  // 15 digits are exact in a double, and more than any count or timestamp needs.
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Dates only: Date.parse alone would read "12" as a year. */
function httpDate(value: string | undefined): number | undefined {
  if (value === undefined || !/^[A-Z][a-z]{2,8},? /.test(value)) return undefined;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? undefined : parsed;
}
