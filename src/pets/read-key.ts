import type { Int64 } from './int64.ts';
import { PET_STATUSES } from './pet.ts';
import type { Pet, PetStatus } from './pet.ts';

/** The list of all pets: a complete one shows the whole store. */
export const ALL_PETS = 'all';

/** The lists that the upstream has: of all pets, or of those with one status. */
export const LISTS = [ALL_PETS, ...PET_STATUSES] as const;

export type ListName = (typeof LISTS)[number];

/** What a resolver reads: a list by its name, or one pet by its id. No name is a number. */
export type ReadKey = Int64 | ListName;

/** A call, by the read that it is for: GET /pets with or without a status, or GET /pets/{petId}. It may answer other reads too. */
export type CallKey = ReadKey;

export function isList(key: string): key is ListName {
  return (LISTS as readonly string[]).includes(key);
}

/** Returns the list of the pets with this status, or of all. */
export function listOf(status: PetStatus | undefined): ListName {
  return status ?? ALL_PETS;
}

/** Returns the status of all pets of a list; undefined where they may have any. */
export function statusOf(list: ListName): PetStatus | undefined {
  return list === ALL_PETS ? undefined : list;
}

/** Whether the wider list, where it is complete, shows all that the other one does. */
export function isWider(wider: ListName, list: ListName): boolean {
  return wider === ALL_PETS && list !== ALL_PETS;
}

/** Returns the lists that a complete one answers, with the pets that it shows of each. */
export function narrowerLists(list: ListName, pets: readonly Pet[]): (readonly [ListName, readonly Pet[]])[] {
  if (list !== ALL_PETS) return [];
  return PET_STATUSES.map((status) => [status, pets.filter((pet) => pet.status === status)]);
}

/** Returns the calls whose responses may answer a read. */
export function callsFor(key: ReadKey): readonly CallKey[] {
  if (!isList(key)) return [key, ...LISTS];
  return key === ALL_PETS ? [key] : [key, ALL_PETS];
}
