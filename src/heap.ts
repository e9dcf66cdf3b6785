import { getHeapStatistics } from 'node:v8';

/** Returns how many things of this size fit into a share of the heap, at most `max`: the heap is small in a small container. */
export function countInHeap(share: number, bytesEach: number, max: number): number {
  return Math.floor(Math.min(max, (share * getHeapStatistics().heap_size_limit) / bytesEach));
}
