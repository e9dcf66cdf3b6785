import DataLoader from 'dataloader';
import type { CallerRequest } from '../common/caller-request.ts';
import type { Clock } from '../common/clock.ts';
import { PetqlError } from '../common/errors.ts';
import type { OperationEvent } from '../common/events.ts';
import type { Int64 } from '../pets/int64.ts';
import type { Pet } from '../pets/pet.ts';
import type { ListName, ReadKey } from '../pets/read-key.ts';
import type { Found } from '../pets/snapshot.ts';
import type { PetReads } from '../reads/pet-reads.ts';
import type { ServedResult } from '../reads/read-waiter.ts';
import type { Wait } from '../quota/account/wait.ts';
import type { Writes } from '../writes/writes.ts';
import type { Caller } from './caller.ts';
import type { Callers } from './callers.ts';
import type { QuotaView } from './quota.ts';
import { UsageMeter } from './usage-meter.ts';
import type { Usage } from '../common/usage.ts';

/**
 * What a resolver sees of its request. Every failure is a PetqlError. In a dry run everything is null: it gets the same keys as the
 * run, so that it cannot know less of a read.
 */
export interface Pets {
  /** The pets of a list. */
  read(list: ListName): Promise<readonly Pet[]> | null;
  /** The pet, or null when there is none. */
  read(id: Int64): Promise<Pet | null> | null;
  /** Runs one write, whatever it does; a dry run counts it. */
  write<T>(run: (writes: Writes, request: CallerRequest) => Promise<T>): Promise<T> | null;
  /** What the reads beside it have left of the quota. */
  readQuota(): Promise<RateLimit | null>;
}

/** A quota, and the calls that wait for it in this process. */
export interface RateLimit extends QuotaView {
  readonly queued: number;
}

/** What an operation would read and write. */
export interface ReadsAndWrites {
  readonly reads: readonly ReadKey[];
  readonly writes: number;
}

/** A read and what it found, which it keeps from no garbage collector; null where there was nothing. */
export type CachedRead = readonly [key: ReadKey, found: WeakRef<NonNullable<Found>> | null];

/** What the cache did for the reads of a request. */
export interface CacheUse {
  /** Whether it served all of them. */
  readonly isHit: boolean;
  /** Whether a call answered more than one of them, or those of other requests too. */
  readonly hasSharedCall: boolean;
  /** Whether the request takes nothing from the cache. */
  readonly isUncachedWanted: boolean;
}

/** The reads of one request. */
interface RequestReads {
  /** Makes equal reads one, and those of one tick one batch. */
  readonly loader: DataLoader<ReadKey, Found>;
  readonly loads: Set<Promise<Found>>;
  /** What each read has found. */
  readonly found: Map<ReadKey, Found>;
}

/**
 * One request: its API key, its reads and writes, and what they cost. Without a key that the upstream accepts, each of them throws
 * at once, so that the whole field fails with one error.
 */
export class RequestContext implements Pets {
  /** Why nothing can be read or written: there is no API key, or the upstream rejected it. Undefined otherwise. */
  readonly keyError: PetqlError | undefined;
  readonly #callers: Callers;
  readonly #apiKey: string | PetqlError;
  readonly #request: CallerRequest;
  readonly #clock: Clock;
  readonly #meter: UsageMeter;
  /** Undefined before the first read, write or look at the quota: anybody can make up API keys. */
  #caller: Caller | undefined;
  /** Undefined before the first read: a hit needs none. */
  #reads: RequestReads | undefined;
  /** Whether the response is made of reads only. */
  #isRepeatable: boolean;

  /** @param apiKey the API key, or why there is none. */
  constructor(request: CallerRequest, apiKey: string | PetqlError, callers: Callers, clock: Clock) {
    this.#request = request;
    this.#apiKey = apiKey;
    this.#callers = callers;
    this.#clock = clock;
    this.#meter = new UsageMeter(request, clock);
    this.keyError = apiKey instanceof PetqlError ? apiKey : callers.keyError(apiKey);
    this.#isRepeatable = this.keyError === undefined && !request.isDryRun;
  }

  read(list: ListName): Promise<readonly Pet[]>;
  read(id: Int64): Promise<Pet | null>;
  read(key: ReadKey): Promise<Found> {
    const { reads } = this.#useAccepted();
    this.#reads ??= this.#beginReads(reads);
    const { loader, loads } = this.#reads;
    const loading = loader.load(key);
    loads.add(loading);
    return loading;
  }

