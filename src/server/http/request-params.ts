import type { GraphQLParams } from 'graphql-yoga';
import { parseLosslessJson } from '../../common/lossless-json.ts';
import type { CheckedOptions } from '../../settings/settings.ts';
import { badRequest } from '../errors.ts';
import type { HttpRequest } from './http-message.ts';
import { acceptedType, isJson } from './media-type.ts';

/**
 * Reads what a request asks for. Bodies must be JSON: before a page of another origin can send JSON, its browser sends a preflight.
 *
 * @throws GraphQLError BAD_REQUEST where it is no GraphQL request.
 */
export function readParams(request: HttpRequest, { petApiKey }: Pick<CheckedOptions, 'petApiKey'>): GraphQLParams {
  const { method, headers } = request;
  const { accept, 'content-type': contentType } = headers;
  if (!acceptedType(accept)) throw badRequest(`${NOT_ACCEPTABLE}, got ${shown(accept)}.`, 406);
  if (method === 'GET' && petApiKey !== undefined) throw badRequest(ONLY_POST, 405, { allow: 'POST' });
  if (method === 'GET') return readQuery(request);
  if (method !== 'POST') throw badRequest(NO_METHOD, 405, { allow: 'GET, HEAD, POST' });
  if (!isJson(contentType ?? '')) throw badRequest(`${ONLY_JSON}, got ${shown(contentType)}.`, 415);
  return readBody(request);
}

const NOT_ACCEPTABLE = 'Expected an Accept header that allows application/json or application/graphql-response+json';
const ONLY_JSON = 'Expected a body with the content type application/json';
const NOT_JSON = 'The body is not valid JSON.';
const NO_METHOD = 'Expected a POST, or a GET of a query.';
const ONLY_POST = 'With a server-side API key, expected a POST with the content type application/json.';

/** A header as it came, for a message. */
function shown(header: string | undefined): string {
  return header ? JSON.stringify(header.slice(0, 100)) : 'none';
}

function readBody({ body }: HttpRequest): GraphQLParams {
  if (typeof body !== 'string') throw body;
  return checkedParams(parseJson(body, NOT_JSON));
}

function readQuery({ url }: HttpRequest): GraphQLParams {
  const { searchParams } = new URL(url, 'http://localhost');
  const json = (name: string) =>
    parseJson(searchParams.get(name) || 'null', 'The variables and extensions of a GET request: expected JSON.');
  return checkedParams({
    query: searchParams.get('query'),
    documentId: searchParams.get('documentId'),
    operationName: searchParams.get('operationName'),
    variables: json('variables'),
    extensions: json('extensions'),
  });
}

function parseJson(text: string, problem: string): unknown {
  try {
    // What JSON.parse rounds would be another id.
    return parseLosslessJson(text);
  } catch {
    throw badRequest(problem, 400);
  }
}

/** Checks the form of a request, as GraphQL over HTTP has it: Yoga gives it other statuses. */
function checkedParams(params: unknown): GraphQLParams {
  if (Array.isArray(params)) throw badRequest('The body must be one operation, got a list.', 422);
  if (!isObject(params)) throw badRequest('The body must be an object with a query.', 422);
  // Unknown members are ignored (GraphQL over HTTP, "Request Parameters").
  const { query, documentId, operationName, variables, extensions } = params;
  return {
    query: checkedText('query', query),
    documentId: checkedText('documentId', documentId),
    operationName: checkedText('operationName', operationName),
    variables: checkedObject('variables', variables),
    extensions: checkedObject('extensions', extensions),
  } as GraphQLParams;
}

function checkedText(name: string, value: unknown): string | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value !== 'string') throw badRequest(`${name} must be a string.`, 422);
  return value;
}

function checkedObject(name: string, value: unknown): object | undefined {
  if (isAbsent(value)) return undefined;
  if (!isObject(value)) throw badRequest(`${name} must be an object.`, 422);
  return value;
}

/** An empty text is absent too: by GET, GraphQL over HTTP has it so, and many clients send one by POST. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
