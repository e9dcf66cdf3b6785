import type { FormattedExecutionResult } from 'graphql';

/**
 * Runs an operation in this process, under the rules of one that comes over HTTP.
 *
 * @returns what the body of an HTTP answer would hold, as plain JSON: `data`, `errors` with their codes, `extensions`.
 * @throws whatever reason its signal was aborted with, and a TypeError for an argument of a wrong type. But for variables and
 * operation names, which visitors send: wrong ones are BAD_USER_INPUT in the answer.
 */
export type Execute = <TData = Record<string, unknown>, TVariables = Record<string, unknown>>(
  operation: Operation<TData, TVariables>,
) => Promise<FormattedExecutionResult<TData>>;

/** An operation to run in this process. What is null is as good as not given, but for the API key. */
export type Operation<TData, TVariables> = OperationVariables<TVariables> & {
  readonly document: OperationDocument<TData, TVariables>;
  /** Which operation of the document to run, where it has several. */
  readonly operationName?: string | null | undefined;
  /**
   * Whose plan it is paid from. Default: the gateway's `petApiKey`, where that is a string. Null and an empty text are a
   * caller without a key, who is UNAUTHENTICATED.
   */
  readonly apiKey?: string | null | undefined;
  /** How long it may wait for the plan, in milliseconds. Default, and most: the gateway's `maxWaitMs`. */
  readonly waitMs?: number | null | undefined;
  /** Gives the operation up: what waits for the plan is not called. A write that was sent may have happened. */
  readonly signal?: AbortSignal | null | undefined;
  /** How old its answers may be, as a `Cache-Control` header of a request says it: `no-cache`, `max-age=5`. */
  readonly cacheControl?: string | null | undefined;
  /** The trace that its calls to the service belong to, as a `traceparent` header says it (W3C Trace Context). */
  readonly traceparent?: string | null | undefined;
  /** Run nothing, and tell in `extensions.petql.dryRun` what it would cost. Default false. */
  readonly dryRun?: boolean | null | undefined;
};

/** An operation as text, or as a document that may bring its types. */
export type OperationDocument<TData, TVariables> = string | TypedDocument<TData, TVariables>;

/**
 * A document that knows the types of its data and variables: those of gql.tada and GraphQL Code Generator are such, its
 * TypedDocumentString too, and so is what `parse` of graphql-js gives.
 */
export type TypedDocument<TData, TVariables> = (ParsedDocument | TypedText) & OperationTypes<TData, TVariables>;

/** What the class of a TypedDocumentString extends. */
// oxlint-disable-next-line typescript/no-wrapper-object-types -- it is one
export type TypedText = String;

/** A DocumentNode of any version of graphql-js. */
export interface ParsedDocument {
  readonly kind: string;
  readonly definitions: readonly { readonly kind: string }[];
}

/** The types that a document carries with it, as @graphql-typed-document-node/core has it; nothing at run time. */
export interface OperationTypes<TData, TVariables> {
  readonly __apiType?: ((variables: TVariables) => TData) | undefined;
}

/** Variables may be left out where none of them is required. */
export type OperationVariables<TVariables> =
  // oxlint-disable-next-line typescript/no-empty-object-type -- whether an empty object has all that they require
  {} extends TVariables
    ? { readonly variables?: NoInfer<TVariables> | null | undefined }
    : { readonly variables: NoInfer<TVariables> };
