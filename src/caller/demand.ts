import type { Int64 } from '../int64.ts';
import type { PetStatus } from '../pet.ts';

/** One thing that a resolver wants: the animals with a status (or all of them), or one animal. */
export type Demand =
  | { readonly kind: 'listing'; readonly status: PetStatus | undefined }
  | { readonly kind: 'animal'; readonly id: Int64 };

/** The same text for equal demands, another for others. */
export function demandKey(demand: Demand): string {
  return demand.kind === 'listing' ? `listing ${demand.status ?? ''}` : `animal ${demand.id}`;
}
