/** Every code in `errors[].extensions.code`; the table of schema/README.md says when each one comes. */
export type ErrorCode =
  | 'BAD_USER_INPUT'
  | 'DOWNSTREAM_SERVICE_ERROR'
  | 'FORBIDDEN'
  | 'GATEWAY_TIMEOUT'
  | 'GRAPHQL_PARSE_FAILED'
  | 'GRAPHQL_VALIDATION_FAILED'
  | 'IDEMPOTENCY_UNAVAILABLE'
  | 'INTERNAL_SERVER_ERROR'
  | 'LIMIT_EXCEEDED'
  | 'NOT_CACHED'
  | 'OUTCOME_PENDING'
  | 'OUTCOME_UNKNOWN'
  | 'PERSISTED_DOCUMENT_NOT_FOUND'
  | 'PERSISTED_DOCUMENT_REQUIRED'
  | 'RATE_LIMITED'
  | 'UNAUTHENTICATED';

interface PetqlErrorOptions {
  /** Further fields of `extensions`. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** The HTTP status of a response in which nothing could run; without it the response is a 200. */
  readonly httpStatus?: number;
  readonly httpHeaders?: Readonly<Record<string, string>>;
}

/**
 * An error that clients see as it is: the message says what happened and what to do, and holds no API key, no address of the
 * upstream and no raw body. Any other error is masked.
 */
export class PetqlError extends Error {
  override readonly name = 'PetqlError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly httpStatus: number | undefined;
  readonly httpHeaders: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, options: PetqlErrorOptions = {}) {
    // An expected error is no defect: nobody reads its stack, which GraphQL would format at some cost.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;

    this.code = code;
    this.details = options.details ?? {};
    this.httpStatus = options.httpStatus;
    this.httpHeaders = options.httpHeaders ?? {};
  }
}

/** The value of a setting passed its check and cannot be used, such as a file that is damaged. */
export class SettingError extends TypeError {
  readonly setting: string;
  /** Returns the message with the name that the user gave the setting. */
  readonly describe: (name: string) => string;

  /** @param describe takes the name of the setting, and returns the message. */
  constructor(setting: string, describe: (name: string) => string, options?: ErrorOptions) {
    super(`createGateway: ${describe(setting)}`, options);
    this.setting = setting;
    this.describe = describe;
  }
}

export const MAY_BE_BANNED = 'The pet API rejected this API key after 429s, so it may be banned for a while';

/** Returns what an error says of another attempt. */
export function retryIn(
  retryAfterMs: number,
  nowMs: number,
): { readonly retryAfterMs: number; readonly retryAt: string } {
  return { retryAfterMs, retryAt: new Date(nowMs + retryAfterMs).toISOString() };
}
