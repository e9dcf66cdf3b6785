import { randomUUID } from 'node:crypto';
import { OperationTypeNode, execute, getOperationAST } from 'graphql';
import type { DocumentNode, ExecutionArgs, ExecutionResult, GraphQLError, OperationDefinitionNode } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { GraphQLParams, Plugin, YogaInitialContext } from 'graphql-yoga';
import type { ServerKey } from '../gateway-options.ts';
import type { Limits } from '../limits.ts';
import { schema } from '../schema/schema.ts';
import { readTraceContext } from '../trace-context.ts';
import type { TraceContext } from '../trace-context.ts';
import { MOST_CHARACTERS, answerTooLong, jsonLength } from './answer-limit.ts';
import { answerStatus, setAnswerHeaders, storageHeaders } from './answer-headers.ts';
import { isAcceptable } from './answer-type.ts';
import { batchError } from './batch-error.ts';
import type { CallLimit } from './call-limit.ts';
import type { CheckedDocuments } from './checked-documents.ts';
import type { Cors } from './cors.ts';
import { createDocumentCache } from './document-cache.ts';
import { dryRun } from './dry-run.ts';
import { answeredError, badRequest, graphqlError, unknownOperation } from './error-answers.ts';
import { inexactVariableError } from './exact-variables.ts';
import { createExecute } from './execute.ts';
import { forgedRequestError } from './forged-request.ts';
import { createGraphiql } from './graphiql/graphiql.ts';
import { healthAnswer } from './health.ts';
import type { Health } from './health.ts';
import { readJsonBody } from './json-body.ts';
import type { Execute } from './operation.ts';
import { operationNeedsKey } from './operation-needs-key.ts';
import type { OperationReports, RunningOperation } from './operation-reports.ts';
import { paramsError } from './params-error.ts';
import type { CreateRequestContext, RequestContext } from './request-context.ts';
import { httpTerms } from './request-terms.ts';
import type { RequestTerms } from './request-terms.ts';
import { setResponseHeaders } from './response-headers.ts';
import { requestedDocument } from './trusted-documents.ts';
import type { DocumentParams, TrustedDocuments } from './trusted-documents.ts';
import { mostVariableErrors } from './variable-errors.ts';
import { variableLimitError } from './variable-limits.ts';

export interface GraphqlServerOptions {
  readonly requestContext: CreateRequestContext;
  maskError(error: unknown): GraphQLError;
  readonly reports: OperationReports;
  readonly cors: Cors;
  readonly callLimit: CallLimit;
  readonly checkedDocuments: CheckedDocuments;
  health(): Health;
  /** The path of GraphQL and GraphiQL. */
  readonly endpoint: string;
  /** See `TermsOptions`. */
  readonly serverKey?: ServerKey;
  readonly heedCacheControl: boolean;
  readonly limits: Limits;
  /** Whether browsers get GraphiQL, and the key that it starts with. */
  readonly graphiql: boolean;
  readonly graphiqlKey?: string;
  /** Whether the schema can be asked for. */
  readonly introspection: boolean;
  /** Documents that can be asked for by their ids, and whether no other one runs. */
  readonly trusted?: TrustedDocuments | undefined;
  readonly requireTrusted: boolean;
}

export interface GraphqlServer {
  /** GraphQL over HTTP, GraphiQL and health. */
  fetch(request: Request): Promise<Response>;
  readonly execute: Execute;
}

