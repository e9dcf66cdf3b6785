import type { ExecutionResult } from 'graphql';
import type { ResponseType } from './media-type.ts';

/**
 * Returns the HTTP status of a finished result (GraphQL over HTTP of August 2026, "Status Codes"). With application/json a GraphQL
 * request that cannot run is 200, and other ill-formed requests are 400: clients that know this type alone lose the errors of a 4xx.
 */
export function resultStatus({ data, errors = [] }: ExecutionResult, type: ResponseType): number {
  const isJson = type === 'application/json';
  if (data !== undefined) return errors.length > 0 && !isJson ? PARTIAL_SUCCESS : 200;

  const statuses = errors.map(({ extensions: { http } }) => {
    const { status = 200, spec } = http ?? {};
    if (!isJson) return status;
    if (spec) return 200;
    return status === 422 ? 400 : status;
  });
  return Math.max(200, ...statuses);
}

/** Data beside errors. */
const PARTIAL_SUCCESS = 294;
