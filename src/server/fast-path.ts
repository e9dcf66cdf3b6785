import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Kind, getOperationAST } from 'graphql';
import type { DocumentNode, ExecutionResult, GraphQLError, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import { readTraceContext } from '../trace-context.ts';
import { answerHeaders, answerStatus, storageHeaders } from './answer-headers.ts';
import { answerType } from './answer-type.ts';
import type { CallLimit } from './call-limit.ts';
import { compileOperation } from './compiled-operation.ts';
import type { CompiledOperation, CompiledResult, OperationRun } from './compiled-operation.ts';
import type { Cors } from './cors.ts';
import { createDocumentCache } from './document-cache.ts';
import { plainError } from './error-answers.ts';
import { inexactVariableError } from './exact-variables.ts';
import type { OperationReports, RunningOperation } from './operation-reports.ts';
import type { RequestContext } from './request-context.ts';
import { headerTerms } from './request-terms.ts';
import type { RequestTerms, TermsHeaders, TermsOptions } from './request-terms.ts';
import { SECURITY_HEADERS } from './security-headers.ts';
import { createTextMemory } from './text-memory.ts';

/** An answer as it goes out. */
export interface FastAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: string;
}

/**
 * Answers the requests that there are most of, queries in JSON, with nothing between them and Node's http: no Request, no
 * Response and no tree of results. It answers exactly what the GraphQL server would, or undefined where the request is
 * one of the others, which are the server's.
 */
export type FastPath = (request: FastRequest) => FastAnswer | Promise<FastAnswer | undefined> | undefined;

export interface FastRequest {
  readonly incoming: Pick<IncomingMessage, 'headers' | 'method' | 'rawHeaders'>;
  /** With its query. */
  readonly path: string;
  readonly body: Buffer;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: () => AbortSignal;
}

export interface FastPathOptions extends Omit<TermsOptions, 'trace'> {
  readonly endpoint: string;
  readonly schema: GraphQLSchema;
  /** A document that was checked and is valid. @throws whatever is wrong with it. */
  checkedDocument(params: FastParams): DocumentNode;
  requestContext(terms: RequestTerms): RequestContext;
  maskError(error: unknown): GraphQLError;
  readonly reports: OperationReports;
  readonly cors: Cors;
  readonly callLimit: CallLimit;
  /** Whether no document runs but the trusted ones, which the server knows. */
  readonly requireTrusted: boolean;
}

/** A request's body. */
export interface FastParams {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** By operation name; under '' the only one of its document. */
type CompiledDocument = ReadonlyMap<string, CompiledOperation>;

export function createFastPath(options: FastPathOptions): FastPath {
  const { endpoint, requestContext, maskError, reports, cors, serverKey, heedCacheControl, requireTrusted } = options;
  // What finds the server's key takes a Request.
  if (requireTrusted || typeof serverKey === 'function') return () => undefined;
  const prepared = createPreparation(options);

  // Queries change nothing: one that fails as nobody foresaw is run again by the server, which knows what to say then.
  return (request) => {
    try {
      const answered = tryAnswer(request);
      return answered instanceof Promise ? answered.catch(() => undefined) : answered;
    } catch {
      return undefined;
    }
  };

  function tryAnswer({ incoming, path, body, signal }: FastRequest): FastAnswer | Promise<FastAnswer> | undefined {
    const { headers } = incoming;
    if (incoming.method !== 'POST' || path !== endpoint || headers['petql-dry-run'] !== undefined) return undefined;
    const type = answerType(headers.accept);
    if (!type || !isJson(headers['content-type']) || isDoubled(incoming.rawHeaders)) return undefined;
    const ready = prepared(body);
    if (!ready) return undefined;
    const { traceparent, tracestate, origin = null } = headers;
    let running: RunningOperation | undefined;
    const trace = () => running?.span.trace;
    const context = requestContext(headerTerms(termsHeaders(headers), { serverKey, heedCacheControl, signal, trace }));
    if (context.refusal) return undefined;
    // From here on it is answered here.
    running = reports.begin(readTraceContext(traceparent as string | undefined, tracestate as string | undefined));
    const asked: Asked = { ...ready, running, context, type, origin };
    try {
      const result = ready.run(context);
      return result instanceof Promise
        ? result.then((come) => answer(come, asked)).catch((fault: unknown) => givenUp(fault, asked))
        : answer(result, asked);
    } catch (fault) {
      return givenUp(fault, asked);
    }
  }

  function givenUp(fault: unknown, { running }: Asked): never {
    reports.givenUp(running);
    throw fault;
  }

  function answer({ data, errors }: CompiledResult, asked: Asked): FastAnswer {
    const { definition, running, context, type, origin } = asked;
    const usage = context.usage();
    const masked = errors.length > 0 ? errors.map(maskError) : NO_ERRORS;
    const result: ExecutionResult =
      masked.length > 0
        ? { data: JSON.parse(data) as NonNullable<ExecutionResult['data']>, errors: masked }
        : NOTHING_WRONG;
    const told = answerHeaders(result, context.latestBudget(), usage);
    const storage = storageHeaders(told['age'] !== undefined);
    const granted = cors.headers(origin);
    const headers = ['content-type', type, 'x-request-id', running.id, ...SECURITY_LIST];
    addHeaders(headers, told);
    addHeaders(headers, granted);
    const vary = granted['vary'] === undefined ? storage.vary : `${storage.vary}, ${granted['vary']}`;
    headers.push('cache-control', storage['cache-control'], 'vary', vary);
    const errorsText = masked.length > 0 ? `"errors":${JSON.stringify(masked.map(plainError))},` : '';
    const extensions = { petql: usage };
    const answered: FastAnswer = {
      status: answerStatus(result) ?? 200,
      headers,
      body: `{${errorsText}"data":${data},"extensions":${JSON.stringify(extensions)}}`,
    };
    // Last: whatever failed before this is run again by the server, and counted there.
    context.countSaved();
    reports.end(running, definition, { errors: masked, extensions });
    return answered;
  }
}

/** A request on its way to its answer. */
interface Asked extends Prepared {
  readonly running: RunningOperation;
  readonly context: RequestContext;
  /** The content type of the answer. */
  readonly type: string;
  /** The page's, where a browser sent it for one. */
  readonly origin: string | null;
}

const SECURITY_LIST: readonly string[] = Object.entries(SECURITY_HEADERS).flat();

const NO_ERRORS: readonly GraphQLError[] = [];
const NOTHING_WRONG: ExecutionResult = {};

/** But for `vary`, of which there may be more to say. */
function addHeaders(list: string[], headers: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(headers)) if (name !== 'vary') list.push(name, headers[name] as string);
}

