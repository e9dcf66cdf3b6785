import DataLoader from 'dataloader';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { Int64 } from '../pets/int64.ts';
import type { NewPet, Pet, PetFilter } from '../pets/pet.ts';
import type { PetReads } from '../reads/pet-reads.ts';
import { listOf } from '../pets/read-key.ts';
import type { ReadKey } from '../pets/read-key.ts';
import type { ReadRequest, ReadResult, RequestTerms, ServedResult } from '../reads/read-request.ts';
import type { Found } from '../pets/snapshot.ts';
import type { ToldTime } from '../throttle/line-call.ts';
import type { RequestWait, Spans } from '../tracing.ts';
import type { Writes } from '../writes/writes.ts';
import type { Created } from '../writes/create-outcome.ts';
import type { WriteRequest } from '../writes/write-sender.ts';
import { UsageMeter } from './usage.ts';
import type { SavedCalls, Usage } from './usage.ts';

/** What a resolver reads and writes. Every failure is a PetqlError. In a dry run everything is null. */
export interface Pets {
  /** Up to `limit` pets with this status, or of all. */
  readonly list: (filter: PetFilter, limit: number) => Promise<readonly Pet[]> | null;
  /** The pet, or null when there is none. */
  readonly byId: (id: Int64) => Promise<Pet | null> | null;
  /** @param idempotencyKey makes all creates with it within a day one create with one outcome. */
  readonly create: (pet: NewPet, idempotencyKey?: string) => Promise<Created | { readonly pet: null }>;
}

/** A read and what it found. */
export type CachedRead = readonly [key: ReadKey, found: Found];

interface RequestPetsOptions {
  readonly clock: Clock;
  readonly spans: Spans;
  readonly reads: PetReads;
  readonly writes: Writes;
  readonly request: RequestTerms;
}

/** The reads and writes of one request, with their usage. */
export class RequestPets implements Pets {
  readonly #options: RequestPetsOptions;
  readonly #meter: UsageMeter;
  /** Makes equal reads one, and those of one tick one batch. */
  readonly #loader: DataLoader<ReadKey, Found>;
  readonly #loads = new Set<Promise<Found>>();
  /** What each read has found. */
  readonly #found = new Map<ReadKey, Found>();
  readonly #told: ToldTime = { atMs: -Infinity };
  #hasWritten = false;

  constructor(options: RequestPetsOptions) {
    this.#options = options;
    this.#meter = new UsageMeter(options.clock);
    this.#loader = new DataLoader((keys) => this.#load(keys));
  }

  async list(filter: PetFilter, limit: number): Promise<readonly Pet[]> {
    const pets = (await this.#read(listOf(filter))) as readonly Pet[];
    return pets.length > limit ? pets.slice(0, limit) : pets;
  }

  byId(id: Int64): Promise<Pet | null> {
    return this.#read(id) as Promise<Pet | null>;
  }

  create(pet: NewPet, idempotencyKey?: string): Promise<Created> {
    return this.#options.writes.create(pet, { ...this.#writeRequest(), idempotencyKey });
  }

  /** Resolves once the reads of this request are over. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#loads);
  }

  /** What the request has cost so far. */
  get usage(): Usage {
    return this.#meter.usage;
  }

  /** The reads that cost no call of their own. */
  get savings(): SavedCalls {
    return this.#meter.savings;
  }

  /** What it has read so far, for `repeat`; undefined once it has written. */
  get cachedReads(): readonly CachedRead[] | undefined {
    return this.#hasWritten ? undefined : [...this.#found];
  }

  /**
   * Reads the same again and counts it, where the cache alone has the very same result of each: a new snapshot keeps the
   * objects that did not change. Otherwise returns false, and spends, counts and logs nothing.
   */
  repeat(repeated: readonly CachedRead[]): boolean {
    const { reads, request } = this.#options;
    const results: ServedResult[] = [];
    for (const [key, before] of repeated) {
      const result = reads.peek(key, request);
      if (result?.found !== before) return false;
      results.push(result);
    }

    for (const result of results) this.#meter.recordRead(result, result.staleReason ?? 'FRESH');
    return true;
  }

  #read(key: ReadKey): Promise<Found> {
    const loading = this.#loader.load(key);
    this.#loads.add(loading);
    return loading;
  }

  /** DataLoader's batch function. */
  async #load(keys: readonly ReadKey[]): Promise<(Error | Found)[]> {
    const { clock, reads, request } = this.#options;
    const startedAtMs = clock.elapsed();
    const recordWait = (refused?: string) =>
      this.#recordWait({ kind: 'read', waitedMs: clock.elapsed() - startedAtMs, refused });
    /** The reads that a call was billed to. */
    const billed = new Set<ReadKey>();
    const batch: ReadRequest = {
      ...request,
      told: this.#told,
      onPermit: () => recordWait(),
      onBilled: (key) => {
        billed.add(key);
        this.#meter.recordCall();
      },
    };
    const results = await reads.load(keys, batch);

    // The reads of a batch are refused together.
    const unbilled = results.filter((_result, index) => !billed.has(keys[index] as ReadKey));
    const refused = unbilled.map(refusalOf).find((reason) => reason !== undefined);
    if (refused !== undefined) recordWait(refused);

    return results.map((result, index) => {
      const key = keys[index] as ReadKey;
      if (result instanceof Error) return result;
      const saved = result.staleReason ?? (result.hasWaited ? 'SHARED_CALL' : 'FRESH');
      this.#meter.recordRead(result, billed.has(key) ? undefined : saved);
      this.#found.set(key, result.found);
      return result.found;
    });
  }

  /** Returns the terms of a write. A request that writes is never repeated from the cache. */
  #writeRequest(): WriteRequest {
    this.#hasWritten = true;
    return {
      ...this.#options.request,
      told: this.#told,
      onBilled: () => this.#meter.recordCall(),
      onWaited: (waitedMs, refused) => this.#recordWait({ kind: 'write', waitedMs, refused }),
    };
  }

  #recordWait(wait: RequestWait): void {
    this.#options.spans.waited(wait, this.#options.request.trace);
  }
}

/** Returns why a read got no permit; undefined where it was not refused. */
function refusalOf(result: ReadResult): string | undefined {
  if (result instanceof PetqlError) return result.code === 'RATE_LIMITED' ? result.code : undefined;
  if (result instanceof Error || !result.hasWaited) return undefined;
  const { staleReason } = result;
  return staleReason === 'QUOTA_EXHAUSTED' || staleReason === 'PAUSED' ? staleReason : undefined;
}
