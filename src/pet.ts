import type { Int64 } from './int64.ts';

/** pet-api.md, PetStatus. */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;

export type PetStatus = (typeof PET_STATUSES)[number];

/** A pet in the store. One without a status is in no filtered list. */
export interface Pet {
  readonly id: Int64;
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus | undefined;
}

/** Compared by `===`. A field that is no text needs a comparison of its own here, and a weight in the cache of snapshots. */
type TextFields = { readonly [Field in keyof Pet]-?: Pet[Field] extends string | undefined ? true : never };
const PET_FIELDS: TextFields = { id: true, name: true, categoryId: true, status: true };

/** Whether all fields are equal. The response cache serves a response again while its pets are the same objects. */
export function isSamePet(one: Pet, other: Pet): boolean {
  for (const field in PET_FIELDS) if (one[field as keyof Pet] !== other[field as keyof Pet]) return false;
  return true;
}

/** A pet to be added; the upstream gives it its id. */
export interface NewPet {
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus | undefined;
}
