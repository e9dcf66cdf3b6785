import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { PetqlError } from '../../errors.ts';
import type { CheckedOptions } from '../../settings/settings.ts';
import { badRequest, graphqlError } from '../errors.ts';
import { stateOf } from '../request-state.ts';
import type { ServerContext } from '../request-state.ts';
import type { HttpRequest } from '../http/http-message.ts';
import { acceptedType } from '../http/media-type.ts';

/** Checks GraphQL requests. Bodies must be JSON: before a page of another origin can send JSON, its browser sends a preflight. */
export function useHttpRules({ petApiKey }: CheckedOptions): Plugin<ServerContext> {
  return {
    onRequestParse({ serverContext, setRequestParser }) {
      const { request } = stateOf(serverContext);
      const { method, headers } = request;
      // Yoga checks Accept only after the execution.
      if (!acceptedType(headers['accept'])) throw badRequest(NOT_ACCEPTABLE, 406);
      if (method !== 'POST' && method !== 'GET') return;
      if (method === 'GET' && petApiKey !== undefined) throw badRequest(ONLY_POST, 405, { allow: 'POST' });
      if (method === 'POST' && !isJson(headers['content-type'] ?? '')) throw badRequest(ONLY_JSON, 415);
      setRequestParser(() => (method === 'POST' ? readBody(request) : readQuery(request)));
    },
  };
}

const NOT_ACCEPTABLE = 'Expected an Accept header that allows application/json or application/graphql-response+json.';
const ONLY_JSON = 'Expected a body with the content type application/json, in UTF-8.';
const NOT_JSON = 'The body is not valid JSON.';
const ONLY_POST = 'With a server-side API key, expected a POST with the content type application/json.';

const JSON_TYPE = /^application\/(?:graphql\+)?json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]*)/i;

function isJson(contentType: string): boolean {
  const [, charset = 'utf-8'] = CHARSET.exec(contentType) ?? [];
  return JSON_TYPE.test(contentType) && /^utf-?8$/i.test(charset);
}

function readBody({ body }: HttpRequest): GraphQLParams {
  if (typeof body !== 'string') throw body;
  return checkedParams(parseJson(body, NOT_JSON));
}

function readQuery({ url }: HttpRequest): GraphQLParams {
  const { searchParams } = new URL(url, 'http://localhost');
  const text = (name: string) => searchParams.get(name) || undefined;
  const json = (name: string) =>
    parseJson(text(name) ?? 'null', 'The variables and extensions of a GET request: expected JSON.') ?? undefined;
  return checkedParams({
    query: text('query'),
    operationName: text('operationName'),
    variables: json('variables'),
    extensions: json('extensions'),
    documentId: searchParams.get('documentId') ?? undefined,
  });
}

function parseJson(text: string, problem: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(problem, 400);
  }
}

/** Checks what Yoga does not check, or reports as an error of the server. */
function checkedParams(params: unknown): GraphQLParams {
  if (Array.isArray(params)) throw badRequest('The body must be one operation, got a list.', 400);
  if (typeof params !== 'object' || params === null) throw badRequest('The body must be an object with a query.', 400);
  // Unknown members are ignored (GraphQL over HTTP, "Request Parameters").
  const { query, documentId, operationName, variables, extensions } = params as Record<string, unknown>;
  if (typeof (operationName ?? '') !== 'string') throw badRequest('operationName must be a string.', 400);
  const rounded = roundedVariable(variables, []);
  if (!rounded) return { query, documentId, operationName, variables, extensions } as GraphQLParams;
  const problem = 'is a number that JSON clients cannot hold exactly; send ids as strings of digits.';
  throw graphqlError(
    new PetqlError('BAD_USER_INPUT', `Variable "$${rounded.join('.')}" ${problem}`, { httpStatus: 400 }),
  );
}

/** An input has fields, and a list items: GraphQL rejects deeper values as ill-typed. */
const MAX_VARIABLE_DEPTH = 3;

/** Returns where an integer beyond 2^53 is: clients in JavaScript have rounded it, and it would name another pet. */
function roundedVariable(value: unknown, path: readonly string[]): readonly string[] | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? path : undefined;
  if (typeof value !== 'object' || value === null || path.length === MAX_VARIABLE_DEPTH) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const found = roundedVariable(item, [...path, key]);
    if (found) return found;
  }
  return undefined;
}
