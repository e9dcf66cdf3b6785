import type { Int64 } from './int64.ts';
import type { Pet } from './pet.ts';

/** The fields by which the upstream filters a list. */
export const FILTERS = ['status'] as const satisfies readonly (keyof Pet)[];
type FilterName = (typeof FILTERS)[number];

/**
 * The lists that petql reads, and what the upstream filters each by; undefined means any value. Clients choose none of their names:
 * each list takes memory, a place in the index of shared lists and a call.
 */
const FILTER_OF = {
  all: { status: undefined },
  available: { status: 'available' },
  pending: { status: 'pending' },
  sold: { status: 'sold' },
} as const satisfies { readonly [list: string]: { readonly [Name in FilterName]: Pet[Name] } };

export type ListName = keyof typeof FILTER_OF;

/** What one of the lists is filtered by: values for which there is no list do not compile. */
export type PetFilter = (typeof FILTER_OF)[ListName];

/** The list of all pets: a complete one shows the whole store. */
export const ALL_PETS = 'all' satisfies ListName;

export const LISTS = Object.keys(FILTER_OF) as readonly ListName[];

/** What a resolver reads: a list by its name, or one pet by its id. */
export type ReadKey = Int64 | ListName;

/**
 * What a read key stands for. Another kind of read does not compile until each switch and each table over the kinds has it: those that
 * return nothing end in `satisfies never`.
 */
export type Read = { readonly kind: 'list'; readonly list: ListName } | { readonly kind: 'pet'; readonly id: Int64 };

/** What petql does with the reads of one kind. */
interface ReadKind {
  readonly operation: 'getPet' | 'listPets';
  /** Returns the name of a read in the log: an id is a number, and a client's text belongs into none. */
  readonly logName: (key: ReadKey) => string;
}

const READ_KINDS: { readonly [Kind in Read['kind']]: ReadKind } = {
  list: { operation: 'listPets', logName: (list) => list },
  pet: { operation: 'getPet', logName: (id) => id },
};

export function readOf(key: ReadKey): Read {
  return isList(key) ? { kind: 'list', list: key } : { kind: 'pet', id: key };
}

export function readKindOf(key: ReadKey): ReadKind {
  return READ_KINDS[readOf(key).kind];
}

/** A call, by the read that it is for: GET /pets with or without a filter, or GET /pets/{petId}. It may answer other reads too. */
export type CallKey = ReadKey;

export function isList(key: string): key is ListName {
  return (LISTS as readonly string[]).includes(key);
}

/** The lists that can answer others, the widest first: a wider one answers more. */
export const WIDE_LISTS: readonly ListName[] = LISTS.filter((list) => widthOf(list) > 0).toSorted(
  (one, other) => widthOf(other) - widthOf(one),
);

function widthOf(list: ListName): number {
  return LISTS.filter((other) => isWider(list, other)).length;
}

/** Returns the list that the upstream filters by this. */
export function listOf(filter: PetFilter): ListName {
  const list = LISTS.find((each) => FILTERS.every((name) => FILTER_OF[each][name] === filter[name]));
  if (list === undefined) throw new Error(`no list has the filter ${JSON.stringify(filter)}`);
  return list;
}

export function filterOf(list: ListName): PetFilter {
  return FILTER_OF[list];
}

/** Whether the wider list, where it is complete, shows all that the other one does. */
export function isWider(wider: ListName, list: ListName): boolean {
  if (wider === list) return false;
  const filter = FILTER_OF[wider];
  return FILTERS.every((name) => filter[name] === undefined || filter[name] === FILTER_OF[list][name]);
}

/** Returns the lists that a complete one answers, with the pets that it shows of each. */
export function narrowerLists(list: ListName, pets: readonly Pet[]): (readonly [ListName, readonly Pet[]])[] {
  return LISTS.filter((narrower) => isWider(list, narrower)).map((narrower) => {
    // The upstream has applied the filter of the list itself: it may list pets there that show another value, or none.
    const names = FILTERS.filter((name) => FILTER_OF[list][name] === undefined);
    return [narrower, pets.filter((pet) => names.every((name) => isShown(pet, name, narrower)))];
  });
}

function isShown(pet: Pet, name: FilterName, list: ListName): boolean {
  const value = FILTER_OF[list][name];
  return value === undefined || pet[name] === value;
}

const CALLS_FOR_LISTS = new Map<ReadKey, readonly CallKey[]>(
  LISTS.map((list) => [list, [list, ...LISTS.filter((wider) => isWider(wider, list))]]),
);

/** Returns the calls whose responses may answer a read. */
export function callsFor(key: ReadKey): readonly CallKey[] {
  const read = readOf(key);
  switch (read.kind) {
    case 'list':
      return CALLS_FOR_LISTS.get(key) ?? [key];
    case 'pet':
      return [key, ...LISTS];
  }
}
