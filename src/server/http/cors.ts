import type { CORSOptions } from 'graphql-yoga';
import { OnceLog } from '../../log.ts';
import { pageOrigin } from '../../settings/page-origin.ts';
import type { CheckedOptions } from '../../settings/settings.ts';

/**
 * For Yoga, which answers preflights (the Fetch standard, "CORS protocol"). A page may send the headers that it asks for, such as
 * those of Apollo Client and Sentry. Without cookies: keys come in a header.
 */
const GRANTED = {
  credentials: false,
  methods: ['GET', 'POST'],
  exposedHeaders: [
    'age',
    'cache-status',
    'ratelimit',
    'ratelimit-policy',
    'retry-after',
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'x-ratelimit-reset',
    'x-request-id',
  ],
  // The maximum of most browsers.
  maxAge: 7_200,
};

/** A function, since Yoga would answer origins that are not in a list with the origin `null`, which a sandboxed frame has. */
export function corsOptions({ corsOrigins: origins, log }: CheckedOptions): (request: Request) => CORSOptions {
  const any = origins.includes('*');
  const refusals = new OnceLog(log);
  return ({ method, headers }) => {
    const origin = headers.get('origin') ?? '';
    const known = pageOrigin(origin);
    if (any || (known !== undefined && origins.includes(known))) return { ...GRANTED, origin: [origin] };
    // Without a list a framework around petql may have allowed the page: then no preflight comes this far.
    const isRefused = origins.length > 0 || method === 'OPTIONS';
    // Other texts are no page's, and may be as long as a header.
    if (isRefused && origin !== '' && !isOwnPage(origin, headers))
      logRefusal(known === undefined ? 'malformed' : origin);
    return false;
  };

  function logRefusal(origin: string): void {
    const message = 'page of another origin refused: allow it with --cors-origins (CORS_ORIGINS, corsOrigins)';
    refusals.warn({ origin }, message, origin);
  }
}

/** Browsers send an Origin with each POST, GraphiQL's too. */
function isOwnPage(origin: string, headers: Headers): boolean {
  return headers.get('sec-fetch-site') === 'same-origin' || URL.parse(origin)?.host === headers.get('host');
}
