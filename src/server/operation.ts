import type { FormattedExecutionResult, GraphQLFormattedError } from 'graphql';
import type { Usage } from '../common/usage.ts';
import type { ErrorCode } from '../common/errors.ts';
import type { PlanWindow } from '../common/plan.ts';

/**
 * Runs an operation in this process, under the rules of operations over HTTP.
 *
 * @returns the body of an HTTP response, as plain JSON.
 * @throws the reason that its signal was aborted with.
 */
export type Execute = <TData = Record<string, unknown>, TVariables = Record<string, unknown>>(
  operation: Operation<TData, TVariables>,
) => Promise<OperationResult<TData>>;

export interface OperationResult<TData> extends FormattedExecutionResult<TData> {
  readonly errors?: readonly OperationError[];
  /** Undefined where nothing ran. */
  readonly extensions?: ResultExtensions;
}

export interface OperationError extends GraphQLFormattedError {
  readonly extensions: {
    readonly code: ErrorCode;
    /** When another attempt can succeed, in milliseconds. */
    readonly retryAfterMs?: number;
    /** The same as an ISO 8601 time. */
    readonly retryAt?: string;
    /** The window of the quota that causes the wait. */
    readonly window?: PlanWindow;
    /** The argument that is wrong, such as `input.name`. */
    readonly argument?: string;
    /** The response of the pet API, as far as there was one. */
    readonly upstream?: { readonly status?: number; readonly code?: string };
    /** The limit that is exceeded, and its value. */
    readonly limit?: string;
    readonly max?: number;
    readonly [detail: string]: unknown;
  };
}

// A type, since an interface has no index signature.
export type ResultExtensions = {
  readonly petql: Usage & {
    /** The cost of the operation, with the option `dryRun`. */
    readonly dryRun?: DryRun;
  };
};

/** The cost of an operation in upstream calls: `extensions.petql.dryRun`. */
export interface DryRun {
  /** Calls that it can cost at worst with what the cache holds now, retries aside; writes among them. */
  readonly upstreamCalls: number;
  readonly writes: number;
  /** Whether the remaining quota has room for them now, behind what waits already. */
  readonly fits: boolean;
  /** The earliest time at which the last of them can be sent, and in how many milliseconds that is. */
  readonly fitsAt: string;
  readonly waitMs: number;
  /** The window that makes them wait longest. */
  readonly window: PlanWindow | undefined;
}

/** An operation to run in this process. Null stands for an option that is not given, except for the API key. */
export type Operation<TData, TVariables> = OperationVariables<TVariables> & {
  readonly document: OperationDocument<TData, TVariables>;
  /** Which operation of the document to run, where it has several. */
  readonly operationName?: string | null | undefined;
  /**
   * The API key whose quota it uses. Default: the gateway's `petApiKey`, where that is a string. Null and an empty text are
   * no key, which is UNAUTHENTICATED.
   */
  readonly apiKey?: string | null | undefined;
  /**
   * The end user whom it serves, such as a user's id: no visitor uses more calls of the API key than it leaves to the others.
   * Default: none, or with the option `visitorHeader`, one visitor for all operations without it.
   */
  readonly visitor?: string | null | undefined;
  /** The app or job that runs it, such as `web 1.4`: `consumers` and `/quota` show who used the quota. Default: none. */
  readonly client?: string | null | undefined;
  /**
   * Whether its calls yield to all others of the API key: each minute and day they leave a reserve. `Priority: u=7` in a request.
   * Default false.
   */
  readonly background?: boolean | null | undefined;
  /** How long it may wait for the quota, in milliseconds. Default and maximum: the gateway's `maxWaitMs`. */
  readonly waitMs?: number | null | undefined;
  /** Aborts the operation: reads and writes that still wait make no call. A write that was sent may have happened. */
  readonly signal?: AbortSignal | null | undefined;
  /** The ages that it accepts, as the `Cache-Control` header of a request: `no-cache`, `max-age=5`. */
  readonly cacheControl?: string | null | undefined;
  /** The trace of its upstream calls, as a `traceparent` header (W3C Trace Context). */
  readonly traceparent?: string | null | undefined;
  /** Runs nothing and shows in `extensions.petql.dryRun` what it would cost. Default false. */
  readonly dryRun?: boolean | null | undefined;
};

/** An operation as text, or as a document that may bring its types. */
export type OperationDocument<TData, TVariables> = string | TypedDocument<TData, TVariables>;

/**
 * A document that knows the types of its data and variables: those of gql.tada and GraphQL Code Generator, its
 * TypedDocumentString too, and the result of graphql-js's `parse`.
 */
export type TypedDocument<TData, TVariables> = (ParsedDocument | TypedText) & OperationTypes<TData, TVariables>;

/** What the class of a TypedDocumentString extends. */
// oxlint-disable-next-line typescript/no-wrapper-object-types -- it is one
export type TypedText = String;

/** A DocumentNode of any version of graphql-js. */
interface ParsedDocument {
  readonly kind: string;
  readonly definitions: readonly { readonly kind: string }[];
}

/** The types that a document carries, as in @graphql-typed-document-node/core; nothing at run time. */
interface OperationTypes<TData, TVariables> {
  readonly __apiType?: ((variables: TVariables) => TData) | undefined;
}

/** Variables may be left out where none of them is required. */
type OperationVariables<TVariables> =
  // oxlint-disable-next-line typescript/no-empty-object-type -- whether an empty object has all that they require
  {} extends TVariables
    ? { readonly variables?: NoInfer<TVariables> | null | undefined }
    : { readonly variables: NoInfer<TVariables> };
