import { readFreshness } from '../caller/freshness.ts';
import type { Freshness, FreshnessDefaults } from '../caller/freshness.ts';

/** Reads how old a request's answers may be. Nearly all requests ask for the same: what the last one asked for is not read again. */
export function createFreshnessReader(defaults: FreshnessDefaults): (cacheControl: string | undefined) => Freshness {
  const usual = readFreshness(undefined, defaults);
  let latest = { asked: '', freshness: usual };
  return (cacheControl) => {
    if (!cacheControl) return usual;
    if (cacheControl !== latest.asked) {
      latest = { asked: cacheControl, freshness: readFreshness(cacheControl, defaults) };
    }
    return latest.freshness;
  };
}
