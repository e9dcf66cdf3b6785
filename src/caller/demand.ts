import type { Int64 } from '../int64.ts';
import type { Call, ListingName } from './call.ts';

/** One thing that a resolver wants: a listing, or one animal. */
export type Demand =
  | { readonly kind: 'listing'; readonly listing: ListingName }
  | { readonly kind: 'animal'; readonly id: Int64 };

/** The same text for equal demands, another for others: no listing's name is a number. */
export function demandKey(demand: Demand): string {
  return demand.kind === 'listing' ? demand.listing : demand.id;
}

/** The call that answers this demand and tells no more than that. */
export function ownCall(demand: Demand): Call {
  return demand.kind === 'listing' ? { kind: 'list', listing: demand.listing } : { kind: 'get', id: demand.id };
}
