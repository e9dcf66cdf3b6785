import { PET_STATUSES } from '../../pets/pet.ts';

/** The queries of the clients, and the settings of petql. */
export interface Load {
  /** Pets in the store. */
  readonly pets: number;
  /** How many lists are queried, `MAX_LISTS` at most: all pets, and those of each status. */
  readonly lists: number;
  /** How many single pets are queried, spread over the store. */
  readonly ids: number;
  /** How often each of these queries is sent. */
  readonly everyMs: number;
  readonly durationMs: number;
  /** The part of the plan that petql uses, in percent. Default 100. */
  readonly planShare?: number;
  readonly maxAgeMs: number;
  readonly maxStaleMs: number;
}

const LOAD_FILTERS = ['', ...PET_STATUSES.map((status) => `status: ${status.toUpperCase()}, `)];
export const MAX_LISTS = LOAD_FILTERS.length;

/** Returns how many different queries the load has. */
export function queryCount({ lists, ids }: Load): number {
  return Math.min(MAX_LISTS, lists) + ids;
}

/** Each list shows one pet only: its call costs as much as for a whole list. */
export function queriesOf({ lists, ids, pets }: Load): readonly string[] {
  return [
    ...LOAD_FILTERS.slice(0, lists).map((filter) => `{ pets(${filter}limit: 1) { id } }`),
    ...Array.from({ length: ids }, (_, index) => `{ pet(id: ${1 + Math.floor((index * pets) / ids)}) { id } }`),
  ];
}
