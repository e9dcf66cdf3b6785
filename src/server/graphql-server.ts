import { GraphQLError, execute, getOperationAST, parse } from 'graphql';
import type { DocumentNode, ExecutionArgs, ExecutionResult } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import type { ServerKey } from '../gateway-options.ts';
import type { Log } from '../log.ts';
import { schema } from '../schema/schema.ts';
import { answerHeaders, answerStatus, storageHeaders } from './answer-headers.ts';
import { createDocumentCache } from './document-cache.ts';
import { DOCUMENT_LIMITS, LARGEST_BODY_BYTES, documentLimitError, limitExceeded } from './document-limits.ts';
import {
  badRequest,
  createErrorMask,
  finishedError,
  graphqlError,
  parseFailure,
  unknownOperation,
} from './error-answers.ts';
import { inexactVariableError } from './exact-variables.ts';
import { createExecute } from './execute.ts';
import { createFastPath } from './fast-path.ts';
import type { FastPath } from './fast-path.ts';
import { createGraphiql } from './graphiql/graphiql.ts';
import type { Execute } from './operation.ts';
import { operationNeedsKey } from './operation-needs-key.ts';
import { paramsError } from './params-error.ts';
import { createRequestContext } from './request-context.ts';
import type { RequestContext, RequestContextOptions } from './request-context.ts';
import { httpTerms } from './request-terms.ts';
import type { RequestTerms } from './request-terms.ts';

export interface GraphqlServerOptions extends RequestContextOptions {
  readonly log: Log;
  /** The path of GraphQL and GraphiQL. */
  readonly endpoint: string;
  /** See `TermsOptions`. */
  readonly serverKey?: ServerKey;
  readonly heedCacheControl: boolean;
  /** The key that GraphiQL starts with. */
  readonly graphiqlKey?: string;
}

export interface GraphqlServer {
  /** GraphQL over HTTP, GraphiQL and health. */
  fetch(request: Request): Promise<Response>;
  /** The same for the requests that there are most of, for Node's http server. */
  readonly fastPath: FastPath;
  readonly execute: Execute;
}

/** GraphQL for those who ask over HTTP and for those in the same process, under the same rules. */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  const { endpoint, serverKey, heedCacheControl, graphiqlKey } = options;
  const requestContext = createRequestContext(options);
  const maskError = createErrorMask(options.log);
  const yoga = createYoga<ServerContext, RequestContext>({
    schema,
    graphqlEndpoint: endpoint,
    context: async ({ request, terms }) =>
      requestContext(terms ?? (await httpTerms(request, { serverKey, heedCacheControl }))),
    maskedErrors: { maskError },
    parserAndValidationCache: { documentCache: createDocumentCache(), errorCache: createDocumentCache() },
    maxRequestBodySize: LARGEST_BODY_BYTES,
    plugins: [
      usePages(endpoint, graphiqlKey),
      useJsonRequests(),
      useDocumentChecks(),
      useExecution(),
      useAnswerHeaders(),
    ],
    // Frameworks know a Response by its class.
    fetchAPI: { Request, Response, Headers },
    // petql's own pages, log and rules stand in for these.
    graphiql: false,
    landingPage: false,
    logging: false,
    multipart: false,
    cors: false,
    // Yoga answers any address that ends in this; a space is in none.
    healthCheckEndpoint: ' ',
  });
  const fastPath = createFastPath({
    endpoint,
    schema,
    serverKey,
    heedCacheControl,
    requestContext,
    maskError,
    checkedDocument(params) {
      const { parse: parseChecked, validate } = yoga.getEnveloped({ params });
      const document = parseChecked(params.query) as DocumentNode;
      const [error] = validate(schema, document);
      if (error) throw error as GraphQLError;
      return document;
    },
  });
  return {
    fastPath,
    // What else a framework hands over with the request is not for Yoga, which would take it for context.
    fetch: async (request) => yoga.handleRequest(request, {}),
    execute: createExecute({ envelop: (context) => yoga.getEnveloped(context), maskError, serverKey }),
  };
}

/** What an operation that did not come over HTTP brings instead of a request. */
interface ServerContext extends Record<string, unknown> {
  readonly terms?: RequestTerms;
}

type ServerPlugin = Plugin<object, object, RequestContext>;

