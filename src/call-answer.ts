/**
 * What a response says of the API key, whatever the call was for. `accepted`: only a body that keeps the contract proves that the
 * upstream knows the key, since a proxy or a firewall answers strangers too, also with an empty 204. `failed`: a 5xx.
 */
export type KeyMeaning = 'accepted' | 'failed' | 'forbidden' | 'other' | 'rate-limited' | 'unauthenticated';

/** What a response, or none, shows of the upstream. `rejects`: a 403, which may be about the key. */
export type UpstreamHealth = 'fails' | 'rejects' | 'unknown' | 'works';

/** The numbers of a response as the upstream sent them; undefined for a header that is missing or malformed. */
export interface RateLimitHeaders {
  /** Calls that the window allows. */
  readonly limit: number | undefined;
  /** Calls that are left in the window. */
  readonly remaining: number | undefined;
  /** When the window resets: a Unix timestamp, in seconds by the contract. */
  readonly reset: number | undefined;
  /** Minimum wait after a 429, by the upstream's clock where the header is a date. */
  readonly retryAfterMs: number | undefined;
  /** The upstream's clock at the response, in milliseconds since the Unix epoch. */
  readonly dateMs: number | undefined;
}

/** What the end of a call says of its API key. */
export interface CallAnswer {
  /** Whether the upstream may have received the call, and so may have counted it. */
  readonly sent: boolean;
  readonly meaning: KeyMeaning;
  readonly health: UpstreamHealth;
  /** The numbers of every response, even of an error or one that broke off; undefined without a response. */
  readonly rateLimit: RateLimitHeaders | undefined;
}
