import type { CacheUse } from '../../caller/request-context.ts';
import type { Usage } from '../../common/usage.ts';

/**
 * Returns the `Cache-Status` of a response (RFC 9211), such as `petql; hit; ttl=-30; detail=QUOTA_EXHAUSTED`.
 *
 * @param usage undefined where nothing ran.
 * @param use undefined where nothing was read.
 * @param maxAgeMs the age up to which data is fresh.
 */
export function cacheStatus(usage: Usage | undefined, use: CacheUse | undefined, maxAgeMs: number): string {
  if (!usage || !use) return 'petql; fwd=bypass';
  const { oldestAgeMs, staleReason } = usage;
  let status = `petql; ${use.isHit ? 'hit' : `fwd=${reasonOf(usage, use)}`}`;
  if (oldestAgeMs !== undefined) {
    const ttl = Math.floor((maxAgeMs - oldestAgeMs) / 1000);
    // A request may choose another age than the usual one.
    status += `; ttl=${staleReason ? Math.min(-1, ttl) : Math.max(0, ttl)}`;
  }
  if (use.hasSharedCall) status += '; collapsed';
  if (staleReason) status += `; detail=${staleReason}`;
  return status;
}

/** Returns why the cache alone did not serve the request. */
function reasonOf({ staleReason }: Usage, { isUncachedWanted }: CacheUse): 'miss' | 'request' | 'stale' {
  if (staleReason) return 'stale';
  return isUncachedWanted ? 'request' : 'miss';
}
