import type { CallerRequest } from '../common/caller-request.ts';
import type { PetqlError } from '../common/errors.ts';
import { MAX_LATE_MS } from '../common/call-times.ts';
import type { RequestClaim } from '../line/line-call.ts';
import type { PlannedRead } from '../pets/call-planner.ts';
import type { CachedEntry, PetCache } from './cache/pet-cache.ts';
import type { CallKey } from '../pets/read-key.ts';
import type { StaleReason } from '../common/usage.ts';
import type { FailedCall } from './failed-calls.ts';

export interface ServedResult extends CachedEntry {
  /** Undefined for a fresh result. */
  readonly staleReason: StaleReason | undefined;
  /** Undefined where the read did not wait for a call. */
  readonly waiter: Pick<ReadWaiter, 'isBilled'> | undefined;
}

export type ReadResult = Error | ServedResult;

/** One read of one request that waits for a call. */
export class ReadWaiter implements RequestClaim {
  readonly read: PendingRead;
  readonly request: CallerRequest;
  /** Generation at arrival. */
  readonly generation: number;
  /** Send time of the oldest call that may answer it. */
  readonly notBeforeMs: number;
  /** Resolves once the call that may be billed to it is sent, or fails to be; undefined without such a call. */
  sending: Promise<void> | undefined;
  /** Whether a call for it has stood in the line, which ends it at its deadline. */
  hasStoodInLine = false;
  /** Whether a call that was sent is billed to it. */
  isBilled = false;
  /** The error of a call that it waited for. */
  failed: PetqlError | undefined;
  readonly result = Promise.withResolvers<ReadResult>();
  readonly #cache: PetCache;

  constructor(read: PendingRead, request: CallerRequest, notBeforeMs: number, cache: PetCache) {
    this.read = read;
    this.request = request;
    this.generation = cache.generation;
    this.notBeforeMs = notBeforeMs;
    this.#cache = cache;
  }

  /** Whether the request accepts an entry that is cached. */
  get hasAcceptedEntry(): boolean {
    return this.#cache.findAccepted(this.read.key, this.request.freshness) !== undefined;
  }

  get isRefresh(): boolean {
    return this.request.freshness.mayServeStaleToSaveCalls && this.hasAcceptedEntry;
  }

  /** Rule 2: read your writes, and no response from before the moment that the request names. */
  accepts({ sentAtMs, generation }: Flight): boolean {
    return generation >= this.generation && sentAtMs >= this.notBeforeMs;
  }

  /** Whether the call was sent early enough to be waited for. */
  isInTime({ sentAtMs }: Flight): boolean {
    return sentAtMs <= this.request.deadlineMs + MAX_LATE_MS;
  }
}

/** Equal reads of all requests that wait. */
export interface PendingRead extends PlannedRead {
  readonly tried: Set<CallKey>;
  readonly waiters: Set<ReadWaiter>;
  /** The latest generation of its waiters. */
  generation: number;
}

/** Returns the waiters of these reads at this moment: some may be settled meanwhile. */
export function waitersOf(reads: readonly PendingRead[]): ReadWaiter[] {
  return reads.flatMap(({ waiters }) => [...waiters]);
}

/** Whether the next try of the call begins before the deadline. */
export function canWait({ request: { deadlineMs } }: ReadWaiter, { retryAtMs }: FailedCall): boolean {
  return deadlineMs >= retryAtMs;
}

/** A call in flight. */
export interface Flight {
  readonly key: CallKey;
  readonly sentAtMs: number;
  readonly generation: number;
  readonly billedTo: ReadWaiter;
  /** Resolves once the call has a connection, or has none. */
  readonly sending: PromiseWithResolvers<void>;
}
