import type { FinishedError } from '../errors.ts';
import type { RequestState } from '../request-state.ts';
import type { HttpResponse } from './http-message.ts';
import { acceptedType } from './request-params.ts';

/**
 * The response to an operation. Where it is nothing but errors of one HTTP status, it has that status and no data. A request
 * that is GraphQL but cannot run is a 200 to clients that accept application/json (GraphQL over HTTP, "application/json").
 */
export function graphqlResponse(state: RequestState, errors: readonly FinishedError[]): HttpResponse {
  const { request, context, result = {}, data = JSON.stringify(result.data) } = state;
  const { extensions } = result;
  const type = acceptedType(request.headers['accept']) ?? 'application/json';
  const hasNothing = errors.length > 0 && !Object.values(result.data ?? {}).some((value) => value !== null);
  const { status, headers: more, isMalformed } = errors[0] ?? {};
  const isFailure = hasNothing && status !== undefined && errors.every((error) => error.status === status);
  const headers: Record<string, string> = { 'content-type': `${type}; charset=utf-8` };
  if (isFailure) Object.assign(headers, more);
  if (extensions) {
    Object.assign(headers, context?.quotaHeaders());
    const { oldestAgeMs } = extensions.petql;
    // Whole seconds (RFC 9111, section 5.1).
    if (oldestAgeMs !== undefined) headers['age'] = String(Math.floor(oldestAgeMs / 1000));
  }
  const waits = errors.map(({ shown }) => shown.extensions.retryAfterMs ?? NaN);
  if (hasNothing && !waits.includes(NaN)) headers['retry-after'] = String(Math.ceil(Math.max(...waits) / 1000));
  const parts = [
    errors.length > 0 && `"errors":${JSON.stringify(errors.map(({ shown }) => shown))}`,
    data !== undefined && !isFailure && `"data":${data}`,
    extensions && `"extensions":${JSON.stringify(extensions)}`,
  ];
  const isSoft = status === 400 && !isMalformed && type === 'application/json';
  return { status: isFailure && !isSoft ? status : 200, headers, body: `{${parts.filter(Boolean).join(',')}}` };
}