function termsHeaders(headers: IncomingHttpHeaders): TermsHeaders {
  const { authorization, 'cache-control': cacheControl, prefer } = headers;
  // Node joins headers that it knows no rule for, so that these are texts.
  return {
    authorization,
    cacheControl,
    prefer: prefer as string | undefined,
    dryRun: undefined,
  };
}

/** What a request's body asks for, ready to be run. */
interface Prepared {
  readonly definition: OperationDefinitionNode;
  readonly run: OperationRun;
}

/** Longer bodies are read anew each time. */
const LONGEST_REMEMBERED = 16_384;

/** Made once for each body: most requests are the same to the byte as an earlier one, but for whose they are. */
function createPreparation(options: FastPathOptions): (body: Buffer) => Prepared | undefined {
  const compiled = createCompiler(options);
  const known = createDocumentCache<Prepared>();
  return (body) => {
    if (body.length > LONGEST_REMEMBERED) return prepare(body);
    // A character a byte: no two bodies have the same text.
    const text = body.toString('latin1');
    const remembered = known.get(text);
    if (remembered) return remembered;
    const prepared = prepare(body);
    if (prepared) known.set(text, prepared);
    return prepared;
  };

  function prepare(body: Buffer): Prepared | undefined {
    const params = readParams(body);
    if (!params || inexactVariableError(params.variables)) return undefined;
    const operation = compiled(params).get(params.operationName ?? '');
    const run = operation?.withVariables(params.variables);
    return operation && run && { definition: operation.definition, run };
  }
}

/** Made once for each document; one that is not for here has no operations in it. */
function createCompiler({
  checkedDocument,
  callLimit,
  schema,
}: FastPathOptions): (params: FastParams) => CompiledDocument {
  const documents = createDocumentCache<{ readonly operations: CompiledDocument; readonly tokens: number }>(
    ({ tokens }) => tokens,
  );
  const memory = createTextMemory();
  return (params) => {
    const known = documents.get(params.query);
    if (known) return known.operations;
    const operations = new Map<string, CompiledOperation>();
    let tokens = 0;
    try {
      const document = checkedDocument(params);
      const only = getOperationAST(document);
      for (const definition of document.definitions) {
        // What an operation of a costly document can cost depends on its variables, and is looked at before each run.
        if (definition.kind !== Kind.OPERATION_DEFINITION || callLimit.concerns(document)) continue;
        const operation = compileOperation(schema, document, definition, memory);
        if (!operation) continue;
        tokens = document.tokenCount ?? 0;
        if (definition.name) operations.set(definition.name.value, operation);
        if (definition === only) operations.set('', operation);
      }
    } catch {
      // The server says what is wrong with it.
    }
    documents.set(params.query, { operations, tokens });
    return operations;
  };
}

function readParams(body: Buffer): FastParams | undefined {
  let params: unknown;
  try {
    params = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(params)) return undefined;
  for (const name of Object.keys(params)) if (!KNOWN_PARAMS.has(name)) return undefined;
  const { query, operationName, variables, extensions } = params;
  const isPlain =
    typeof query === 'string' &&
    (isAbsent(operationName) || (typeof operationName === 'string' && operationName !== '')) &&
    (isAbsent(variables) || isObject(variables)) &&
    (isAbsent(extensions) || saysNothing(extensions));
  if (!isPlain) return undefined;
  return { query, operationName: operationName ?? undefined, variables: variables ?? NO_VARIABLES };
}

const KNOWN_PARAMS: ReadonlySet<string> = new Set(['query', 'operationName', 'variables', 'extensions']);
const NO_VARIABLES = {};

/** Whether it holds at most what Apollo Client says of itself. */
function saysNothing(extensions: unknown): boolean {
  return isObject(extensions) && Object.keys(extensions).every((key) => key === 'clientLibrary');
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isJson(type: string | undefined): boolean {
  return type === 'application/json' || /^application\/json; ?charset=utf-8$/i.test(type ?? '');
}

/** Node takes the first of two of these, and would hide that there is a second. */
function isDoubled(rawHeaders: readonly string[]): boolean {
  let keys = 0;
  let types = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index] ?? '';
    // "authorization", and "content-type" with its like.
    if (length === 13 && rawHeaders[index]?.toLowerCase() === 'authorization') keys += 1;
    else if (length === 12 && rawHeaders[index]?.toLowerCase() === 'content-type') types += 1;
  }
  return keys > 1 || types > 1;
}
