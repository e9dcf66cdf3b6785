import { GraphQLError, execute, parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Plugin, YogaServerInstance } from 'graphql-yoga';
import type { Log } from '../log.ts';
import { schema } from '../schema/schema.ts';
import { answerHeaders, answerStatus } from './answer-headers.ts';
import { createDocumentCache } from './document-cache.ts';
import { DOCUMENT_LIMITS, LARGEST_BODY_BYTES, documentLimitError, limitExceeded } from './document-limits.ts';
import { createErrorMask, graphqlError, finishedError } from './error-answers.ts';
import { inexactVariableError } from './exact-variables.ts';
import { createGraphiql } from './graphiql/graphiql.ts';
import { operationNeedsKey } from './operation-needs-key.ts';
import { createRequestContext } from './request-context.ts';
import type { RequestContext, RequestContextOptions } from './request-context.ts';

export interface GraphqlServerOptions extends RequestContextOptions {
  readonly log: Log;
  /** The key that GraphiQL starts with. */
  readonly graphiqlKey?: string;
}

export type GraphqlServer = YogaServerInstance<object, RequestContext>;

const ENDPOINT = '/graphql';

/** GraphQL over HTTP, GraphiQL and health, as one fetch handler that Node's http server can use too. */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  const requestContext = createRequestContext(options);
  return createYoga<object, RequestContext>({
    schema,
    graphqlEndpoint: ENDPOINT,
    context: ({ request }) => requestContext(request),
    maskedErrors: { maskError: createErrorMask(options.log) },
    parserAndValidationCache: { documentCache: createDocumentCache(), errorCache: createDocumentCache() },
    maxRequestBodySize: LARGEST_BODY_BYTES,
    plugins: [usePages(options.graphiqlKey), useJsonRequests(), useLimits(), useExecution(), useAnswerHeaders()],
    // petql's own pages, log and rules stand in for these.
    graphiql: false,
    landingPage: false,
    logging: false,
    multipart: false,
    cors: false,
    // Yoga answers any address that ends in this; a space is in none.
    healthCheckEndpoint: ' ',
  });
}

type ServerPlugin = Plugin<object, object, RequestContext>;

/** What is no GraphQL: GraphiQL, its files, the health checks, and the way to GraphiQL from the bare address. */
function usePages(graphiqlKey: string | undefined): ServerPlugin {
  const graphiql = createGraphiql({
    endpoint: ENDPOINT,
    ...(graphiqlKey === undefined ? {} : { apiKey: graphiqlKey }),
  });
  return {
    async onRequest({ request, url, endResponse }) {
      const path = url.pathname;
      const page = await graphiql.answer(request, path);
      if (page) endResponse(page);
      else if (path === '/health/live' || path === '/health/ready') endResponse(Response.json({ status: 'ok' }));
      else if (path === '/') endResponse(new Response(null, { status: 302, headers: { location: ENDPOINT } }));
      else if (path !== ENDPOINT) {
        endResponse(new Response(`There is nothing at this path; GraphQL is at ${ENDPOINT}.\n`, { status: 404 }));
      }
    },
  };
}

/** Bodies are JSON, and nothing that a page of another origin can send without asking first. */
function useJsonRequests(): ServerPlugin {
  return {
    onParams({ params: { operationName } }) {
      if (!['string', 'undefined'].includes(typeof (operationName ?? undefined))) {
        throw badRequest(`operationName: expected a string, got ${JSON.stringify(operationName)}.`, 400);
      }
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

function useLimits(): ServerPlugin {
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
          throw error;
        }
      });
      return ({ result }) => {
        if (result === null || result instanceof Error) return;
        const error = documentLimitError(result);
        if (error) throw graphqlError(error);
      };
    },
  };
}

/** Runs an operation, once what can be refused before anything runs has been looked at. */
function useExecution(): ServerPlugin {
  return {
    onExecute({ args, setExecuteFn, setResultAndStopExecution }) {
      // The reference implementation, whose errors name the variable that they are about.
      setExecuteFn(execute);
      const { document, operationName, variableValues } = args;
      const { refusal } = args.contextValue as RequestContext;
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
      setResult({ ...result, extensions: { ...result.extensions, petql: usage(), http } });
    },
    onResultProcess({ result, setResult }) {
      if ('errors' in result && result.errors) setResult({ ...result, errors: result.errors.map(finishedError) });
    },
    onResponse({ response, setResponse }) {
      if (response.status === 406) return setResponse(notAcceptable());
      if (response.headers.has('cache-control')) return;
      // What has an age may be kept by whoever asked, and must be asked for again before it is used again.
      response.headers.set('cache-control', response.headers.has('age') ? 'private, no-cache' : 'private, no-store');
      response.headers.append('vary', 'Authorization');
    },
  };
}

function notAcceptable(): Response {
  const message = 'Expected an Accept header that allows application/json or application/graphql-response+json.';
  return Response.json({ errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }] }, { status: 406 });
}

/** What is no GraphQL request at all, under Yoga's code for that. */
function badRequest(message: string, status: number): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });
}
