import { createYoga } from 'graphql-yoga';
import type { Callers } from '../caller/callers.ts';
import type { Events } from '../events.ts';
import type { ResolverContext } from '../schema/builder.ts';
import { schema } from '../schema/schema.ts';
import type { CheckedOptions } from '../settings.ts';
import type { Spans } from '../tracing.ts';
import { createErrorMask, finishedError, shownError } from './errors.ts';
import { corsOptions } from './http/cors.ts';
import type { Health } from './http/health.ts';
import type { HttpRequest, HttpResponse, Respond } from './http/http-message.ts';
import { useHttpRules } from './plugins/http-rules.ts';
import { acceptedType } from './http/media-type.ts';
import { createPages } from './http/pages.ts';
import { cacheKey, createResponseCache } from './http/response-cache.ts';
import type { CachedResponse } from './http/response-cache.ts';
import { momentaryHeaders, withCommonHeaders } from './http/response-headers.ts';
import { useResults } from './plugins/results.ts';
import { useDocumentLimits } from './plugins/document-limits.ts';
import { useExecution } from './plugins/execution.ts';
import type { RequestContext, RequestState, ServerContext } from './request-context.ts';
import { createRequestReader } from './request-reader.ts';
import { createTelemetry, requestId } from './telemetry.ts';
import { useTrustedDocuments } from './plugins/trusted-documents.ts';
import type { TrustedDocuments } from './plugins/trusted-documents.ts';

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
  const telemetry = createTelemetry({ ...parts, log: settings.log });
  const readRequest = createRequestReader(settings, callers);
  const maskError = createErrorMask(settings.log);
  const pages = createPages(settings, parts.health);
  const cache = createResponseCache();
  const yoga = createYoga<ServerContext, ResolverContext>({
    schema,
    graphqlEndpoint: settings.endpoint,
    async context({ state }) {
      state.context = await readRequest(state);
      return state.context.forResolvers();
    },
    maskedErrors: { maskError },
    // The plugin of document limits caches documents, and no errors.
    parserAndValidationCache: false,
    // The body was bounded when it was read. Yoga's own bound would pipe it through a stream, at the cost of an operation.
    maxRequestBodySize: false,
    extraParamNames: ['documentId'],
    cors: corsOptions(settings),
    plugins: [
      useResults(),
      useHttpRules(settings),
      useTrustedDocuments(settings, parts.trusted),
      useDocumentLimits(settings),
      useExecution(settings),
    ],
    // petql's own pages, log and rules replace these.
    graphiql: false,
    landingPage: false,
    logging: false,
    multipart: false,
    // Yoga answers any address that ends in this; a space is in none.
    healthCheckEndpoint: ' ',
  });
  const { Request: YogaRequest } = yoga.fetchAPI;

  return (request) => {
    const key = cacheKey(request, settings);
    const cached = key === undefined ? undefined : cache.get(key);
    try {
      return (cached && fromCache(request, cached)) ?? respondUncached(request, key);
    } catch (fault) {
      return ofFault(fault, telemetry.begin(request));
    }
  };

  /** Undefined where a read behind the response has another result now. */
  function fromCache(request: HttpRequest, cached: CachedResponse): HttpResponse | undefined {
    // Responses for the keys that a function finds are never cached.
    const context = readRequest({ request, id: '', span: undefined }) as RequestContext;
    try {
      if (!context.repeat(cached.reads)) return undefined;
      const { headers, data, operation } = cached;
      const { usage } = context;
      const state = { ...telemetry.begin(request), context, operation, usage };
      context.recordSavings();
      telemetry.end(state);
      const body = `{"data":${data},"extensions":{"petql":${JSON.stringify(usage)}}}`;
      return finish(state, { status: 200, headers, body });
    } finally {
      context.end();
    }
  }

  async function respondUncached(request: HttpRequest, key: string | undefined): Promise<HttpResponse> {
    let state: RequestState | undefined;
    try {
      const page = await pages(request);
      if (page) return finish({ id: requestId(request) }, page);
      state = telemetry.begin(request);
      const response = await fromYoga(state);
      telemetry.end(state);
      if (key !== undefined) store(key, state, response);
      return finish(state, response);
    } catch (fault) {
      return ofFault(fault, state ?? telemetry.begin(request));
    } finally {
      state?.context?.end();
    }
  }

  async function fromYoga(state: RequestState): Promise<HttpResponse> {
    const { method, url, headers } = state.request;
    // Yoga ignores the weights of media types.
    const given = { ...headers, accept: acceptedType(headers['accept']) ?? 'application/json' };
    const init = { method, headers: given as Record<string, string> };
    const response = await yoga.handleRequest(new YogaRequest(`http://localhost${url}`, init), { state });
    response.headers.delete('content-length');
    return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
  }

  function store(key: string, { context, data, result, operation }: RequestState, { headers }: HttpResponse): void {
    const reads = context?.cachedReads ?? [];
    // Without reads it would save no call, and anybody could fill the cache of all callers with such responses.
    if (reads.length === 0 || data === undefined || !operation || result?.errors) return;
    cache.set(key, { headers, data, reads, operation });
  }

  function finish(state: Partial<RequestState> & { readonly id: string }, response: HttpResponse): HttpResponse {
    const momentary = momentaryHeaders(state, settings.clock);
    const headers = withCommonHeaders({ ...response.headers, ...momentary }, settings.corsOrigins);
    return { ...response, headers: { ...headers, 'x-request-id': state.id } };
  }

  /** Something failed outside an operation, such as a file that could not be loaded. */
  function ofFault(fault: unknown, state: RequestState): HttpResponse {
    const error = maskError(fault);
    telemetry.end({ ...state, result: { errors: [error] } });
    const body = JSON.stringify({ errors: [shownError(finishedError(error))] });
    return finish({ id: state.id }, { status: 500, headers: JSON_HEADERS, body });
  }
}

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' };
