import type { PetqlError } from '../errors.ts';
import type { PlannedRead } from './call-planner.ts';
import type { CallKey } from './cache/read-key.ts';
import type { ReadRequest, ReadResult } from './read-request.ts';

/** One read of one request that waits for a call. */
export interface ReadWaiter {
  readonly read: PendingRead;
  readonly request: ReadRequest;
  /** Generation at arrival. */
  readonly generation: number;
  /** Send time of the oldest call that may answer it. */
  readonly notBeforeMs: number;
  /** Whether the request accepts a stale entry that is cached: then the read does not wait for the quota. */
  readonly isRefresh: boolean;
  /** When its deadline came, Infinity before. After that it waits only for calls that were sent before. */
  lateSinceMs: number;
  /** Resolves once the call that may be billed to it is sent, or fails to be; undefined without such a call. */
  sending: Promise<void> | undefined;
  /** The error of a call that it waited for. */
  failed: PetqlError | undefined;
  readonly result: PromiseWithResolvers<ReadResult>;
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

/** A call in flight. */
export interface Flight {
  readonly key: CallKey;
  readonly sentAtMs: number;
  readonly generation: number;
  /** Whether it is an early retry (failed-calls.ts). */
  readonly isRetry: boolean;
  readonly billedTo: ReadWaiter | undefined;
  /** Resolves once the call has a connection, or has none. */
  readonly sending: PromiseWithResolvers<void>;
}

/** Rule 3: read your writes, and no response from before the moment that the request names. */
export function accepts(waiter: ReadWaiter, { sentAtMs, generation }: Flight): boolean {
  return generation >= waiter.generation && sentAtMs >= waiter.notBeforeMs;
}
