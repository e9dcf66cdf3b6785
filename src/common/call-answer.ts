/**
 * What a response says of the API key, whatever the call was for. `accepted`: only a body that keeps the contract proves that the
 * upstream knows the key, since a proxy or a firewall answers strangers too, also with an empty 204. `failed`: a 5xx.
 */
export type KeyMeaning = 'accepted' | 'failed' | 'forbidden' | 'other' | 'rate-limited' | 'unauthenticated';

/**
 * What the end of a call is evidence of. `works`: what only an upstream that works responds. `fails`: the call failed. `answers`: a
 * 4xx, which says that the request is at fault. `no-route`: perhaps there is no such operation. `none`: a 401, 403 or 429, which is
 * about the key, or a cached response.
 */
export type Evidence = 'answers' | 'fails' | 'no-route' | 'none' | 'works';

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

/** What the end of a call says of its API key and of the upstream. */
export interface CallAnswer {
  /** Whether the upstream may have received the call, and so may have counted it. */
  readonly sent: boolean;
  readonly meaning: KeyMeaning;
  readonly evidence: Evidence;
  /** Whether the upstream itself wrote the response, and not a proxy or a cache before it. */
  readonly isOwn: boolean;
  /** The numbers of every response, even of an error or one that broke off; undefined without a response. */
  readonly rateLimit: RateLimitHeaders | undefined;
}
