import { PetqlError } from '../errors.ts';

/** How old an answer a request takes, and what may be done to get a younger one. Ages are milliseconds. */
export interface Freshness {
  /** An answer that is no older is served as it is. */
  readonly maxAgeMs: number;
  /** An answer that is no older is better than none: while the plan is spared or used up, or the upstream fails. */
  readonly maxStaleMs: number;
  /** A call that was sent so long ago may be waited for; Infinity where any may. */
  readonly joinsSentMs: number;
  /** Whether the upstream may be called. */
  readonly mayCall: boolean;
  /** Whether calls that only refresh an answer are spared (refresh-allowance.ts). A request that asks for its age is not. */
  readonly spares: boolean;
}

/** What `maxAgeMs` and `maxStaleMs` are set to. */
export type FreshnessDefaults = Pick<Freshness, 'maxAgeMs' | 'maxStaleMs'>;

/**
 * What a request's `Cache-Control` asks for (RFC 9111, section 5.2.1): `no-cache`, `max-age`, `max-stale`,
 * `only-if-cached`, and `no-store` as `no-cache`, since nothing else would keep it from what others have stored.
 * With `max-age` alone nothing older is taken, not even where the upstream fails.
 */
export function readFreshness(cacheControl: string | undefined, defaults: FreshnessDefaults): Freshness {
  const usual = { ...defaults, joinsSentMs: Infinity, mayCall: true, spares: true };
  if (!cacheControl) return usual;
  const directives = readDirectives(cacheControl);
  const mayCall = !directives.has('only-if-cached');
  if (directives.has('no-cache') || directives.has('no-store')) {
    return { maxAgeMs: -1, maxStaleMs: -1, joinsSentMs: 0, mayCall, spares: false };
  }
  const maxAgeMs = seconds(directives.get('max-age'));
  const freshMs = maxAgeMs ?? defaults.maxAgeMs;
  return {
    mayCall,
    maxAgeMs: freshMs,
    maxStaleMs: directives.has('max-stale')
      ? freshMs + (seconds(directives.get('max-stale')) ?? Infinity)
      : (maxAgeMs ?? defaults.maxStaleMs),
    joinsSentMs: maxAgeMs ?? Infinity,
    spares: maxAgeMs === undefined,
  };
}

/** The error of a request that takes stored answers alone, where there is none. */
export function notCachedError(): PetqlError {
  return new PetqlError(
    'NOT_CACHED',
    'Nothing young enough is known, and the request says only-if-cached: send it without that to let petql ask the service.',
    { httpStatus: 504 },
  );
}

function readDirectives(cacheControl: string): ReadonlyMap<string, string> {
  const directives = new Map<string, string>();
  for (const part of cacheControl.split(',')) {
    // By hand: strangers send this, and a pattern with several runs of spaces tries each way to share them out.
    const [name = '', ...values] = part.split('=').map((text) => text.trim());
    if (/^[\w-]+$/.test(name)) directives.set(name.toLowerCase(), unquoted(values.join('=')));
  }
  return directives;
}

function unquoted(value: string): string {
  return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).trim() : value;
}

function seconds(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,10}$/.test(value) ? Number(value) * 1000 : undefined;
}
