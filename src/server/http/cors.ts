import type { CheckedOptions } from '../../settings.ts';
import type { HttpRequest } from './http-message.ts';

/** Pages of other origins may read these. Without cookies: keys come in a header. */
const EXPOSED =
  'age, ratelimit, ratelimit-policy, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-request-id';

/** The answer to a preflight (the Fetch standard, "CORS protocol"). Most browsers keep it for two hours at most. */
const PREFLIGHT = {
  'access-control-allow-methods': 'GET, POST',
  'access-control-allow-headers':
    'authorization, cache-control, content-type, prefer, traceparent, tracestate, apollo-require-preflight, ' +
    'x-apollo-operation-name, petql-dry-run, x-requested-with',
  'access-control-max-age': '7200',
};

/** Clients choose their origins, and each is logged. */
const MAX_LOGGED_ORIGINS = 100;

/** Returns a function that gives the headers of a response for pages of other origins. */
export function createCors({ corsOrigins, log }: CheckedOptions) {
  const any = corsOrigins.includes('*');
  const logged = new Set<string>();
  return ({ method, headers }: HttpRequest): Readonly<Record<string, string>> | undefined => {
    const { origin } = headers;
    if (origin === undefined) return undefined;
    if (any || corsOrigins.includes(origin)) {
      const granted = { 'access-control-allow-origin': any ? '*' : origin, 'access-control-expose-headers': EXPOSED };
      return method === 'OPTIONS' ? { ...granted, ...PREFLIGHT } : granted;
    }
    // Browsers send an Origin with each POST, GraphiQL's too.
    const isOwnPage = headers['sec-fetch-site'] === 'same-origin' || URL.parse(origin)?.host === headers['host'];
    if (!isOwnPage) logRefusal(URL.parse(origin)?.origin ?? 'null');
    return undefined;
  };

  function logRefusal(origin: string): void {
    if (logged.has(origin) || logged.size === MAX_LOGGED_ORIGINS) return;
    logged.add(origin);
    log.warn({ origin }, 'page of another origin refused: allow it with --cors-origins (CORS_ORIGINS, corsOrigins)');
  }
}
