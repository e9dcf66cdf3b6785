import { randomUUID } from 'node:crypto';
import { GraphQLError } from 'graphql';
import type { GraphQLErrorExtensions, GraphQLFormattedError } from 'graphql';
import { PetqlError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { Log } from '../log.ts';
import { limitExceeded } from './limit-exceeded.ts';

/**
 * What a client sees of something thrown: GraphQL's own errors and PetqlErrors as they are, and for the rest a masked
 * INTERNAL_SERVER_ERROR whose id leads to the log.
 */
export function createErrorMask(log: Log, { maxBodyBytes }: Limits): (error: unknown) => GraphQLError {
  return (error) => {
    const thrown = rootCause(error);
    const located = error instanceof GraphQLError ? error : undefined;
    if (thrown instanceof PetqlError) return graphqlError(thrown, located);
    if (located && thrown instanceof GraphQLError) {
      // Yoga refuses a body that is too long under a code of its own, and does not say what would be short enough.
      return located.extensions['code'] === 'REQUEST_ENTITY_TOO_LARGE'
        ? graphqlError(limitExceeded('bodyBytes', maxBodyBytes, undefined, 413))
        : located;
    }
    const id = randomUUID();
    log.error({ id, err: thrown }, 'an operation failed in a way that nobody foresaw');
    return errorAt(located, `Something went wrong inside petql; its log tells more under the id ${id}.`, {
      code: 'INTERNAL_SERVER_ERROR',
      id,
      ...(located ? {} : { http: { status: 500 } }),
    });
  };
}

/** A PetqlError in GraphQL's shape. Its HTTP status counts only where it kept the whole operation from running. */
export function graphqlError(error: PetqlError, located?: GraphQLError): GraphQLError {
  const { code, details, httpStatus, httpHeaders } = error;
  const http = located || httpStatus === undefined ? {} : { http: { status: httpStatus, headers: { ...httpHeaders } } };
  return errorAt(located, error.message, { ...details, code, ...http });
}

/**
 * Gives an error one of petql's codes and its HTTP status. Errors that GraphQL itself or Yoga raised come with no code,
 * or with one of Yoga's own; all of them are about what was sent.
 *
 * GraphQL over HTTP wants 400 for a request that is no GraphQL request; one that is, but cannot run, is a 200 to a client
 * that accepts application/json (`spec`), and a 400 to one that accepts application/graphql-response+json.
 */
export function finishedError(error: GraphQLError): GraphQLError {
  const { code, http, originalError: _quotesTheBody, ...details } = error.extensions;
  const yoga = YOGA_CODES[String(code)];
  const status = http?.status ?? (error.path ? undefined : 400);
  return errorAt(error, shortened(yoga?.message ?? error.message), {
    ...details,
    code: yoga?.code ?? code ?? 'BAD_USER_INPUT',
    ...(status === undefined ? {} : { http: { ...http, status, spec: status === 400 && code !== 'BAD_REQUEST' } }),
  });
}

/** GraphQL's own errors show the value that is wrong, which may fill a body. */
const LONGEST_MESSAGE = 2_000;

function shortened(message: string): string {
  return message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message;
}

/**
 * An error as Yoga answers it. Of a field it is what a client reads: Yoga would look for its place anew, and Yoga has to see
 * only those that say something of the HTTP status.
 */
export function answeredError(error: GraphQLError): GraphQLError | GraphQLFormattedError {
  const finished = finishedError(error);
  return finished.extensions.http ? finished : finished.toJSON();
}

/** An error as a client reads it in the answer's JSON. */
export function plainError(error: GraphQLError): GraphQLFormattedError {
  const { extensions: { http: _forTheTransport, ...extensions } = {}, ...rest } = finishedError(error).toJSON();
  return { ...rest, extensions };
}

/** What is no GraphQL request at all, under Yoga's code for that. */
export function badRequest(message: string, status: number): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });
}

/** A document that is not GraphQL. */
export function parseFailure(error: GraphQLError): GraphQLError {
  return errorAt(error, error.message, { code: 'GRAPHQL_PARSE_FAILED', http: { status: 400 } });
}

/** An operation name that is missing, or that no operation of the document has. */
export function unknownOperation(): GraphQLError {
  return new GraphQLError('', { extensions: { code: 'OPERATION_RESOLUTION_FAILURE', http: { status: 400 } } });
}

const YOGA_CODES: Readonly<Record<string, { code: ErrorCode; message?: string }>> = {
  BAD_REQUEST: { code: 'BAD_USER_INPUT' },
  OPERATION_RESOLUTION_FAILURE: {
    code: 'BAD_USER_INPUT',
    message: 'Which operation is to run? Expected one in the document, or the name of one of them as operationName.',
  },
};

/** GraphQL wraps what a resolver throws, some layers twice. */
function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}

/**
 * An error where another one is: that was looked for once, which takes longer than all the rest of it. So would the stack that
 * an error notes as it is made; a copy has none, since there may be a thousand and nobody is shown one.
 */
function errorAt(at: GraphQLError | undefined, message: string, extensions: GraphQLErrorExtensions): GraphQLError {
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
