import type { Pet } from '../pet.ts';

/** The first animals of a listing, up to a limit; the same list again for the same listing and limit. */
export type FirstAnimals = (listing: readonly Pet[], limit: number) => readonly Pet[];

/** Of one listing; operations ask for few different limits. */
const MOST_LIMITS = 4;

/** Whoever has written a list down recognises it, and need not do so again. */
export function createFirstAnimals(): FirstAnimals {
  const cut = new WeakMap<readonly Pet[], Map<number, readonly Pet[]>>();
  return (listing, limit) => {
    if (listing.length <= limit) return listing;
    const known = cut.get(listing) ?? new Map<number, readonly Pet[]>();
    const first = known.get(limit) ?? listing.slice(0, limit);
    if (!known.has(limit)) {
      if (known.size === MOST_LIMITS) known.clear();
      known.set(limit, first);
      cut.set(listing, known);
    }
    return first;
  };
}
