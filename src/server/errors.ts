import { randomUUID } from 'node:crypto';
import { GraphQLError } from 'graphql';
import { PetqlError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { Log } from '../log.ts';
import type { OperationError } from './operation.ts';

/** An error as clients see it, and the HTTP status of a response that has nothing else. */
export interface FinishedError {
  readonly shown: OperationError;
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the request was no GraphQL request at all. */
  readonly isMalformed: boolean;
}

/** Returns a function that masks all errors except PetqlErrors and those of GraphQL. The id of a masked error is in the log. */
export function createErrorFinisher(log: Log) {
  return (error: unknown): FinishedError => {
    const cause = rootCause(error);
    const { path, locations } = error instanceof GraphQLError ? error : {};
    const place = { ...(locations && { locations }), ...(path && { path }) };
    if (cause instanceof PetqlError) {
      const { message, details, code, httpStatus: status, httpHeaders: headers } = cause;
      return { shown: { message, ...place, extensions: { ...details, code } }, status, headers, isMalformed: false };
    }
    if (cause instanceof GraphQLError) {
      const { code = 'BAD_USER_INPUT', http, ...details } = cause.extensions;
      const extensions = { ...details, code: YOGA_CODES[String(code)] ?? (code as ErrorCode) };
      return {
        shown: { message: code === UNRESOLVED ? NO_OPERATION : shortened(cause.message), ...place, extensions },
        status: http?.status ?? (path ? undefined : 400),
        headers: http?.headers ?? {},
        isMalformed: code === MALFORMED,
      };
    }
    const id = randomUUID();
    log.error({ id, err: cause }, 'unhandled error');
    const message = `petql failed unexpectedly. Its log has the cause under the id ${id}.`;
    const shown = { message, ...place, extensions: { code: 'INTERNAL_SERVER_ERROR', id } } as const;
    return { shown, status: path ? undefined : 500, headers: {}, isMalformed: false };
  };
}

/** The error of what is no GraphQL request at all, under Yoga's code for that. */
export function malformed(message: string, status = 400, headers: Record<string, string> = {}): GraphQLError {
  return new GraphQLError(message, { extensions: { code: MALFORMED, http: { status, headers } } });
}

const MALFORMED = 'BAD_REQUEST';
const UNRESOLVED = 'OPERATION_RESOLUTION_FAILURE';
const NO_OPERATION =
  'operationName must name an operation of the document. It is required where the document has several.';
const YOGA_CODES: Readonly<Record<string, ErrorCode>> = {
  [MALFORMED]: 'BAD_USER_INPUT',
  [UNRESOLVED]: 'BAD_USER_INPUT',
};

/** GraphQL's own errors show the wrong value, which may fill a body. */
const MAX_MESSAGE_LENGTH = 2_000;

function shortened(message: string): string {
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
}

/** GraphQL wraps what a resolver throws, some layers twice. */
function rootCause(error: unknown): unknown {
  return error instanceof GraphQLError && error.originalError ? rootCause(error.originalError) : error;
}
