import type { Int64 } from '../int64.ts';
import { PET_STATUSES } from '../pet.ts';
import type { PetStatus } from '../pet.ts';

/** The listings that the upstream can be asked for: of all animals, or of those with a status. */
export type ListingName = PetStatus | 'all';

export const LISTINGS: readonly ListingName[] = ['all', ...PET_STATUSES];

/** One call to the upstream that reads. */
export type Call =
  | { readonly kind: 'list'; readonly listing: ListingName }
  | { readonly kind: 'get'; readonly id: Int64 };

/** The same text for equal calls, another for others. */
export function callKey(call: Call): string {
  return call.kind === 'list' ? `list ${call.listing}` : `get ${call.id}`;
}