/** GraphQL for those who ask over HTTP and for those in the same process, under the same rules. */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  const { endpoint, serverKey, heedCacheControl, limits, introspection } = options;
  const { requestContext, maskError, reports, cors, callLimit } = options;
  const yoga = createYoga<ServerContext, RequestContext>({
    schema,
    graphqlEndpoint: endpoint,
    context: async ({ request, terms, running }) =>
      requestContext(
        terms ?? (await httpTerms(request, { serverKey, heedCacheControl, trace: () => running?.span.trace })),
      ),
    maskedErrors: { maskError },
    parserAndValidationCache: {
      documentCache: createDocumentCache<DocumentNode>(({ tokenCount = 0 }) => tokenCount),
      errorCache: createDocumentCache(),
    },
    maxRequestBodySize: limits.maxBodyBytes,
    extraParamNames: ['documentId'],
    batching: { limit: Infinity },
    plugins: [
      usePages(options),
      useReports(reports),
      useGraphqlRequests(options),
      useDocumentChecks(options.checkedDocuments),
      useExecution(callLimit, { hideSuggestions: !introspection }),
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
  return {
    async fetch(request) {
      // What else a framework hands over with the request is not for Yoga, which would take it for context.
      const requestId = randomUUID();
      const response = cors.preflight(request) ?? (await yoga.handleRequest(request, { requestId }));
      response.headers.set('x-request-id', requestId);
      setResponseHeaders(response, cors.headers(request.headers.get('origin')));
      return response;
    },
    execute: createExecute({
      envelop: (context) => yoga.getEnveloped(context),
      maskError,
      reports,
      serverKey,
      limits,
    }),
  };
}

/** What an operation that did not come over HTTP brings instead of a request. */
interface ServerContext extends Record<string, unknown> {
  readonly terms?: RequestTerms;
  /** Of an HTTP request. */
  readonly requestId?: string;
  /** What is known of the operation on its way; a list of operations has one context for each. */
  running?: RunningOperation;
  operation?: OperationDefinitionNode;
  reported?: boolean;
  /** The contexts of the request's operations that were begun, in the order of their answers. */
  begun?: ServerContext[];
}

type ServerPlugin = Plugin<object, object, RequestContext>;

/** What is no GraphQL: GraphiQL, its files, the health checks, and the way to GraphiQL from the bare address. */
function usePages({ endpoint, graphiqlKey, health, ...options }: GraphqlServerOptions): ServerPlugin {
  const graphiql = options.graphiql
    ? createGraphiql({ endpoint, ...(graphiqlKey === undefined ? {} : { apiKey: graphiqlKey }) })
    : undefined;
  return {
    async onRequest({ request, url, endResponse }) {
      const path = url.pathname;
      const page = healthAnswer(path, health) ?? (await graphiql?.answer(request, path));
      if (page) endResponse(page);
      else if (path === '/' && graphiql)
        endResponse(new Response(null, { status: 302, headers: { location: endpoint } }));
      else if (path !== endpoint) {
        endResponse(new Response(`There is nothing at this path; GraphQL is at ${endpoint}.\n`, { status: 404 }));
      }
    },
  };
}

/** Tells of each operation, and of what did not get so far as to be one. */
function useReports(reports: OperationReports): ServerPlugin {
  return {
    onRequestParse({ serverContext }) {
      (serverContext as ServerContext).begun = [];
    },
    onParams({ request, context }) {
      const own = context as ServerContext;
      own.running = reports.begin(requestTrace(request), own.requestId);
      own.begun?.push(own);
    },
    onExecutionResult({ result, context }) {
      const own = context as ServerContext;
      if (!own.running) return;
      own.reported = true;
      reports.end(own.running, own.operation, result as ExecutionResult);
    },
    onResultProcess({ request, result, serverContext }) {
      const { begun = [], requestId } = serverContext as ServerContext;
      // Yoga turns what keeps an operation from running into its answer without telling of a result.
      for (const [index, one] of [result as ExecutionResult | ExecutionResult[]].flat().entries()) {
        const { running, reported } = begun[index] ?? {};
        if (reported || !('errors' in one)) continue;
        reports.end(running ?? reports.begin(requestTrace(request), requestId), undefined, one);
      }
    },
  };
}

function requestTrace({ headers }: Request): TraceContext | undefined {
  return readTraceContext(headers.get('traceparent'), headers.get('tracestate'));
}

/** Bodies are JSON, and nothing that a page of another origin can send without asking first. */
function useGraphqlRequests({ limits, serverKey, trusted, requireTrusted }: GraphqlServerOptions): ServerPlugin {
  return {
    onParams({ params, setParams }) {
      const error = paramsError(params);
      if (error) throw error;
      const tooMany = variableLimitError(params.variables, limits);
      if (tooMany) throw graphqlError(tooMany);
      const query = requestedDocument(params as DocumentParams, trusted, requireTrusted);
      if (query !== undefined && query !== params.query) setParams({ ...params, query });
    },
    onRequestParse({ request, url, requestParser, setRequestParser }) {
      if (
        request.method === 'POST' &&
        !/^application\/(?:graphql\+)?json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? '')
      ) {
        throw badRequest('Expected a body with the content type application/json.', 415);
      }
      const coding = request.headers.get('content-encoding');
      if (request.method === 'POST' && coding && coding.toLowerCase() !== 'identity') {
        throw badRequest('Expected a body as it is, without a Content-Encoding.', 415);
      }
      if (request.method === 'POST') setRequestParser(readJsonBody);
      if (!isAcceptable(request.headers.get('accept'))) throw badRequest(NOT_ACCEPTABLE, 406);
      const forged = serverKey !== undefined ? forgedRequestError(request) : undefined;
      if (forged) throw forged;
      if (request.method === 'GET' && requestParser) {
        setRequestParser((get) => {
          try {
            const documentId = url.searchParams.get('documentId') ?? undefined;
            const params = requestParser(get) as GraphQLParams;
            return documentId === undefined ? params : { ...params, documentId };
          } catch {
            throw badRequest('The variables and extensions of a GET request: expected JSON.', 400);
          }
        });
      }
      return {
        onRequestParseDone({ requestParserResult }) {
          const error = Array.isArray(requestParserResult) && batchError(requestParserResult.length, limits.maxBatch);
          if (error) throw error;
        },
      };
    },
  };
}

/** What stands between a document's text and its run. */
function useDocumentChecks({ parse, errors }: CheckedDocuments): ServerPlugin {
  return {
    onParse({ setParseFn }) {
      setParseFn(parse);
      return ({ result, context }) => {
        if (result === null || result instanceof Error) return;
        const operation = getOperationAST(result, (context as YogaInitialContext).params.operationName);
        if (!operation) throw unknownOperation();
        (context as ServerContext).operation = operation;
      };
    },
    onValidate({ setValidationFn }) {
      setValidationFn((_schema: unknown, document: DocumentNode) => errors(document));
    },
  };
}

/** Runs an operation and says what it cost, once what can be refused before anything runs has been looked at. */
function useExecution(limit: CallLimit, { hideSuggestions }: { hideSuggestions: boolean }): ServerPlugin {
  return {
    onExecute({ args, setExecuteFn, setResultAndStopExecution }) {
      // The reference implementation, whose errors name the variable that they are about.
      setExecuteFn((all: ExecutionArgs) => {
        const run = { ...all, hideSuggestions, options: { maxCoercionErrors: mostVariableErrors(variableValues) } };
        if (context.dryRun) return dryRun(run, context, limit);
        if (!limit.concerns(document)) return withUsageOf(run);
        return limit
          .admit(run, context)
          .then((admission) => ('refused' in admission ? admission.refused : withUsageOf(run)));
      });
      const { document, operationName, variableValues } = args;
      const context = args.contextValue as RequestContext;
      const { refusal, usage, countSaved } = context;
      const withUsageOf = (run: ExecutionArgs) => {
        const result = execute(run);
        return result instanceof Promise ? result.then(withUsage) : withUsage(result);
      };
      const withUsage = (result: ExecutionResult) => {
        const petql = usage();
        countSaved();
        // What a mutation has done is told, however long it is.
        const isTooLong = isQuery() && jsonLength(result.data ?? null, MOST_CHARACTERS) > MOST_CHARACTERS;
        const shown = isTooLong ? { errors: [answerTooLong()], data: null } : result;
        return { ...shown, extensions: { ...result.extensions, petql } };
      };
      const isQuery = () => getOperationAST(document, operationName)?.operation === OperationTypeNode.QUERY;
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
      const headers: Record<string, string> = {};
      const set = (name: string, value: string) => (headers[name] = value);
      setAnswerHeaders(set, result, { budget: latestBudget(), usage: usage() });
      const status = answerStatus(result);
      const http = status === undefined ? { headers } : { headers, status };
      setResult({ ...result, extensions: { ...result.extensions, http } });
    },
    onResultProcess({ result, setResult }) {
      if (Array.isArray(result)) setResult(result.map((one) => withErrors(one)));
      else setResult(withErrors(result as ExecutionResult));
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

function withErrors(result: ExecutionResult): ExecutionResult {
  return result.errors ? { ...result, errors: result.errors.map(answeredError) as GraphQLError[] } : result;
}

const NOT_ACCEPTABLE = 'Expected an Accept header that allows application/json or application/graphql-response+json.';

/** In JSON all the same, since there is nothing that could be expected instead. */
function notAcceptable(): Response {
  const error = { message: NOT_ACCEPTABLE, extensions: { code: 'BAD_USER_INPUT' } };
  return Response.json({ errors: [error] }, { status: 406 });
}
