import DataLoader from 'dataloader';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { Int64 } from '../int64.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import type { ReadRequest, ReadResult, RequestTerms, ServedResult } from '../reads/read-request.ts';
import type { PetReads } from '../reads/pet-reads.ts';
import type { ReadKey } from '../reads/read-key.ts';
import type { Found } from '../reads/snapshot.ts';
import type { RequestWait, Spans } from '../tracing.ts';
import type { Writes } from '../writes/create-pet.ts';
import type { Created } from '../writes/idempotency.ts';
import { createUsageMeter } from './usage.ts';

/** What a resolver reads and writes. Every failure is a PetqlError. */
export interface Pets {
  /** Up to `limit` pets with this status, or of all. */
  readonly list: (status: PetStatus | undefined, limit: number) => Promise<readonly Pet[]> | readonly Pet[];
  /** The pet, or null when there is none. */
  readonly byId: (id: Int64) => Promise<Pet | null> | Pet | null;
  /** @param idempotencyKey makes it one creation, however often it is submitted within a day. */
  readonly create: (pet: NewPet, idempotencyKey?: string) => Promise<Created>;
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

export type RequestPets = ReturnType<typeof createRequestPets>;

/**
 * The reads and writes of one request, with their usage. One DataLoader a request: equal reads are one, and those of one tick
 * are one batch.
 */
export function createRequestPets({ reads, writes, clock, spans, request }: RequestPetsOptions) {
  const meter = createUsageMeter(clock);
  const found = new Map<ReadKey, Found>();
  let hasWritten = false;
  const loader = new DataLoader<ReadKey, Found>(load);
  const loads = new Set<Promise<Found>>();

  const pets: Pets = {
    async list(status, limit) {
      const all = (await read(status ?? 'all')) as readonly Pet[];
      return all.length > limit ? all.slice(0, limit) : all;
    },
    byId: (id) => read(id) as Promise<Pet | null>,
    create(pet, idempotencyKey) {
      hasWritten = true;
      return writes.create(pet, {
        ...request,
        idempotencyKey,
        charge: () => meter.called(),
        waited: (waitedMs, refused) => onWaited({ kind: 'write', waitedMs, refused }),
      });
    },
  };

  return {
    ...pets,
    /** Resolves once the reads of this request are over. */
    async settled(): Promise<void> {
      await Promise.allSettled(loads);
    },
    get usage() {
      return meter.usage();
    },
    /** The reads that cost no call of their own. */
    get savings() {
      return meter.saved();
    },
    /** What it has read so far, for `repeat`; undefined once it has written. */
    get cachedReads(): readonly CachedRead[] | undefined {
      return hasWritten ? undefined : [...found];
    },
    /**
     * Reads the same again and counts it, where the cache alone has the very same result of each: a new snapshot keeps the
     * objects that did not change. Otherwise returns false, and spends, counts and logs nothing.
     */
    repeat(repeated: readonly CachedRead[]): boolean {
      const answers: ServedResult[] = [];
      for (const [key, before] of repeated) {
        const answer = reads.peek(key, request);
        if (answer?.found !== before) return false;
        answers.push(answer);
      }
      for (const answer of answers) meter.answered(answer, answer.staleReason ?? 'FRESH');
      return true;
    },
  };

  function onWaited(wait: RequestWait): void {
    spans.waited(wait, request.trace);
  }

  function read(key: ReadKey): Promise<Found> {
    const loading = loader.load(key);
    loads.add(loading);
    return loading;
  }

  async function load(keys: readonly ReadKey[]): Promise<(Error | Found)[]> {
    const startedAtMs = clock.elapsed();
    const waited = (refused?: string) => onWaited({ kind: 'read', waitedMs: clock.elapsed() - startedAtMs, refused });
    /** The reads that a call was billed to. */
    const billed = new Set<ReadKey>();
    const batch: ReadRequest = {
      ...request,
      onPermit: () => waited(),
      onBilled(key) {
        billed.add(key);
        meter.called();
      },
    };
    const answers = await reads.load(keys, batch);
    const unbilled = answers.filter((_answer, index) => !billed.has(keys[index] as ReadKey));
    // The reads of a batch are refused together.
    const refused = unbilled.map(refusalOf).find((reason) => reason !== undefined);
    if (refused !== undefined) waited(refused);
    return answers.map((answer, index) => {
      const key = keys[index] as ReadKey;
      if (answer instanceof Error) return answer;
      const saved = answer.staleReason ?? (answer.hasWaited ? 'SHARED_CALL' : 'FRESH');
      meter.answered(answer, billed.has(key) ? undefined : saved);
      found.set(key, answer.found);
      return answer.found;
    });
  }
}

/** Why a read got no permit; undefined where it was not refused. */
function refusalOf(answer: ReadResult): string | undefined {
  if (answer instanceof PetqlError) return answer.code === 'RATE_LIMITED' ? answer.code : undefined;
  if (answer instanceof Error || !answer.hasWaited) return undefined;
  const { staleReason } = answer;
  return staleReason === 'QUOTA_EXHAUSTED' || staleReason === 'PAUSED' ? staleReason : undefined;
}
