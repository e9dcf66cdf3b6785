import type { HeaderLimits } from './header-limits.ts';

/** The rate limits in a response, and how long it took. */
export interface CallResponse {
  /** Undefined where its headers are missing or invalid. */
  readonly headers: HeaderLimits | undefined;
  readonly tookMs: number;
}

/** A 429, or what looks like a ban. */
export interface RateLimited extends CallResponse {
  /** Retry-After, or 0. */
  readonly retryAfterMs: number;
  /** Whether it is a 401 or 403 to a probe after a 429. */
  readonly mayBeBanned: boolean;
}
