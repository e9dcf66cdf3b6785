import type { ExecutionResult } from 'graphql';
import type { Clock } from '../../common/clock.ts';
import type { RequestState } from '../request-state.ts';
import { hasNothing } from './result-response.ts';
import type { Cors } from './cors.ts';
import type { HttpRequest } from './http-message.ts';
import { cacheStatus } from './cache-status.ts';
import { createQuotaHeaders } from './quota-headers.ts';

/** On every response that does not say otherwise: no browser guesses a type, runs or frames it. */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/** What the headers of a response depend on beside its own. */
interface HeaderSources extends Partial<RequestState> {
  readonly id: string;
  readonly request: HttpRequest;
}

interface HeaderSettings {
  readonly clock: Pick<Clock, 'now'>;
  /** The age up to which data is fresh. */
  readonly maxAgeMs: number;
  /** Whose pages may send requests. Caches keep the responses for them apart. */
  readonly corsOrigins: readonly string[];
  readonly cors: Cors;
}

/** Returns what makes the headers of a response: its own, those of this moment, and those that every response has. */
export function createResponseHeaders({
  clock,
  maxAgeMs,
  corsOrigins,
  cors,
}: HeaderSettings): (own: Readonly<Record<string, string>>, sources: HeaderSources) => Record<string, string> {
  const quotaHeaders = createQuotaHeaders();

  return (own, sources) => {
    // One object, which each step adds to: a hit spends much of its time on headers.
    const headers: Record<string, string> = { ...SECURITY_HEADERS, ...own, ...cors(sources.request) };
    addMomentary(headers, sources);
    addCaching(headers, corsOrigins);
    headers['x-request-id'] = sources.id;
    return headers;
  };

  /** Adds what the headers say about the cache, the quota and the result; nothing where the request is no operation. */
  function addMomentary(headers: Record<string, string>, { span, context, usage, result = {} }: HeaderSources): void {
    if (span) headers['cache-status'] = cacheStatus(usage, context?.cacheUse, maxAgeMs);
    if (!usage) return;
    const quota = context?.latestQuota;
    if (quota) Object.assign(headers, quotaHeaders(quota, clock.now()));
    const retryAfterMs = maxRetryAfterMs(result);
    if (retryAfterMs !== undefined) headers['retry-after'] = String(Math.ceil(retryAfterMs / 1000));
    // Whole seconds (RFC 9111, section 5.1).
    if (usage.oldestAgeMs !== undefined) headers['age'] = String(Math.floor(usage.oldestAgeMs / 1000));
  }
}

/** A response with an age may be stored by its client, and must be revalidated. */
function addCaching(headers: Record<string, string>, corsOrigins: readonly string[]): void {
  const vary = headers['vary'] === undefined ? [] : [headers['vary']];
  if (headers['cache-control'] === undefined) {
    headers['cache-control'] = headers['age'] === undefined ? 'private, no-store' : 'private, no-cache';
    vary.unshift('Authorization');
  }
  if (corsOrigins.length > 0 && !corsOrigins.includes('*')) vary.push('Origin');
  if (vary.length > 0) headers['vary'] = vary.join(', ');
}

/** Undefined unless all that the client gets are errors that say when to retry. */
function maxRetryAfterMs(result: ExecutionResult): number | undefined {
  if (!hasNothing(result)) return undefined;
  const waits = (result.errors ?? []).map(({ extensions }) => extensions['retryAfterMs']);
  return waits.every((wait) => typeof wait === 'number') ? Math.max(...waits) : undefined;
}
