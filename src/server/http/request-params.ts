import type { GraphQLParams } from 'graphql-yoga';
import { PetqlError } from '../../errors.ts';
import type { CheckedOptions } from '../../settings.ts';
import { malformed } from '../errors.ts';
import { limitExceeded } from '../limits/limit-exceeded.ts';
import { createTrustedDocuments } from '../trusted-documents.ts';
import type { HttpRequest } from './http-message.ts';

/**
 * Returns a function that reads the parameters of a request for GraphQL, which Yoga checks further. Bodies are JSON, which no
 * page of another origin can send without asking first.
 */
export function createParamsReader(settings: CheckedOptions) {
  const { maxBodyBytes, petApiKey } = settings;
  const textOf = createTrustedDocuments(settings);
  return (request: HttpRequest): GraphQLParams => {
    const { method, headers, body } = request;
    if (!acceptedType(headers['accept'])) throw malformed(NOT_ACCEPTABLE, 406);
    if (method === 'GET' && petApiKey !== undefined) throw malformed(ONLY_POST, 405, { allow: 'POST' });
    if (method === 'POST' && !JSON_TYPE.test(headers['content-type'] ?? '')) throw malformed(ONLY_JSON, 415);
    if (body === undefined) throw limitExceeded('bodyBytes', maxBodyBytes);
    const params = method === 'POST' ? parseJson(body, NO_JSON) : readQuery(request.url);
    if (typeof params !== 'object' || params === null || Array.isArray(params)) throw malformed(NO_OBJECT);
    const { query, documentId, operationName, variables, extensions, ...unknown } = params as Params;
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw malformed(`Unexpected parameter ${JSON.stringify(name)} in the request body.`);
    if (typeof (operationName ?? '') !== 'string') throw malformed('operationName must be a string.');
    checkNumbers(variables, []);
    const text = textOf({ query, documentId, extensions }, request.inProcess !== undefined);
    return { query: text, operationName: operationName || undefined, variables, extensions } as GraphQLParams;
  };
}

/** As they were sent. */
export type Params = Readonly<
  Partial<Record<'documentId' | 'extensions' | 'operationName' | 'query' | 'variables', unknown>>
>;

const NOT_ACCEPTABLE = 'Expected an Accept header that allows application/json or application/graphql-response+json.';
const JSON_TYPE = /^application\/(?:graphql\+)?json\s*(?:;|$)/i;
const ONLY_JSON = 'Expected a body with the content type application/json.';
const ONLY_POST = 'With a server-side API key, expected a POST with the content type application/json.';
const NO_JSON = 'Expected a body in JSON without a Content-Encoding.';
const NO_JSON_IN_QUERY = 'The variables and extensions of a GET request: expected JSON.';
const NO_OBJECT = 'The body must be one object with a query.';

/** Returns the first type of an Accept header that petql can send. A weight of 0 excludes one (RFC 9110, section 12.4.2). */
export function acceptedType(accept: string | undefined): string | undefined {
  for (const part of (accept || '*/*').toLowerCase().split(',')) {
    const [type = '', ...params] = part.replaceAll(/\s/g, '').split(';');
    if (params.some((param) => /^(?:q=0(?:\.0*)?|charset=(?!utf-8$).*)$/.test(param))) continue;
    if (type === 'application/graphql-response+json') return type;
    if (/^(?:\*|application)\/(?:\*|json)$/.test(type)) return 'application/json';
  }
  return undefined;
}

function readQuery(url: string): Params {
  const { searchParams } = new URL(url, 'http://localhost');
  const { query, documentId, operationName, variables, extensions } = Object.fromEntries(searchParams);
  return {
    query,
    documentId,
    operationName,
    variables: parseJson(variables || 'null', NO_JSON_IN_QUERY),
    extensions: parseJson(extensions || 'null', NO_JSON_IN_QUERY),
  };
}

function parseJson(text: string, problem: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed(problem);
  }
}

/** An input has fields, and a list items: GraphQL rejects deeper values as ill-typed. */
const MAX_VARIABLE_DEPTH = 3;

/** Rejects integers beyond 2^53: clients in JavaScript have rounded them, and they would name another pet. */
function checkNumbers(value: unknown, path: readonly string[]): void {
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    const problem = 'is a number that JSON clients cannot hold exactly; send ids as strings of digits.';
    throw new PetqlError('BAD_USER_INPUT', `Variable "$${path.join('.')}" ${problem}`, { httpStatus: 400 });
  }
  if (typeof value !== 'object' || value === null || path.length === MAX_VARIABLE_DEPTH) return;
  for (const [key, item] of Object.entries(value)) checkNumbers(item, [...path, key]);
}
