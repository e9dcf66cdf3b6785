import type { Freshness } from '../../common/caller-request.ts';
import { PetqlError } from '../../common/errors.ts';

/** The settings of the gateway. */
type FreshnessDefaults = Pick<Freshness, 'maxAgeMs' | 'maxStaleMs'>;

/**
 * Reads what the `Cache-Control` of a request asks for. `no-store` counts as `no-cache`: the response is to come from the
 * upstream. With `max-age` alone nothing older is served, not even where the upstream fails.
 */
export function readFreshness(cacheControl: string | undefined, defaults: FreshnessDefaults): Freshness {
  const usual = {
    ...defaults,
    coalesceWithinMs: Infinity,
    mayCall: true,
    mayServeStaleToSaveCalls: true,
  };
  if (!cacheControl) return usual;

  const directives = directivesOf(cacheControl);
  const mayCall = !directives.has('only-if-cached');
  if (directives.has('no-cache') || directives.has('no-store')) {
    return { maxAgeMs: -1, maxStaleMs: -1, coalesceWithinMs: 0, mayCall, mayServeStaleToSaveCalls: false };
  }

  const maxAgeMs = milliseconds(directives.get('max-age'));
  const freshMs = maxAgeMs ?? defaults.maxAgeMs;
  // `max-stale` counts from `max-age`; the setting `maxStaleMs` counts from 0.
  const extraMs = milliseconds(directives.get('max-stale')) ?? Infinity;
  return {
    mayCall,
    maxAgeMs: freshMs,
    maxStaleMs: directives.has('max-stale') ? freshMs + extraMs : (maxAgeMs ?? defaults.maxStaleMs),
    coalesceWithinMs: maxAgeMs ?? Infinity,
    mayServeStaleToSaveCalls: maxAgeMs === undefined,
  };
}

/** Returns the directives of RFC 9111, section 5.2.1 by their names, without those whose value is no number of seconds. */
function directivesOf(cacheControl: string): Map<string, string | undefined> {
  const directives = new Map<string, string | undefined>();
  for (const directive of cacheControl.split(',')) {
    const [name = '', ...values] = directive.split('=');
    const seconds = values.length === 0 ? undefined : values.join('=').replaceAll('"', '').trim();
    if (seconds === undefined || /^\d{1,10}$/.test(seconds)) directives.set(name.trim().toLowerCase(), seconds);
  }
  return directives;
}

/** Returns the error of a request that takes cached entries alone, where there is none. */
export function notCachedError(): PetqlError {
  return new PetqlError(
    'NOT_CACHED',
    'No cached response satisfies only-if-cached. Send the request without it to allow an upstream call.',
    { httpStatus: 504 },
  );
}

function milliseconds(seconds: string | undefined): number | undefined {
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
