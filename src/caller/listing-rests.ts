import type { Clock } from '../clock.ts';
import type { ListingName } from './call.ts';
import type { FailureScope } from './failure-scope.ts';

/**
 * Keeps calls that would save others off a listing that does not come: they would be spent in vain, and whatever else was asked
 * for would fail with it. The longer it has not come, the more it has to save to be worth a call. Whoever wants that very
 * listing is sent for it all the same.
 */
export interface ListingRests {
  /** How many demands each that rests must help at this moment; the same object until that changes. */
  resting(): RestingListings;
  came(listing: ListingName): void;
  failed(listing: ListingName, scope: FailureScope): void;
}

export type RestingListings = ReadonlyMap<ListingName, number>;

export const NONE_REST: RestingListings = new Map();

/** How many failures each counts for: an animal that breaks the contract spoils each listing with it, until somebody mends it. */
const FAILURES = { call: 5, passing: 1 } as const;
/** One that may pass is no reason yet. */
const ENOUGH_FAILURES = 2;
/** More than one operation asks for. */
const MOST_TO_HELP = 128;
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = { call: 3_600_000, passing: 60_000 } as const;

interface Failing {
  /** In a row. */
  failures: number;
  /** How long the last rest was; 0 where there was none. */
  restMs: number;
  /** By `clock.elapsed()`. */
  untilMs: number;
}

export function createListingRests({ elapsed }: Pick<Clock, 'elapsed'>): ListingRests {
  const failing = new Map<ListingName, Failing>();
  let resting = NONE_REST;

  return {
    resting() {
      if (failing.size === 0) return (resting = NONE_REST);
      const nowMs = elapsed();
      const now = new Map<ListingName, number>();
      for (const [listing, { failures, untilMs }] of failing) {
        if (nowMs < untilMs) now.set(listing, Math.min(2 ** failures, MOST_TO_HELP));
      }
      if (!areSame(now, resting)) resting = now;
      return resting;
    },
    came: (listing) => void failing.delete(listing),
    failed(listing, scope) {
      // Whatever else is asked for fails as well.
      if (scope === 'service') return;
      const nowMs = elapsed();
      const one = failing.get(listing) ?? { failures: 0, restMs: 0, untilMs: -Infinity };
      failing.set(listing, one);
      one.failures += FAILURES[scope];
      if (one.failures < ENOUGH_FAILURES || nowMs < one.untilMs) return;
      one.restMs = one.restMs === 0 ? FIRST_REST_MS : Math.min(one.restMs * 2, LONGEST_REST_MS[scope]);
      one.untilMs = nowMs + one.restMs;
    },
  };
}

function areSame(one: RestingListings, other: RestingListings): boolean {
  if (one.size !== other.size) return false;
  for (const [listing, most] of one) if (other.get(listing) !== most) return false;
  return true;
}
