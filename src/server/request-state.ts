import type { ExecutionResult, OperationTypeNode } from 'graphql';
import type { RequestContext } from '../caller/request-context.ts';
import type { OperationSpan } from '../common/tracing.ts';
import type { HttpRequest } from './http/http-message.ts';
import type { ResultExtensions } from './operation.ts';

/** What petql learns about one GraphQL request on its way: each plugin adds its part, and the response is made of it. */
export interface RequestState {
  readonly request: HttpRequest;
  /** In the log and in the response's `X-Request-Id`. */
  readonly id: string;
  readonly startedAtMs: number;
  /** The calls of the operation belong to its trace. Undefined where the request is none. */
  readonly span: OperationSpan | undefined;
  /** Undefined where the document does not name it, or is none. */
  operation?: OperationName | undefined;
  context?: RequestContext;
  /** What the operation has cost; undefined where nothing ran. */
  usage?: ResultExtensions['petql'];
  /** The finished data and errors. */
  result?: ExecutionResult;
  /** The result's data as JSON. */
  data?: string | undefined;
}

export interface OperationName {
  readonly type: OperationTypeNode;
  readonly name: string | undefined;
}

/** What Yoga hands to each hook. */
export interface ServerContext extends Record<string, unknown> {
  readonly state: RequestState;
}

/** Yoga's types of some hooks leave the server context open. */
export function stateOf(serverContext: object): RequestState {
  return (serverContext as ServerContext).state;
}
