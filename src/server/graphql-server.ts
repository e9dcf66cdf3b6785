import type { Callers } from '../caller/callers.ts';
import type { Events } from '../common/events.ts';
import type { CheckedOptions } from '../settings/settings.ts';
import type { Spans } from '../common/tracing.ts';
import { createErrorMask, finishedError, shownError } from './errors.ts';
import type { Health } from './http/health.ts';
import { isEndpoint, pathOf } from './http/http-message.ts';
import type { HttpRequest, HttpResponse, Respond } from './http/http-message.ts';
import { createCors } from './http/cors.ts';
import { createPages } from './http/pages.ts';
import { cacheKey, createResponseCache } from './http/response-cache.ts';
import type { CachedResponse } from './http/response-cache.ts';
import { createResponseHeaders } from './http/response-headers.ts';
import type { RequestState } from './request-state.ts';
import { createRequestReader } from './request-reader.ts';
import { RefusalLog } from './refusal-log.ts';
import { createTelemetry, requestId } from './telemetry.ts';
import type { TrustedDocuments } from './plugins/trusted-documents.ts';
import { createYogaHandler } from './yoga.ts';

/** What the server is made of. */
export interface ServerParts {
  readonly settings: CheckedOptions;
  readonly callers: Callers;
  readonly health: () => Health;
  readonly trusted: TrustedDocuments | undefined;
  readonly events: Events | undefined;
  readonly spans: Spans;
}

/** GraphQL over HTTP and in this process, under the same rules: at once from the response cache, or by Yoga. */
export function createGraphqlServer(parts: ServerParts): Respond {
  const { settings, callers } = parts;
  const refusals = new RefusalLog(settings.log, settings.clock);
  const telemetry = createTelemetry({ ...parts, log: settings.log, refusals });
  const readRequest = createRequestReader(settings, callers);
  const maskError = createErrorMask(settings.log);
  const pages = createPages(settings, parts.health);
  const cache = createResponseCache();
  const cors = createCors(settings, settings.log);
  const responseHeaders = createResponseHeaders({ ...settings, cors });
  const runYoga = createYogaHandler({ settings, trusted: parts.trusted, readRequest, maskError });

  return (given) => {
    // RFC 9110, section 9.3.2: HEAD is GET without the content, which no transport sends then.
    const request = given.method === 'HEAD' ? { ...given, method: 'GET' } : given;
    const key = cacheKey(request, settings);
    const cached = key === undefined ? undefined : cache.get(key);
    if (!cached) return respondUncached(request, key);
    // Only responses of operations are cached.
    const state = telemetry.begin(request);
    try {
      return fromCache(state, cached) ?? respondUncached(request, key, state);
    } catch (fault) {
      state.context?.end();
      return ofFault(fault, state);
    }
  };

  /** Undefined where a read behind the response has another result now. */
  function fromCache(
    state: RequestState,
    { headers, data, reads, operation }: CachedResponse,
  ): HttpResponse | undefined {
    state.operation = operation;
    const context = readRequest(state);
    // Responses for the keys that a function finds are never cached.
    if (context instanceof Promise) return undefined;
    state.context = context;
    if (!context.repeat(reads)) return undefined;

    const { usage } = context;
    state.usage = usage;
    telemetry.end(state);
    const body = `{"data":${data},"extensions":{"petql":${JSON.stringify(usage)}}}`;
    const response = finish(state, { status: 200, headers, body });
    context.end();
    return response;
  }

  /** @param begun the state of a request whose cached response is no longer valid; a new one without it. */
  async function respondUncached(
    request: HttpRequest,
    key: string | undefined,
    begun?: RequestState,
  ): Promise<HttpResponse> {
    let state = begun;
    try {
      const page = preflight(request) ?? (await pages(request));
      if (page) return finish({ id: requestId(request), request }, page);
      state ??= telemetry.begin(request);
      const response = await runYoga(state);
      telemetry.end(state);
      if (key !== undefined) store(key, state, response);
      return finish(state, response);
    } catch (fault) {
      return ofFault(fault, state ?? telemetry.begin(request));
    } finally {
      state?.context?.end();
    }
  }

  /** The response to a browser that asks whether a page may send a request: at the endpoint, and from an allowed origin anywhere. */
  function preflight(request: HttpRequest): HttpResponse | undefined {
    if (request.method !== 'OPTIONS') return undefined;
    const isAnswered = isEndpoint(pathOf(request), settings.endpoint) || cors(request);
    return isAnswered ? { status: 204, headers: {}, body: '' } : undefined;
  }

  function store(key: string, { context, data, result, operation }: RequestState, { headers }: HttpResponse): void {
    const reads = context?.cachedReads ?? [];
    // Without reads it would save no call, and anybody could fill the cache of all callers with such responses.
    if (reads.length === 0 || data === undefined || !operation || result?.errors) return;
    cache.set(key, { headers, data, reads, operation });
  }

  function finish(state: Parameters<typeof responseHeaders>[1], response: HttpResponse): HttpResponse {
    return { ...response, headers: responseHeaders(response.headers, state) };
  }

  /** Something failed outside an operation, such as a file that could not be loaded. */
  function ofFault(fault: unknown, state: RequestState): HttpResponse {
    const error = maskError(fault);
    telemetry.end({ ...state, result: { errors: [error] } });
    const body = JSON.stringify({ errors: [shownError(finishedError(error))] });
    return finish(
      { id: state.id, span: state.span, request: state.request },
      { status: 500, headers: JSON_HEADERS, body },
    );
  }
}

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' };