/** What is no GraphQL: GraphiQL, its files, the health checks, and the way to GraphiQL from the bare address. */
function usePages(endpoint: string, graphiqlKey: string | undefined): ServerPlugin {
  const graphiql = createGraphiql({ endpoint, ...(graphiqlKey === undefined ? {} : { apiKey: graphiqlKey }) });
  return {
    async onRequest({ request, url, endResponse }) {
      const path = url.pathname;
      const page = await graphiql.answer(request, path);
      if (page) endResponse(page);
      else if (path === '/health/live' || path === '/health/ready') endResponse(Response.json({ status: 'ok' }));
      else if (path === '/') endResponse(new Response(null, { status: 302, headers: { location: endpoint } }));
      else if (path !== endpoint) {
        endResponse(new Response(`There is nothing at this path; GraphQL is at ${endpoint}.\n`, { status: 404 }));
      }
    },
  };
}

/** Bodies are JSON, and nothing that a page of another origin can send without asking first. */
function useJsonRequests(): ServerPlugin {
  return {
    onParams({ params }) {
      const error = paramsError(params);
      if (error) throw error;
    },
    onRequestParse({ request, requestParser, setRequestParser }) {
      if (
        request.method === 'POST' &&
        !/^application\/(?:graphql\+)?json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? '')
      ) {
        throw badRequest('Expected a body with the content type application/json.', 415);
      }
      if (request.method !== 'GET' || !requestParser) return;
      setRequestParser((get) => {
        try {
          return requestParser(get);
        } catch {
          throw badRequest('The variables and extensions of a GET request: expected JSON.', 400);
        }
      });
    },
  };
}

/** What stands between a document's text and its validation. */
function useDocumentChecks(): ServerPlugin {
  return {
    onParse({ setParseFn }) {
      setParseFn((source: string, options: object) => {
        try {
          return parse(source, { ...options, maxTokens: DOCUMENT_LIMITS.tokens });
        } catch (error) {
          // graphql-js has no other sign of it.
          if (error instanceof GraphQLError && error.message.includes('tokens. Parsing aborted')) {
            throw graphqlError(limitExceeded('tokens'));
          }
          throw error instanceof GraphQLError ? parseFailure(error) : error;
        }
      });
      return ({ result, context }) => {
        if (result === null || result instanceof Error) return;
        const error = documentLimitError(result);
        if (error) throw graphqlError(error);
        if (!getOperationAST(result, (context as YogaInitialContext).params.operationName)) throw unknownOperation();
      };
    },
  };
}

/** Runs an operation and says what it cost, once what can be refused before anything runs has been looked at. */
function useExecution(): ServerPlugin {
  return {
    onExecute({ args, setExecuteFn, setResultAndStopExecution }) {
      // The reference implementation, whose errors name the variable that they are about.
      setExecuteFn((all: ExecutionArgs) => {
        const result = execute(all);
        return result instanceof Promise ? result.then(withUsage) : withUsage(result);
      });
      const { document, operationName, variableValues } = args;
      const { refusal, usage } = args.contextValue as RequestContext;
      const withUsage = (result: ExecutionResult) => ({
        ...result,
        extensions: { ...result.extensions, petql: usage() },
      });
      const error =
        inexactVariableError(variableValues) ??
        (refusal && operationNeedsKey(document, operationName ?? undefined) ? refusal : undefined);
      if (error) setResultAndStopExecution({ errors: [graphqlError(error)] });
    },
  };
}

function useAnswerHeaders(): ServerPlugin {
  return {
    onExecutionResult({ result, setResult, context }) {
      if (!result || Array.isArray(result) || !('data' in result)) return;
      const { latestBudget, usage } = context as unknown as RequestContext;
      const headers = answerHeaders(result, latestBudget(), usage());
      const status = answerStatus(result);
      const http = status === undefined ? { headers } : { headers, status };
      setResult({ ...result, extensions: { ...result.extensions, http } });
    },
    onResultProcess({ result, setResult }) {
      if ('errors' in result && result.errors) setResult({ ...result, errors: result.errors.map(finishedError) });
    },
    onResponse({ response, setResponse }) {
      if (response.status === 406) return setResponse(notAcceptable());
      if (response.headers.has('cache-control')) return;
      const { vary, ...others } = storageHeaders(response.headers.has('age'));
      response.headers.set('cache-control', others['cache-control']);
      response.headers.append('vary', vary);
    },
  };
}

function notAcceptable(): Response {
  const message = 'Expected an Accept header that allows application/json or application/graphql-response+json.';
  return Response.json({ errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }] }, { status: 406 });
}
