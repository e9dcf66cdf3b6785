import { getHeapStatistics } from 'node:v8';

/** Returns the bytes of a share of the heap, at most `maxBytes`: the heap is small in a small container. */
export function heapShare(share: number, maxBytes: number): number {
  return Math.floor(Math.min(maxBytes, share * getHeapStatistics().heap_size_limit));
}
