import type { ExecutionResult } from 'graphql';
import { OperationTypeNode } from 'graphql';
import { finishedError, graphqlError, shownError } from '../errors.ts';
import type { ResultExtensions } from '../operation.ts';
import { limitExceeded } from '../plugins/limit-exceeded.ts';
import type { RequestState } from '../request-state.ts';
import type { HttpResponse } from './http-message.ts';
import { acceptedType } from './media-type.ts';
import { resultStatus } from './result-status.ts';

/** Max bytes of the data and errors of a query. Aliases can show one list a hundred times. */
const MAX_RESULT_BYTES = 4_194_304;

/** Returns the response for a result, with its status, error codes and JSON, and notes the result in the state. */
export function responseOf(given: ExecutionResult, state: RequestState): HttpResponse {
  // What a mutation has done is shown, however long it is.
  const maxBytes = state.operation?.type === OperationTypeNode.MUTATION ? Infinity : MAX_RESULT_BYTES;
  const { result, data, body } = writeResult(finishedResult(given), state.usage, maxBytes);
  state.result = result;
  state.data = data;

  const type = acceptedType(state.request.headers['accept']) ?? 'application/json';
  const status = isNotCached(result) ? 504 : resultStatus(result, type);
  const headers = Object.assign({}, ...(result.errors ?? []).map(({ extensions }) => extensions.http?.headers));
  return { status, headers: { 'content-type': `${type}; charset=utf-8`, ...headers }, body };
}

function finishedResult({ data, errors }: ExecutionResult): ExecutionResult {
  const finished = errors && { errors: errors.map(finishedError) };
  // Only a 2xx may have data (GraphQL over HTTP, "Status Codes").
  return data === undefined || isNotCached({ ...finished, data }) ? { ...finished } : { ...finished, data };
}

interface WrittenResult {
  readonly result: ExecutionResult;
  /** The data as JSON, if there is any. */
  readonly data: string | undefined;
  /** The whole response as JSON. */
  readonly body: string;
}

/** Writes a result as JSON; the LIMIT_EXCEEDED error instead where its data and errors are longer than `maxBytes`. */
function writeResult(
  result: ExecutionResult,
  usage: ResultExtensions['petql'] | undefined,
  maxBytes: number,
): WrittenResult {
  // JSON.stringify alone would write a hundred times as much before petql could reject it.
  if (maxBytes < Infinity && textLength(result.data) > maxBytes) return writeResult(tooLong(maxBytes), usage, Infinity);

  const data = result.data === undefined ? undefined : JSON.stringify(result.data);
  const errors = result.errors && JSON.stringify(result.errors.map(shownError));
  const bytes = Buffer.byteLength(data ?? '') + Buffer.byteLength(errors ?? '');
  if (bytes > maxBytes) return writeResult(tooLong(maxBytes), usage, Infinity);

  const extensions = usage && JSON.stringify({ petql: usage });
  const members = Object.entries({ errors, data, extensions }).filter(([, json]) => json !== undefined);
  return { result, data, body: `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}` };
}

function tooLong(maxBytes: number): ExecutionResult {
  return finishedResult({ data: null, errors: [graphqlError(limitExceeded('resultBytes', maxBytes))] });
}

/** Returns how long the texts and names of a result are together. */
function textLength(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let length = 0;
  if (Array.isArray(value)) for (const item of value) length += textLength(item);
  else for (const [name, item] of Object.entries(value)) length += name.length + textLength(item);
  return length;
}

/** Whether a request that takes cached data alone got nothing: HTTP 504 then (RFC 9111, section 5.2.1.7). */
function isNotCached(result: ExecutionResult): boolean {
  return hasNothing(result) && (result.errors ?? []).every(({ extensions }) => extensions['code'] === 'NOT_CACHED');
}

/** Whether a result is nothing but errors. */
export function hasNothing({ data, errors = [] }: ExecutionResult): boolean {
  return errors.length > 0 && !Object.values(data ?? {}).some((value) => value !== null);
}
