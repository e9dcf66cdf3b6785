/** Why a result is staler than the request wanted. */
export type StaleReason =
  | 'CALLS_IN_FLIGHT'
  | 'ONLY_IF_CACHED'
  | 'PAUSED'
  | 'QUOTA_EXHAUSTED'
  | 'SAVING_QUOTA'
  | 'UPSTREAM_FAILED';

/** What one request has cost, and how old its results are: `extensions.petql`. */
export interface Usage {
  /** Upstream calls made for this request. A call that answers other requests too counts for one of them. */
  readonly upstreamCalls: number;
  /** Different reads that cost this request no call: from the cache, or by a call that another request paid for. */
  readonly savedCalls: number;
  /** The age of the oldest result in milliseconds, at this moment; undefined where there was none. */
  readonly oldestAgeMs: number | undefined;
  /** Why the oldest of the stale results is stale; undefined where none is. */
  readonly staleReason: StaleReason | undefined;
  /** When it is worth asking again, in ISO 8601; undefined where nothing is stale, or the request allows no call. */
  readonly freshAt: string | undefined;
}

export const NO_USAGE: Usage = {
  upstreamCalls: 0,
  savedCalls: 0,
  oldestAgeMs: undefined,
  staleReason: undefined,
  freshAt: undefined,
};
