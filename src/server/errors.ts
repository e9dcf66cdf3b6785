import { randomUUID } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { GraphQLErrorExtensions, GraphQLFormattedError } from 'graphql';
import { cutText } from '../common/cut-text.ts';
import { PetqlError } from '../common/errors.ts';
import type { ErrorCode } from '../common/errors.ts';
import type { Log } from '../common/log.ts';

/** Returns the error that a client sees. */
export type ErrorMask = (error: unknown) => GraphQLError;

/** Masks all errors except PetqlErrors and those of GraphQL about what was sent. The id of a masked error is in the log. */
export function createErrorMask(log: Log): ErrorMask {
  return (error) => {
    const thrown = rootCause(error);
    const located = error instanceof GraphQLError ? error : undefined;
    if (thrown instanceof PetqlError) return graphqlError(thrown, located);
    if (located && thrown instanceof GraphQLError && !isUnshownValue(thrown, located)) return located;
    const id = randomUUID();
    log.error({ id, err: thrown }, 'unhandled error');
    return errorAt(located, `petql failed unexpectedly. Its log has the cause under the id ${id}.`, {
      code: 'INTERNAL_SERVER_ERROR',
      id,
      ...(located ? {} : { http: { status: 500 } }),
    });
  };
}

/** Whether a resolver returned what the type of its field cannot show: no error about what was sent has a path, and no nodes. */
function isUnshownValue(thrown: GraphQLError, { path }: GraphQLError): boolean {
  return path !== undefined && thrown.nodes === undefined;
}

/** A PetqlError in GraphQL's shape. Its HTTP status counts only where it kept the whole operation from running. */
export function graphqlError(error: PetqlError, located?: GraphQLError): GraphQLError {
  const { code, details, httpStatus, httpHeaders } = error;
  const http = located || httpStatus === undefined ? {} : { http: { status: httpStatus, headers: { ...httpHeaders } } };
  return errorAt(located, error.message, { ...details, code, ...http });
}

/** What is no GraphQL request at all, under Yoga's code for that. */
export function badRequest(message: string, status: number, headers?: Readonly<Record<string, string>>): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status, headers: { ...headers } } } });
}

/** A document that is not GraphQL. */
export function parseFailure(error: GraphQLError): GraphQLError {
  return errorAt(error, error.message, { code: 'GRAPHQL_PARSE_FAILED', http: { status: 400 } });
}

/**
 * Gives an error one of petql's codes and its HTTP status. Errors of GraphQL itself or of Yoga have no code, or one of Yoga's;
 * all of them are about what was sent.
 *
 * The status is that of GraphQL over HTTP: 400 for what cannot be parsed, 422 for what is ill-formed, unknown or invalid. `spec`
 * marks that of a GraphQL request which cannot run.
 */
export function finishedError(error: GraphQLError): GraphQLError {
  const { code, http, originalError: _quotesTheBody, ...details } = error.extensions;
  const yoga = YOGA_CODES[String(code)];
  const isGraphql = code !== 'BAD_REQUEST';
  const given = http?.status ?? (error.path ? undefined : 422);
  const status = given === 400 && isGraphql && code !== 'GRAPHQL_PARSE_FAILED' ? 422 : given;
  return errorAt(error, shortened(yoga?.message ?? error.message), {
    ...details,
    code: yoga?.code ?? (code as ErrorCode | undefined) ?? 'BAD_USER_INPUT',
    ...(status === undefined
      ? {}
      : { http: { ...http, status, spec: isGraphql && (status === 400 || status === 422) } }),
  });
}

/** A finished error as clients see it. */
export function shownError(error: GraphQLError): GraphQLFormattedError {
  const { http: _status, ...extensions } = error.extensions;
  return { ...error.toJSON(), extensions };
}

const YOGA_CODES: Readonly<Record<string, { code: ErrorCode; message?: string }>> = {
  BAD_REQUEST: { code: 'BAD_USER_INPUT' },
  OPERATION_RESOLUTION_FAILURE: {
    code: 'BAD_USER_INPUT',
    message: 'operationName must name an operation of the document. It is required where the document has several.',
  },
};

/** GraphQL's own errors show the wrong value, which may fill a body. */
const MAX_MESSAGE_LENGTH = 2_000;

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_LENGTH ? `${cutText(message, MAX_MESSAGE_LENGTH)}…` : message.toWellFormed();
}

/** GraphQL wraps what a resolver throws, some layers twice. */
function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}

interface CodedExtensions extends GraphQLErrorExtensions {
  readonly code: ErrorCode;
}

/** Copies an error without computing its location or capturing a stack: both dominate the cost of a thousand errors. */
function errorAt(at: GraphQLError | undefined, message: string, extensions: CodedExtensions): GraphQLError {
  if (!at) return new GraphQLError(message, { extensions });
  const { name, path, nodes, source, positions, locations } = at;
  const hidden = {
    name: { value: name },
    nodes: { value: nodes },
    source: { value: source },
    positions: { value: positions },
  };
  const copy = Object.create(GraphQLError.prototype, hidden) as GraphQLError;
  return Object.assign(copy, { message, path, locations, extensions });
}
