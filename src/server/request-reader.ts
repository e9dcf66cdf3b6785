import type { CallerRequest } from '../common/caller-request.ts';
import type { Callers } from '../caller/callers.ts';
import { RequestContext } from '../caller/request-context.ts';
import type { PetqlError } from '../common/errors.ts';
import { readFreshness } from '../reads/cache/freshness.ts';
import type { CheckedOptions } from '../settings/settings.ts';
import { givenApiKey, readApiKey } from './api-key.ts';
import type { HttpRequest, InProcessOptions } from './http/http-message.ts';
import type { RequestState } from './request-state.ts';
import { visitorOf } from './visitor.ts';

/** Reads the headers of a request, once its operation is known. Returns a promise only where a `petApiKey` function finds the key. */
export type RequestReader = (state: RequestState) => Promise<RequestContext> | RequestContext;

/** With a server-side key, the Authorization of requests is not read. */
export function createRequestReader(settings: CheckedOptions, callers: Callers): RequestReader {
  const { clock, log, maxWaitMs, petApiKey, allowClientCacheControl, visitorHeader } = settings;
  const defaultFreshness = readFreshness(undefined, settings);

  return (state) => {
    const { request } = state;
    if (request.inProcess) return withKey(state, request.inProcess.apiKey);
    if (petApiKey === undefined) return withKey(state, readApiKey(request.headers['authorization']));
    if (typeof petApiKey === 'string') return withKey(state, givenApiKey(petApiKey));
    return findKey(petApiKey, request).then((apiKey) => withKey(state, apiKey));
  };

  async function findKey(
    find: (request: Request) => unknown,
    { toRequest }: HttpRequest,
  ): Promise<string | PetqlError> {
    const found = (await find(toRequest())) ?? undefined;
    if (found === undefined || typeof found === 'string') return givenApiKey(found);
    log.error({ got: typeof found }, 'petApiKey: expected its function to find a string, null or undefined');
    return givenApiKey(undefined);
  }

  function withKey(state: RequestState, apiKey: string | PetqlError): RequestContext {
    const { id, operation, request, span } = state;
    const { waitMs = maxWaitMs, cacheControl, dryRun, isBackground } = request.inProcess ?? readHeaders(request);
    const given: CallerRequest = {
      id,
      operation: operation?.name,
      trace: span?.trace,
      freshness: cacheControl ? readFreshness(cacheControl, settings) : defaultFreshness,
      deadlineMs: clock.elapsed() + Math.min(maxWaitMs, waitMs),
      signal: request.signal,
      visitor: visitorOf(request, visitorHeader),
      isBackground,
      isDryRun: dryRun,
      upstreamCalls: 0,
      promisedAtMs: -Infinity,
    };
    return new RequestContext(given, apiKey, callers, clock);
  }

  function readHeaders({ headers }: HttpRequest): Omit<InProcessOptions, 'apiKey' | 'client' | 'visitor'> {
    const isHonored = petApiKey === undefined || allowClientCacheControl;
    const dryRun = headers['petql-dry-run'];
    return {
      waitMs: preferredWaitMs(headers['prefer']),
      cacheControl: isHonored && !isOfBrowser(headers) ? headers['cache-control'] : undefined,
      dryRun: dryRun !== undefined && dryRun.trim() !== '0',
      isBackground: LOWEST_URGENCY.test(headers['priority'] ?? ''),
    };
  }
}

/**
 * Browsers add both headers where somebody reloads hard or disables the cache, and for `cache: 'reload'` (Fetch Standard,
 * HTTP-network-or-cache fetch): the app has asked for no age.
 */
function isOfBrowser(headers: HttpRequest['headers']): boolean {
  return NO_CACHE.test(headers['cache-control'] ?? '') && NO_CACHE.test(headers['pragma'] ?? '');
}

const NO_CACHE = /^no-cache$/i;

/** `Priority: u=7` is background (RFC 9218, section 4.1). Clients can only lower themselves. */
const LOWEST_URGENCY = /(?:^|,)\s*u\s*=\s*7\s*(?:$|[,;])/;

/** `Prefer: wait=5`, in seconds (RFC 7240, section 4.3). */
function preferredWaitMs(prefer: string | undefined): number | undefined {
  if (!prefer) return undefined;
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
