import { randomUUID } from 'node:crypto';
import { getOperationAST } from 'graphql';
import type { DocumentNode, ExecutionArgs, ExecutionResult } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import type { Callers } from '../caller/callers.ts';
import type { Events } from '../events.ts';
import type { ResolverContext } from '../schema/builder.ts';
import { schema } from '../schema/schema.ts';
import type { CheckedOptions } from '../settings.ts';
import type { Spans } from '../tracing.ts';
import { createErrorFinisher } from './errors.ts';
import { graphqlResponse } from './http/graphql-response.ts';
import type { Health } from './http/health.ts';
import type { HttpRequest, HttpResponse, Respond } from './http/http-message.ts';
import { createPages } from './http/pages.ts';
import { createParamsReader } from './http/request-params.ts';
import { cacheKey, createResponseCache } from './http/response-cache.ts';
import { createCommonHeaders } from './http/response-headers.ts';
import { createDocumentCaches, parseWithin, validationErrors } from './limits/document-limits.ts';
import { executeWithin } from './limits/execution.ts';
import { createRequestContext } from './request-context.ts';
import type { RequestContext } from './request-context.ts';
import { stateOf } from './request-state.ts';
import type { GatewayResult, RequestState, ServerContext } from './request-state.ts';
import { createTelemetry } from './telemetry.ts';

/** What the server is made of. */
interface ServerParts {
  readonly settings: CheckedOptions;
  readonly callers: Callers;
  readonly health: () => Health;
  readonly events: Events | undefined;
  readonly spans: Spans;
}

/** Clients choose the names of their operations. */
const MAX_NAME_LENGTH = 64;

/**
 * GraphQL over HTTP and in this process, under the same rules: at once from the response cache, or by Yoga.
 *
 * @throws TypeError that names the first trusted document that is invalid.
 */
export function createGraphqlServer({ settings, callers, health, events, spans }: ServerParts): Respond {
  const telemetry = createTelemetry(settings.log, events, spans);
  const createContext = createRequestContext(settings, callers);
  const readParams = createParamsReader(settings);
  const finishError = createErrorFinisher(settings.log);
  const withCommonHeaders = createCommonHeaders(settings);
  const pageOf = createPages(settings, health);
  const cache = createResponseCache();
  const plugin: Plugin<ServerContext> = {
    onRequestParse({ serverContext, setRequestParser }) {
      setRequestParser(() => readParams(stateOf(serverContext).request));
    },
    onParse({ setParseFn }) {
      setParseFn((text: string) => parseWithin(text, settings));
      return ({ result, context }) => {
        if (result === null || result instanceof Error) return;
        const operation = getOperationAST(result, (context as unknown as YogaInitialContext).params.operationName);
        const name = operation?.name?.value.slice(0, MAX_NAME_LENGTH);
        if (operation) stateOf(context).operation = { type: operation.operation, name };
      };
    },
    onValidate({ setValidationFn }) {
      setValidationFn((_schema: unknown, document: DocumentNode) => validationErrors(document, settings));
    },
    onExecute({ args, setExecuteFn }) {
      const state = stateOf(args.contextValue);
      setExecuteFn((given: ExecutionArgs) => executeWithin(given, state, settings));
    },
    onResultProcess({ result, setResult, serverContext }) {
      stateOf(serverContext).result = result as GatewayResult;
      // graphqlResponse() writes the body.
      setResult({ stringify: () => '' } as ExecutionResult);
    },
  };
  const yoga = createYoga<ServerContext, ResolverContext>({
    schema,
    graphqlEndpoint: settings.endpoint,
    async context({ state }) {
      state.context = await createContext(state.request, state.span.trace);
      return state.context;
    },
    parserAndValidationCache: createDocumentCaches(),
    plugins: [plugin],
    // petql's own rules, pages and log stand in for these.
    maskedErrors: false,
    maxRequestBodySize: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    logging: false,
    multipart: false,
    // Yoga answers any address that ends in this; a space is in none.
    healthCheckEndpoint: ' ',
  });
  const { Request: YogaRequest } = yoga.fetchAPI;

  return async (request) => {
    let state: RequestState | undefined;
    try {
      const key = cacheKey(request, settings);
      state = key === undefined ? undefined : fromCache(request, key);
      if (state) return respond(state);
      const page = await pageOf(request);
      if (page) return withCommonHeaders(request, page, randomUUID());
      state = telemetry.begin(request);
      const { method, url } = request;
      await yoga.handleRequest(new YogaRequest(`http://localhost${url}`, { method }), { state });
      if (key !== undefined) store(key, state);
    } catch (fault) {
      state ??= telemetry.begin(request);
      state.result = { errors: [fault] };
    }
    return respond(state);
  };

  /** Undefined where a read behind the result has another result now. */
  function fromCache(request: HttpRequest, key: string): RequestState | undefined {
    const cached = cache.get(key);
    const context = cached && (createContext(request, undefined) as RequestContext);
    if (!context?.repeat(cached?.reads ?? [])) return undefined;
    context.countSaved();
    const result = { extensions: { petql: context.usage() } };
    return { ...telemetry.begin(request), context, data: cached?.data ?? '', operation: cached?.operation, result };
  }

  function store(key: string, { context, data, result, operation }: RequestState): void {
    const reads = context?.cachedReads();
    if (reads && data !== undefined && !result?.errors) cache.set(key, { data, reads, operation });
  }

  function respond(state: RequestState): HttpResponse {
    const errors = (state.result?.errors ?? []).map(finishError);
    telemetry.end(state, errors[0]?.shown.extensions.code);
    return withCommonHeaders(state.request, graphqlResponse(state, errors), state.id);
  }
}
