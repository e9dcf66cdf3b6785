import { PREFLIGHTED_HEADERS } from './forged-request.ts';

/** Which pages of other origins may ask, as browsers are told (the Fetch standard, "CORS protocol"). */
export interface Cors {
  /** The answer to a browser that asks whether it may ask; undefined where the request is none of that kind. */
  preflight(request: Request): Response | undefined;
  /** What an answer says to the page with this `Origin`. */
  headers(origin: string | null): Readonly<Record<string, string>>;
}

/** @param origins `*` for any; none for pages of the own origin alone, which need no permission. */
export function createCors(origins: readonly string[]): Cors {
  const any = origins.includes('*');
  const allowed = new Set(origins);
  return {
    preflight(request) {
      const asks = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
      if (!asks || allowed.size === 0) return undefined;
      const granted = headers(request.headers.get('origin'));
      const more = 'access-control-allow-origin' in granted ? PREFLIGHT_HEADERS : {};
      return new Response(null, { status: 204, headers: { ...granted, ...more } });
    },
    headers,
  };

  function headers(origin: string | null): Readonly<Record<string, string>> {
    if (allowed.size === 0) return NONE;
    if (any) return { 'access-control-allow-origin': '*', ...EXPOSED };
    // Said to the others too, or a cache would give one page the answer that another may not see.
    if (origin === null || !allowed.has(origin)) return { vary: 'Origin' };
    return { vary: 'Origin', 'access-control-allow-origin': origin, ...EXPOSED };
  }
}

const NONE: Readonly<Record<string, string>> = {};

/** Cookies are not among it: petql reads none, and keys come in a header. */
const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers': [
    'authorization',
    'cache-control',
    'content-type',
    'prefer',
    'traceparent',
    'tracestate',
    ...PREFLIGHTED_HEADERS,
  ].join(', '),
  // Browsers ask again after two hours at the latest.
  'access-control-max-age': '7200',
};

const EXPOSED = {
  'access-control-expose-headers':
    'age, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-request-id',
};