  write<T>(run: (writes: Writes, request: CallerRequest) => Promise<T>): Promise<T> {
    this.#isRepeatable = false;
    return run(this.#useAccepted().writes, this.#request);
  }

  async readQuota(): Promise<RateLimit> {
    this.#isRepeatable = false;
    const caller = this.#useCaller();
    // Resolvers run in one turn, so the reads after this field count too.
    await Promise.resolve();
    if (this.#reads) await Promise.allSettled(this.#reads.loads);
    return { ...(await caller.readQuota(this.#request.visitor)), queued: caller.queued };
  }

  /** Whether the request wants to know its cost alone. */
  get isDryRun(): boolean {
    return this.#request.isDryRun;
  }

  /** The hash of the API key, for the log; undefined where the request has none. */
  get keyName(): string | undefined {
    return this.#apiKey instanceof PetqlError ? undefined : this.#callers.nameOf(this.#apiKey);
  }

  /** What the request has cost so far. */
  get usage(): Usage {
    return { ...this.#meter.usage, freshAt: this.#freshAt };
  }

  get #freshAt(): string | undefined {
    const { stalestRead } = this.#meter;
    if (!stalestRead || !this.#caller || !this.#request.freshness.mayCall) return undefined;
    const waitMs = this.#caller.reads.refreshWaitMs(stalestRead, this.#request);
    return new Date(this.#clock.now() + Math.ceil(waitMs)).toISOString();
  }

  /** What the cache did for the reads of this request; undefined where it read nothing. */
  get cacheUse(): CacheUse | undefined {
    const { upstreamCalls, savedCalls } = this.#meter.usage;
    const { loads, found } = this.#reads ?? {};
    if (!loads && savedCalls === 0) return undefined;

    const hasSharedCall = this.#meter.savings.SHARED_CALL !== undefined;
    const hasFailed = loads?.size !== found?.size;
    return {
      isHit: upstreamCalls === 0 && !hasSharedCall && !hasFailed,
      hasSharedCall,
      isUncachedWanted: this.#request.freshness.maxAgeMs < 0,
    };
  }

  /** How many reads have cost no call of their own so far, by the reason. */
  get savings(): OperationEvent['savings'] {
    return this.#meter.savings;
  }

  /** Counts the operation for its API key, once it has ended. */
  record(operation: OperationEvent): void {
    this.#caller?.record(operation);
  }

  /** The quota as this process knows it, or the visitor's share of it, for the headers; undefined before the first call. */
  get latestQuota(): QuotaView | undefined {
    return this.#knownCaller?.quota(this.#request.visitor);
  }

  /** The quota of the whole key, for the log. */
  get latestKeyQuota(): QuotaView | undefined {
    return this.#knownCaller?.quota();
  }

  /** Returns the maximum of calls that this can cost now, retries aside; 0 without an API key. */
  maxCalls({ reads, writes }: ReadsAndWrites): number {
    if (this.#apiKey instanceof PetqlError) return 0;
    return this.#useCaller().maxCalls(reads, this.#request.freshness) + writes;
  }

  /** Returns the minimum wait of the last of these calls for the quota. */
  async waitFor(calls: number): Promise<Wait> {
    if (this.#apiKey instanceof PetqlError) return { waitMs: 0, window: undefined };
    return this.#useCaller().waitFor(calls, this.#request);
  }

  /** What the request has read, for `repeat`; undefined where its response depends on anything else. */
  get cachedReads(): readonly CachedRead[] | undefined {
    if (!this.#isRepeatable) return undefined;
    return [...(this.#reads?.found ?? [])].map(([key, found]) => [key, found && new WeakRef(found)]);
  }

  /**
   * Reads the same again and counts it, where the cache alone has the very same result of each: a new snapshot keeps the
   * objects that did not change. Otherwise returns false, and spends, counts and logs nothing.
   */
  repeat(repeated: readonly CachedRead[]): boolean {
    if (!this.#isRepeatable) return false;
    const { reads } = this.#useCaller();
    const results: [key: ReadKey, result: ServedResult][] = [];
    for (const [key, before] of repeated) {
      const result = reads.peek(key, this.#request);
      if (!result || result.found !== (before && before.deref())) return false;
      results.push([key, result]);
    }

    for (const [key, result] of results) this.#meter.recordRead(key, result, result.staleReason ?? 'FRESH');
    return true;
  }

  /** Ends the request's use of its caller. */
  end(): void {
    if (this.#caller) this.#callers.end(this.#caller);
  }

  #beginReads(reads: PetReads): RequestReads {
    const found = new Map<ReadKey, Found>();
    return { loader: new DataLoader((keys) => this.#load(keys, reads, found)), loads: new Set(), found };
  }

  /** DataLoader's batch function. */
  async #load(keys: readonly ReadKey[], reads: PetReads, found: RequestReads['found']): Promise<(Error | Found)[]> {
    const results = await reads.load(keys, this.#request);
    return results.map((result, index) => {
      if (result instanceof Error) return result;
      const saved = result.staleReason ?? (result.waiter ? 'SHARED_CALL' : 'FRESH');
      const key = keys[index] as ReadKey;
      this.#meter.recordRead(key, result, result.waiter?.isBilled ? undefined : saved);
      found.set(key, result.found);
      return result.found;
    });
  }

  get #knownCaller(): Caller | undefined {
    return this.#caller ?? (this.#apiKey instanceof PetqlError ? undefined : this.#callers.find(this.#apiKey));
  }

  /** @throws PetqlError where nothing can be read or written. */
  #useAccepted(): Caller {
    if (this.keyError) throw this.keyError;
    return this.#useCaller();
  }

  /** @throws PetqlError without an API key. */
  #useCaller(): Caller {
    if (this.#apiKey instanceof PetqlError) throw this.#apiKey;
    this.#caller ??= this.#callers.begin(this.#apiKey);
    return this.#caller;
  }
}
