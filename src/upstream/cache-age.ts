import type { ResponseHeaders } from './exchange.ts';

/**
 * Returns the age of a response from a cache before the upstream, in milliseconds: by `Age` (RFC 9111, section 5.1), or 0 where
 * `Cache-Status` alone names a hit (RFC 9211). Undefined for a response of the upstream itself.
 */
export function cacheAgeMs(headers: ResponseHeaders): number | undefined {
  const [age = ''] = [headers['age'] ?? []].flat();
  if (/^\d{1,10}$/.test(age) && Number(age) > 0) return Number(age) * 1_000;
  const status = [headers['cache-status'] ?? []].flat().join(',');
  return /;\s*hit\s*(?:=\s*\?1\s*)?(?:[;,]|$)/i.test(status) ? 0 : undefined;
}
