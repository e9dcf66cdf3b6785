import { getHeapStatistics } from 'node:v8';
import type { Log } from './log.ts';

/** What one part of petql may keep: a share of the heap, at most so many bytes. */
interface Bound {
  readonly share: number;
  readonly maxBytes: number;
}

/**
 * What petql keeps on the heap for longer than a request. The rest of the heap is for petql itself, for garbage, and for these:
 *
 * - Requests that run: a result of 4 MiB, and a waiter for each read. Connections bound their number, and not that of `execute`.
 * - What a caller's own calls leave with it: 1,000 idempotency keys and failed calls, and 10,000 visitors, some 6 MB.
 * - Lists of 1,000 names: the keys that are being refused, and the documents of keys that are not proven.
 * - With a store, what it has not taken yet: settlements and outcomes of the calls under way.
 * - Without a store, 2.5 KB for each proven key of a day: to evict its account would exceed its plan.
 * - Without a store, idempotency records, which only the plan bounds: 0.6 KB for each keyed create of a day, so 60 MB for 100,000
 *   and 0.6 GB for a million.
 */
export const ON_HEAP = {
  callers: { share: 0.256, maxBytes: 230_000_000 },
  provisionalCallers: { share: 0.026, maxBytes: 23_000_000 },
  offlineCallers: { share: 0.02, maxBytes: 25_000_000 },
  snapshots: { share: 0.2, maxBytes: 200_000_000 },
  responses: { share: 0.06, maxBytes: 67_108_864 },
  documents: { share: 0.05, maxBytes: 24_000_000 },
  redisTexts: { share: 0.05, maxBytes: 20_000_000 },
  accounts: { share: 0.04, maxBytes: 50_000_000 },
  unprovenAccounts: { share: 0.01, maxBytes: 2_500_000 },
  consumers: { share: 0.01, maxBytes: 10_000_000 },
  connections: { share: 0.02, maxBytes: 12_500_000 },
  rejectedKeys: { share: 0.016, maxBytes: 5_000_000 },
} satisfies Record<string, Bound>;

/**
 * The bodies of requests, outside the heap. Upstream responses are there too, at most 1 MiB for each call under way, and so are
 * log lines that nobody reads, 1 MiB.
 */
export const OUTSIDE_HEAP = {
  largeBodies: { share: 0.125, maxBytes: 67_108_864 },
  /** 8 KiB for each of 5,000 connections. */
  smallBodies: { share: 1, maxBytes: 40_960_000 },
} satisfies Record<string, Bound>;

/** The part of the heap that petql itself takes after its first operations; measured. */
const OWN_BYTES = 40_000_000;

export type MemoryPart = keyof typeof ON_HEAP | keyof typeof OUTSIDE_HEAP;

const BOUNDS: Readonly<Record<MemoryPart, Bound>> = { ...ON_HEAP, ...OUTSIDE_HEAP };

/** Returns the bytes that a part may take: the heap is small in a small container. */
export function bytesFor(part: MemoryPart, heapBytes = heapLimit()): number {
  const { share, maxBytes } = BOUNDS[part];
  return Math.floor(Math.min(maxBytes, share * heapBytes));
}

/** Returns how many entries of this size a part may keep. */
export function entriesFor(part: MemoryPart, entryBytes: number): number {
  return Math.floor(bytesFor(part) / entryBytes);
}

/**
 * Returns the options of an lru-cache that holds so many entries. Its own `max` allocates room for all of them at
 * once: 0.4 MB and 2 ms for 20,000, most of what creating a gateway would cost.
 */
export function maxEntries(count: number) {
  return { maxSize: count, sizeCalculation: () => 1 };
}

/** Sets the newest entry of a map that holds so many at most. For each caller: an lru-cache would take 1.4 KB. */
export function setNewest<Key extends string, Value>(
  map: Map<Key, Value>,
  [key, value]: [Key, Value],
  max: number,
): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size > max) map.delete(oldest);
}

/** Returns the heap that petql needs with all parts full. */
export function neededHeap(heapBytes: number): number {
  const parts = Object.keys(ON_HEAP) as (keyof typeof ON_HEAP)[];
  return parts.reduce((sum, part) => sum + bytesFor(part, heapBytes), OWN_BYTES);
}

/** Warns where the heap is too small for petql and all that it may keep. */
export function checkHeap(log: Log): void {
  const heapBytes = heapLimit();
  if (neededHeap(heapBytes) <= heapBytes) return;
  const heapMb = Math.floor(heapBytes / 1e6);
  log.warn({ heapMb }, 'the heap is too small for the caches; give the process more memory');
}

function heapLimit(): number {
  return getHeapStatistics().heap_size_limit;
}
