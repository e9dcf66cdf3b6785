import type { IncomingMessage } from 'node:http';
import { Kind, getOperationAST } from 'graphql';
import type { DocumentNode, ExecutionResult, GraphQLError, GraphQLSchema } from 'graphql';
import { answerHeaders, answerStatus, storageHeaders } from './answer-headers.ts';
import { answerType } from './answer-type.ts';
import { compileOperation } from './compiled-operation.ts';
import type { CompiledOperation, CompiledResult } from './compiled-operation.ts';
import { createDocumentCache } from './document-cache.ts';
import { plainError } from './error-answers.ts';
import { inexactVariableError } from './exact-variables.ts';
import type { RequestContext } from './request-context.ts';
import { headerTerms } from './request-terms.ts';
import type { RequestTerms, TermsOptions } from './request-terms.ts';
import { createTextMemory } from './text-memory.ts';

/** An answer as it goes out. */
export interface FastAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
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

export interface FastPathOptions extends TermsOptions {
  readonly endpoint: string;
  readonly schema: GraphQLSchema;
  /** A document that was checked and is valid. @throws whatever is wrong with it. */
  checkedDocument(params: FastParams): DocumentNode;
  requestContext(terms: RequestTerms): RequestContext;
  maskError(error: unknown): GraphQLError;
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
  const { endpoint, requestContext, maskError, serverKey } = options;
  const compiled = createCompiler(options);

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
    // What finds the server's key takes a Request.
    if (incoming.method !== 'POST' || path !== endpoint || typeof serverKey === 'function') return undefined;
    const type = answerType(headers.accept);
    if (!type || !isJson(headers['content-type']) || isDoubled(incoming.rawHeaders)) return undefined;
    const params = readParams(body);
    if (!params || inexactVariableError(params.variables)) return undefined;
    const operation = compiled(params).get(params.operationName ?? '');
    if (!operation) return undefined;
    const { authorization, 'cache-control': cacheControl, prefer } = headers;
    const terms = headerTerms(
      { authorization, cacheControl, prefer: prefer as string | undefined },
      { ...options, signal },
    );
    const context = requestContext(terms);
    if (context.refusal) return undefined;
    const result = operation.run(context, params.variables);
    return result instanceof Promise
      ? result.then((come) => answer(come, context, type))
      : result && answer(result, context, type);
  }

  function answer({ data, errors }: CompiledResult, context: RequestContext, type: string): FastAnswer {
    const usage = context.usage();
    const masked = errors.map(maskError);
    const result =
      masked.length > 0 ? { data: JSON.parse(data) as ExecutionResult['data'], errors: masked } : NO_ERRORS;
    const told = answerHeaders(result as ExecutionResult, context.latestBudget(), usage);
    const headers = ['content-type', type];
    addHeaders(headers, told);
    addHeaders(headers, storageHeaders('age' in told));
    const errorsText = masked.length > 0 ? `"errors":${JSON.stringify(masked.map(plainError))},` : '';
    return {
      status: answerStatus(result as ExecutionResult) ?? 200,
      headers,
      body: `{${errorsText}"data":${data},"extensions":${JSON.stringify({ petql: usage })}}`,
    };
  }
}

const NO_ERRORS: ExecutionResult = {};

function addHeaders(list: string[], headers: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(headers)) list.push(name, headers[name] as string);
}

/** Made once for each document; one that is not for here has no operations in it. */
function createCompiler({ checkedDocument, schema }: FastPathOptions): (params: FastParams) => CompiledDocument {
  const documents = createDocumentCache<CompiledDocument>();
  const memory = createTextMemory();
  return (params) => {
    const known = documents.get(params.query);
    if (known) return known;
    const operations = new Map<string, CompiledOperation>();
    try {
      const document = checkedDocument(params);
      const only = getOperationAST(document);
      for (const definition of document.definitions) {
        if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
        const operation = compileOperation(schema, document, definition, memory);
        if (!operation) continue;
        if (definition.name) operations.set(definition.name.value, operation);
        if (definition === only) operations.set('', operation);
      }
    } catch {
      // The server says what is wrong with it.
    }
    documents.set(params.query, operations);
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
