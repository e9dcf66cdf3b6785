import type { Int64 } from './int64.ts';

/** The three states that the upstream knows (pet-api.md, PetStatus). */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;

export type PetStatus = (typeof PET_STATUSES)[number];

/** An animal in the store. One without a status is in no filtered listing. */
export interface Pet {
  readonly id: Int64;
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus | undefined;
}

/** An animal to be added; the upstream gives it its id. */
export interface NewPet {
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus | undefined;
}
