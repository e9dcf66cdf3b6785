import type { Int64 } from '../pets/int64.ts';
import type { GetRoute } from '../pets/get-route.ts';
import type { PetCache } from '../reads/cache/pet-cache.ts';
import { ALL_PETS, LISTS, isList, isWider } from '../pets/read-key.ts';
import type { ListName, ReadKey } from '../pets/read-key.ts';

/** What an operation would read and write. */
export interface ReadsAndWrites {
  readonly reads: readonly ReadKey[];
  readonly writes: number;
}

/**
 * Returns the maximum of calls that these reads can cost, retries aside: one for each different read that is not fresh, and one
 * for each list that the planner may try to save some of them.
 *
 * @param sinceMs by `clock.elapsed()`: a cached entry from before this is not fresh.
 */
export function estimateCalls(
  keys: readonly ReadKey[],
  sinceMs: number,
  { cache, getRoute }: { readonly cache: PetCache; readonly getRoute: GetRoute },
): number {
  const needed = new Set(keys.filter((key) => (cache.find(key)?.asOfMs ?? -Infinity) < sinceMs));
  const lists = [...needed].filter(isList);
  const pets = [...needed].filter((key): key is Int64 => !isList(key));

  const freshLists = cache.freshLists(sinceMs);
  const mayBeTried = (list: ListName) => {
    // Another call for a fresh list would show nothing more.
    if (needed.has(list) || freshLists.has(list)) return false;
    // While the circuit of single reads is open, a probe may close it at any moment.
    if (pets.length > 0 && !getRoute.isHealthy) return true;
    // Other operations may read at the same time, so that a wider list is worth a call.
    const mayAnswer = lists.some((key) => isWider(list, key)) || (list === ALL_PETS && pets.length > 0);
    return (mayAnswer && cache.sizeOf(list) !== 'large') || pets.some((id) => cache.hasShown(list, id));
  };

  const tried = needed.size === 0 ? 0 : LISTS.filter(mayBeTried).length;
  const gets = getRoute.mayGet ? pets.length : 0;
  return lists.length + gets + tried;
}
