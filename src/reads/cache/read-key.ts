import type { Int64 } from '../../int64.ts';
import { PET_STATUSES } from '../../pet.ts';
import type { PetStatus } from '../../pet.ts';

/** The lists that the upstream has: of all pets, or of those with one status. */
export type ListName = PetStatus | 'all';

/** What a resolver reads: a list by its name, or one pet by its id. No name is a number. */
export type ReadKey = Int64 | ListName;

/** A call, by the read that it is for: GET /pets with or without a status, or GET /pets/{petId}. It may answer other reads too. */
export type CallKey = ReadKey;

export const LISTS: readonly ListName[] = ['all', ...PET_STATUSES];

export function isList(key: ReadKey): key is ListName {
  return (LISTS as readonly ReadKey[]).includes(key);
}
