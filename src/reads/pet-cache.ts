import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { heapShare } from '../heap.ts';
import type { Int64 } from '../int64.ts';
import { LISTS, isList } from './read-key.ts';
import type { Freshness } from './freshness.ts';
import type { ListName, ReadKey } from './read-key.ts';
import { answerFrom } from './snapshot.ts';
import type { Found, Snapshot } from './snapshot.ts';

export interface CachedEntry {
  readonly found: Found;
  /** By `clock.elapsed()`: what was found was true then or later. */
  readonly asOfMs: number;
}

/** Whether one list shows the whole store, as the last list of all pets showed it. */
export type StoreSize = 'large' | 'small' | 'unknown';

/** Bounds the memory that the snapshots of all callers take together; the least recently used go first. */
export type SnapshotMemory = LRUCache<Snapshot, () => void>;

const MAX_BYTES = 200_000_000;
const HEAP_SHARE = 0.25;
const SNAPSHOT_BYTES = 500;
/** A pet with its ids, a short name and its places in a list and a map. */
const PET_BYTES = 250;
const CHARACTER_BYTES = 2;

export function createSnapshotMemory(): SnapshotMemory {
  return new LRUCache<Snapshot, () => void>({
    maxSize: heapShare(HEAP_SHARE, MAX_BYTES),
    sizeCalculation: (_remove, { pets }) =>
      pets.reduce((sum, { name }) => sum + PET_BYTES + CHARACTER_BYTES * name.length, SNAPSHOT_BYTES),
    dispose: (remove) => remove(),
  });
}

export type PetCache = ReturnType<typeof createPetCache>;

/** The snapshots of one caller: the latest of each list and of each pet, as far as the memory of all callers allows. */
export function createPetCache(memory: SnapshotMemory, { elapsed }: Pick<Clock, 'elapsed'>) {
  const snapshots = new Map<ReadKey, { readonly snapshot: Snapshot; readonly generation: number }>();
  let generation = 0;

  return {
    /** Raised by each write. A snapshot of an earlier generation is never served. */
    generation: () => generation,
    /** The latest answer of this generation, however old. */
    find,
    /** The latest answer that the request accepts, and whether it is only accepted as a stale one. */
    findAccepted(key: ReadKey, { maxAgeMs, maxStaleMs }: Freshness) {
      const answer = find(key);
      if (!answer) return undefined;
      const ageMs = elapsed() - answer.asOfMs;
      return ageMs <= Math.max(maxAgeMs, maxStaleMs) ? { answer, isStale: ageMs > maxAgeMs } : undefined;
    },
    /** What is known in any generation. */
    known: (key: ReadKey) => latest(key, 0)?.found,
    store(snapshot: Snapshot) {
      const { key } = snapshot;
      const before = snapshots.get(key);
      if (before?.generation === generation && before.snapshot.asOfMs > snapshot.asOfMs) return;
      drop(key);
      snapshots.set(key, { snapshot, generation });
      memory.set(snapshot, () => {
        if (snapshots.get(key)?.snapshot === snapshot) snapshots.delete(key);
      });
    },
    /** A write may have changed the store. */
    invalidate() {
      generation += 1;
    },
    drop,
    clear() {
      generation += 1;
      for (const key of snapshots.keys()) drop(key);
    },
    size,
    /** Whether the list showed the pet when it was last called for, writes or not; undefined where it never was. */
    hasShown: (list: ListName, id: Int64) => snapshots.get(list)?.snapshot.byId.has(id),
    /** Whether anything else was called for. */
    hasOther: (key: ReadKey) => snapshots.size > (snapshots.has(key) ? 1 : 0),
    /** The lists that are known as of this moment or a later one. */
    freshLists(sinceMs: number): Set<ListName> {
      const isFresh = (list: ListName) => {
        const entry = snapshots.get(list);
        return entry?.generation === generation && entry.snapshot.asOfMs >= sinceMs;
      };
      return new Set(LISTS.filter(isFresh));
    },
  };

  function find(key: ReadKey): CachedEntry | undefined {
    return latest(key, generation);
  }

  function latest(key: ReadKey, fromGeneration: number): CachedEntry | undefined {
    let best: Snapshot | undefined;
    let found: Found | undefined;
    for (const call of isList(key) ? [key, 'all' as const] : [key, ...LISTS]) {
      const entry = snapshots.get(call);
      if (!entry || entry.generation < fromGeneration || (best && best.asOfMs >= entry.snapshot.asOfMs)) continue;
      const answer = answerFrom(entry.snapshot, key);
      if (answer === undefined) continue;
      best = entry.snapshot;
      found = answer;
    }
    if (!best || found === undefined) return undefined;
    // Counts as a use, so that the least recently used are evicted.
    memory.get(best);
    return { found, asOfMs: best.asOfMs };
  }

  function size(): StoreSize {
    const all = snapshots.get('all');
    if (!all) return 'unknown';
    return all.snapshot.isComplete ? 'small' : 'large';
  }

  function drop(key: ReadKey): void {
    const entry = snapshots.get(key);
    snapshots.delete(key);
    if (entry) memory.delete(entry.snapshot);
  }
}
