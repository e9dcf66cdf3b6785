import type { ResponseHeaders } from './http-transport.ts';

export type RateLimitHeaders = ReturnType<typeof readRateLimitHeaders>;

/**
 * Reads what a response says about the rate limit (pet-api.md, "Rate-limit headers" and "Exceeding the limit"), as it was sent. A
 * header that is missing or malformed is undefined. The throttle judges what the numbers mean.
 *
 * @param receivedAtMs petql's own clock, used where a Retry-After date comes without a Date header.
 */
export function readRateLimitHeaders(headers: ResponseHeaders, receivedAtMs: number) {
  const dateMs = httpDate(single(headers['date']));
  return {
    /** Calls that the window allows, and those that are left. */
    limit: wholeNumber(single(headers['x-ratelimit-limit'])),
    remaining: wholeNumber(single(headers['x-ratelimit-remaining'])),
    /** When the window resets: a Unix timestamp, in seconds by the contract. */
    reset: wholeNumber(single(headers['x-ratelimit-reset'])),
    /** How long to wait after a 429; counted from the upstream's clock where it was sent as a date. */
    retryAfterMs: waitMs(single(headers['retry-after']), dateMs ?? receivedAtMs),
    /** The upstream's clock at the response, in milliseconds since the Unix epoch. */
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

/** Dates only: Date.parse alone would read "12" as a year. */
function httpDate(value: string | undefined): number | undefined {
  if (value === undefined || !/^[A-Z][a-z]{2,8},? /.test(value)) return undefined;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? undefined : parsed;
}
