import type { ResponseHeaders } from './transport.ts';

/**
 * What a response says of the caller's plan (pet-api.md, "Rate-limit headers" and "Exceeding the limit"), as it was
 * sent: a header that is missing or makes no sense is undefined, and what a number means is the throttle's to judge.
 */
export interface RateLimitHeaders {
  /** Requests that the window holds. */
  readonly limit: number | undefined;
  /** Requests left in the window. */
  readonly remaining: number | undefined;
  /** When the window resets: a Unix timestamp, in seconds by the contract. */
  readonly reset: number | undefined;
  /** How long to wait after a 429, in milliseconds, from the upstream's clock where it was given as a date. */
  readonly retryAfterMs: number | undefined;
  /** The upstream's clock when it answered, in milliseconds since the Unix epoch. */
  readonly dateMs: number | undefined;
}

/**
 * Reads the rate-limit headers of any response, errors included.
 *
 * @param receivedAtMs our own clock, used where a Retry-After date comes without a Date header.
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

/**
 * Seconds or a date (RFC 9110, section 10.2.3); a date in the past is no wait. Whoever calls too early may be banned, so the longest
 * of several counts, and a part of a second is a whole one.
 */
function retryAfter(value: string | string[] | undefined, nowMs: number): number | undefined {
  const values = [value ?? []].flat().flatMap((each) => each.split(BETWEEN_VALUES));
  const waitsMs = values.map((each) => waitMs(each.trim(), nowMs)).filter((wait) => wait !== undefined);
  return waitsMs.length > 0 ? Math.max(...waitsMs) : undefined;
}

/** A date has a comma too, after its weekday. */
const BETWEEN_VALUES = /(?<![A-Z][a-z]{2,8}),/;

function waitMs(value: string, nowMs: number): number | undefined {
  const [, whole, part] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(value) ?? [];
  if (whole !== undefined) return (Number(whole) + (Number(part) > 0 ? 1 : 0)) * 1000;
  const date = httpDate(value);
  return date === undefined ? undefined : Math.max(0, date - nowMs);
}

/** A header that came twice with different values is worth nothing. */
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
