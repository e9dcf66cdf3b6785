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
import type { Wait } from '../quota/account/wait.ts';
import type { Writes } from '../writes/writes.ts';
import type { Caller } from './caller.ts';
import type { Callers } from './callers.ts';
import type { QuotaView } from './quota.ts';
import { PetRead } from './request-read.ts';
import type { CachedRead, PeekedResult, RequestRead } from './request-read.ts';
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

/** What the cache did for the reads of a request. */
export interface CacheUse {
  /** Whether it served all of them. */
  readonly isHit: boolean;
  /** Whether a call answered more than one of them, or those of other requests too. */
  readonly hasSharedCall: boolean;
  /** Whether the request takes nothing from the cache. */
  readonly isUncachedWanted: boolean;
}

/** The reads of one request, of any resource. */
interface RequestReads {
  readonly loads: Set<Promise<unknown>>;
  /** Those that have ended well, and what each has found. */
  readonly found: { readonly read: RequestRead; readonly found: object | null }[];
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
  /** Makes equal reads of pets one, and those of one tick one batch. */
  #pets: DataLoader<ReadKey, Found> | undefined;
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
    this.#throwKeyError();
    const { reads } = this.#useForReads();
    this.#reads ??= { loads: new Set(), found: [] };
    const { loads, found } = this.#reads;
    this.#pets ??= new DataLoader((keys) => this.#loadPets(keys, reads, found));
    const loading = this.#pets.load(key);
    loads.add(loading);
    return loading;
  }

  write<T>(run: (writes: Writes, request: CallerRequest) => Promise<T>): Promise<T> {
    this.#throwKeyError();
    return run(this.#useCaller().writes, this.#request);
  }

  async readQuota(): Promise<RateLimit> {
    const caller = this.#useCaller();
    // Resolvers run in one turn, so the reads after this field count too.
    await Promise.resolve();
    await this.#endOfReads();
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
    const waitMs = stalestRead.read.refreshWaitMs(this.#caller, stalestRead.asOfMs, this.#request);
    return new Date(this.#clock.now() + Math.ceil(waitMs)).toISOString();
  }

  /** What the cache did for the reads of this request; undefined where it read nothing. */
  get cacheUse(): CacheUse | undefined {
    const { upstreamCalls, savedCalls } = this.#meter.usage;
    if (!this.#reads && savedCalls === 0) return undefined;

    const hasSharedCall = this.#meter.savings.SHARED_CALL !== undefined;
    const hasFailed = this.#reads?.loads.size !== this.#reads?.found.length;
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
    return this.#useForReads().maxCalls(reads, this.#request.freshness) + writes;
  }

  /** Returns the minimum wait of the last of these calls for the quota. */
  async waitFor(calls: number): Promise<Wait> {
    if (this.#apiKey instanceof PetqlError) return { waitMs: 0, window: undefined };
    return this.#useCaller().waitFor(calls, this.#request);
  }

  /** What the request has read, for `repeat`; undefined where its response depends on anything else. */
  get cachedReads(): readonly CachedRead[] | undefined {
    if (!this.#isRepeatable) return undefined;
    return (this.#reads?.found ?? []).map(({ read, found }) => ({ read, found: found && new WeakRef(found) }));
  }

  /**
   * Reads the same again and counts it, where the cache alone has the very same result of each: a new snapshot keeps the
   * objects that did not change. Otherwise returns false, and spends, counts and logs nothing.
   */
  repeat(repeated: readonly CachedRead[]): boolean {
    if (!this.#isRepeatable) return false;
    const caller = this.#useForReads();
    const results: [read: RequestRead, result: PeekedResult][] = [];
    for (const { read, found } of repeated) {
      const result = read.peek(caller, this.#request);
      if (!result || result.found !== (found && found.deref())) return false;
      results.push([read, result]);
    }

    for (const [read, result] of results) this.#meter.recordRead(read, result, result.staleReason ?? 'FRESH');
    return true;
  }

  /** Ends the request's use of its caller. */
  end(): void {
    if (this.#caller) this.#callers.end(this.#caller);
  }

  /** Resolves once no read is under way: what one has found may be read on. */
  async #endOfReads(): Promise<void> {
    const loads = this.#reads?.loads ?? new Set();
    for (let ended = 0; ended < loads.size;) {
      ended = loads.size;
      await Promise.allSettled(loads);
      await new Promise(setImmediate);
    }
  }

  /** DataLoader's batch function. */
  async #loadPets(keys: readonly ReadKey[], reads: PetReads, found: RequestReads['found']): Promise<(Error | Found)[]> {
    const results = await reads.load(keys, this.#request);
    return results.map((result, index) => {
      if (result instanceof Error) return result;
      const saved = result.staleReason ?? (result.waiter ? 'SHARED_CALL' : 'FRESH');
      const read = new PetRead(keys[index] as ReadKey);
      this.#meter.recordRead(read, result, result.waiter?.isBilled ? undefined : saved);
      found.push({ read, found: result.found });
      return result.found;
    });
  }

  get #knownCaller(): Caller | undefined {
    return this.#caller ?? (this.#apiKey instanceof PetqlError ? undefined : this.#callers.find(this.#apiKey));
  }

  /** @throws PetqlError where nothing can be read or written. */
  #throwKeyError(): void {
    if (this.keyError) throw this.keyError;
  }

  /**
   * The caller, for anything but reads that `cachedReads` has: the response is not repeated.
   *
   * @throws PetqlError without an API key.
   */
  #useCaller(): Caller {
    this.#isRepeatable = false;
    return this.#useForReads();
  }

  /** @throws PetqlError without an API key. */
  #useForReads(): Caller {
    if (this.#apiKey instanceof PetqlError) throw this.#apiKey;
    this.#caller ??= this.#callers.begin(this.#apiKey);
    return this.#caller;
  }
}
