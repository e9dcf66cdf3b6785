import type { CallerRequest } from '../common/caller-request.ts';
import type { StaleReason } from '../common/usage.ts';
import type { ReadKey } from '../pets/read-key.ts';
import type { Caller } from './caller.ts';

/** What a read has found at some moment, and how old that is. */
export interface PeekedResult {
  /** The very same object as before while nothing about it has changed. */
  readonly found: object | null;
  readonly asOfMs: number;
  readonly staleReason: StaleReason | undefined;
}

/** One read of a request, of whatever resource: only the read knows its key, and which reads of a caller it is one of. */
export interface RequestRead {
  /** The memory that it takes in a cached response: what it has found is that of the resource's own cache. */
  readonly bytes: number;
  /** Returns what the caller's cache has of it at this moment, and spends nothing; undefined where it would call or wait. */
  peek(caller: Caller, request: CallerRequest): PeekedResult | undefined;
  /** Returns the minimum time until a result of this age may be refreshed. */
  refreshWaitMs(caller: Caller, asOfMs: number, request: CallerRequest): number;
}

/** A read and what it has found, which it keeps from no garbage collector; null where there was nothing. */
export interface CachedRead {
  readonly read: RequestRead;
  readonly found: WeakRef<object> | null;
}

const READ_BYTES = 150;
const KEY_CHARACTER_BYTES = 2;

/** A list of pets, or one pet. */
export class PetRead implements RequestRead {
  readonly #key: ReadKey;

  constructor(key: ReadKey) {
    this.#key = key;
  }

  get bytes(): number {
    return READ_BYTES + KEY_CHARACTER_BYTES * this.#key.length;
  }

  peek({ reads }: Caller, request: CallerRequest): PeekedResult | undefined {
    return reads.peek(this.#key, request);
  }

  refreshWaitMs({ reads }: Caller, asOfMs: number, request: CallerRequest): number {
    return reads.refreshWaitMs({ key: this.#key, asOfMs }, request);
  }
}
