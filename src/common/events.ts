/**
 * Gets what happens in a gateway, for metrics. Each method runs before the response, so it must be quick and never throw. No event
 * holds an API key.
 */
export interface Events {
  readonly operation: (event: OperationEvent) => void;
  readonly upstreamCall: (event: UpstreamCallEvent) => void;
  readonly waited: (event: WaitEvent) => void;
  /** A read is sent again after a failure, beside its `upstreamCall`. */
  readonly retried: (event: { readonly operation: 'getPet' | 'listPets' }) => void;
  readonly refused: (event: RefusalEvent) => void;
  /** A pet of a list breaks the contract, and the list goes without it. */
  readonly leftOut: () => void;
  readonly storeUpdate: (event: StoreUpdateEvent) => void;
}

/** An operation has ended: all that is counted of it follows from this. */
export interface OperationEvent {
  /** `none` where the request is no GraphQL. */
  readonly type: 'mutation' | 'none' | 'query' | 'subscription';
  /** Its name, and the app that ran it; undefined where the client gives none. */
  readonly name: string | undefined;
  readonly client: string | undefined;
  /** `OK`, or the code of its first error. */
  readonly outcome: string;
  readonly tookMs: number;
  readonly upstreamCalls: number;
  readonly savedCalls: number;
  /** The saved calls by their reason. */
  readonly savings: Readonly<Record<string, number>>;
  readonly oldestAgeMs: number | undefined;
  readonly staleReason: string | undefined;
}

/** The operations of the pet API that petql calls. */
export const UPSTREAM_OPERATIONS = ['createPet', 'getPet', 'listPets'] as const;
export type UpstreamOperation = (typeof UPSTREAM_OPERATIONS)[number];

/** A call to the upstream has ended. */
export interface UpstreamCallEvent {
  readonly operation: UpstreamOperation;
  /** The status of the response; undefined without a response. */
  readonly status: number | undefined;
  /** `ok`, the kind of the failure, or why there is no response. */
  readonly reason: string;
  readonly tookMs: number;
}

/** A call got its permit. */
export interface WaitEvent {
  readonly kind: 'read' | 'write';
  readonly waitedMs: number;
}

/** A read or a write gets no call. A refused read may still be served cached data. */
export interface RefusalEvent {
  readonly kind: 'read' | 'write';
  /** As in the log. */
  readonly reason: string;
}

/** A command to Redis has ended. */
export interface StoreUpdateEvent {
  /** `won`: the command wrote. `lost`: another replica had written first. `read`: there was nothing to write. */
  readonly result: 'failed' | 'lost' | 'read' | 'won';
  readonly tookMs: number;
}
