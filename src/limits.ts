/** What one request may hold at most. Past a limit it is refused with LIMIT_EXCEEDED, before anything is called. */
export interface Limits {
  /** Bytes of a request's body. Default 262144: a document of the longest kind needs far less. */
  readonly maxBodyBytes: number;
  /** Tokens of a document, and lines, counted before it is parsed, so that nothing longer ever is. Default 5000. */
  readonly maxTokens: number;
  /** Levels of fields, and of fragments, lists and objects in each other. Default 20; introspection needs 14. */
  readonly maxDepth: number;
  /** Fields of an operation itself, counted as if each fragment stood where it is used. Default 200. */
  readonly maxRootFields: number;
  /** Aliases, counted in the same way. Default 200. */
  readonly maxAliases: number;
  /** Fields in all, counted in the same way. Default 1500. */
  readonly maxFields: number;
  /** Upstream calls that an operation can cost at worst, counted before anything is sent. Default 200. */
  readonly maxUpstreamCalls: number;
  /** Operations in one HTTP request. Default 0: a request is one operation, not a list of them. */
  readonly maxBatch: number;
}

export interface LimitRange {
  readonly lowest: number;
  readonly highest: number;
  readonly fallback: number;
  /** What it bounds, in plain words. */
  readonly help: string;
}

/** The defaults leave room for a hundred aliased reads, and for every introspection query. */
export const LIMITS: { readonly [Name in keyof Limits]: LimitRange } = {
  maxBodyBytes: { lowest: 1_024, highest: 16_777_216, fallback: 262_144, help: 'bytes of a request' },
  maxTokens: { lowest: 1, highest: 100_000, fallback: 5_000, help: 'tokens of a document, and as many lines' },
  maxDepth: { lowest: 1, highest: 1_000, fallback: 20, help: 'levels of fields, fragments, lists and objects' },
  maxRootFields: { lowest: 1, highest: 100_000, fallback: 200, help: "fields at an operation's top" },
  maxAliases: { lowest: 0, highest: 100_000, fallback: 200, help: 'aliases' },
  maxFields: { lowest: 1, highest: 100_000, fallback: 1_500, help: 'fields in all' },
  maxUpstreamCalls: {
    lowest: 0,
    highest: 100_000,
    fallback: 200,
    help: 'upstream calls that an operation can cost at worst',
  },
  maxBatch: { lowest: 0, highest: 1_000, fallback: 0, help: 'operations in one HTTP request; 0: no lists of them' },
};
