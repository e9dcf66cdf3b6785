import { OnceLog } from '../../common/log.ts';
import type { Log } from '../../common/log.ts';
import { pageOrigin } from '../../settings/page-origin.ts';
import type { CheckedOptions } from '../../settings/settings.ts';

/** Response headers beyond those that each page may read. */
const EXPOSED = [
  'age',
  'cache-status',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
].join(', ');

/** The maximum of most browsers, in seconds. */
const MAX_AGE = '7200';

/** What CORS goes by in a request. */
interface PageRequest {
  readonly method?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Returns the headers by which the page that sends a request may read its response; undefined where it may not. */
export type Cors = (request: PageRequest) => Record<string, string> | undefined;

/**
 * The Fetch standard, "CORS protocol", for every response of petql. A page may send the headers that it asks for, such as those of
 * Apollo Client and Sentry. Without cookies: keys come in a header.
 *
 * @param log gets one line for each refused origin. Default: none.
 */
export function createCors({ corsOrigins }: Pick<CheckedOptions, 'corsOrigins'>, log?: Log): Cors {
  const any = corsOrigins.includes('*');
  const refusals = log && new OnceLog(log);
  return (request) => {
    const origin = textOf(request, 'origin');
    if (origin === '') return undefined;
    const known = pageOrigin(origin);
    const isAllowed = any || (known !== undefined && corsOrigins.includes(known));
    if (isAllowed) return { ...grantedTo(request), 'access-control-allow-origin': any ? '*' : origin };
    // Without a list a framework around petql may have allowed the page: then no preflight comes this far.
    const isRefused = corsOrigins.length > 0 || request.method === 'OPTIONS';
    // Other texts are no page's, and may be as long as a header.
    if (isRefused && !isOwnPage(origin, request)) logRefusal(known === undefined ? 'malformed' : origin);
    return undefined;
  };

  function logRefusal(origin: string): void {
    const message = 'page of another origin refused: allow it with --cors-origins (CORS_ORIGINS, corsOrigins)';
    refusals?.warn({ origin }, message, origin);
  }
}

function grantedTo(request: PageRequest): Record<string, string> {
  if (request.method !== 'OPTIONS') return { 'access-control-expose-headers': EXPOSED };
  return {
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': textOf(request, 'access-control-request-headers'),
    'access-control-max-age': MAX_AGE,
    vary: 'Access-Control-Request-Headers',
  };
}

/** Browsers send an Origin with each POST, GraphiQL's too. */
function isOwnPage(origin: string, request: PageRequest): boolean {
  return textOf(request, 'sec-fetch-site') === 'same-origin' || URL.parse(origin)?.host === textOf(request, 'host');
}

function textOf({ headers }: PageRequest, name: string): string {
  return String(headers[name] ?? '');
}
