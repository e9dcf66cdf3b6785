/**
 * What happens in a gateway, for whoever counts it. Each is called at once where it happens, on the way of an answer: it
 * must be quick and never throw. No event holds an API key.
 */
export interface Events {
  operation(event: OperationEvent): void;
  saved(event: SavedEvent): void;
  upstreamCall(event: UpstreamCallEvent): void;
  waited(event: WaitEvent): void;
  /** A read is sent that was tried before: beside its `upstreamCall`. */
  retried(event: RetryEvent): void;
}

/** An operation is answered, or refused. */
export interface OperationEvent {
  /** `none` where it is not known: what came is no GraphQL. */
  readonly type: 'mutation' | 'none' | 'query' | 'subscription';
  /** `OK`, or the code of its first error. */
  readonly outcome: string;
  readonly tookMs: number;
  readonly upstreamCalls: number;
  readonly servedWithoutCall: number;
  readonly oldestAgeMs: number | undefined;
  readonly staleReason: string | undefined;
}

/** An operation is over, and so many of the things that it asked for cost no call of their own for this reason. */
export interface SavedEvent {
  readonly reason: string;
  readonly calls: number;
}

/** A call to the upstream is over. */
export interface UpstreamCallEvent {
  readonly operation: 'createPet' | 'getPet' | 'listPets';
  /** Of the response; undefined where none came. */
  readonly status: number | undefined;
  /** What came of it: `ok`, the kind of the failure, or why there is no response. */
  readonly reason: string;
  readonly tookMs: number;
}

export interface RetryEvent {
  readonly operation: 'getPet' | 'listPets';
}

/** A call had its turn in the plan. */
export interface WaitEvent {
  readonly kind: 'read' | 'write';
  readonly waitedMs: number;
}
