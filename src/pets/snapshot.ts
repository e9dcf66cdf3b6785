import type { Int64 } from './int64.ts';
import { isSamePet } from './pet.ts';
import type { Pet } from './pet.ts';
import { ALL_PETS, isList, narrowerLists, readOf } from './read-key.ts';
import type { ListName, ReadKey } from './read-key.ts';

/** What one upstream call showed. */
export interface Snapshot {
  /** What the call read. */
  readonly key: ReadKey;
  /** When the call was sent, by `clock.elapsed()`: what it showed was true then or later. */
  readonly asOfMs: number;
  /** The pets of the list; of a get, the pet or none. */
  readonly pets: readonly Pet[];
  /** Whether the upstream left no pet of this list out: fewer than it can show, no next page, and no list was short lately. */
  readonly isComplete: boolean;
  readonly byId: ReadonlyMap<Int64, Pet>;
  /** The lists that the snapshot can answer. A complete list of all pets answers all of them. */
  readonly lists: ReadonlyMap<ListName, readonly Pet[]>;
  /** Pets that the list lacks, and whose absence it does not prove: another call had shown them shortly before. */
  readonly unproven: Pick<ReadonlySet<Int64>, 'has'>;
}

/**
 * What complete lists do not prove, since they have shown less than the store has: that a pet does not exist, or anything of pets
 * and lists that they do not show.
 */
export type ListDoubt = 'absences' | 'lists' | 'none';

/** What a read finds: the pets of a list; one pet, or null where it is proved that there is none. */
export type Found = Pet | readonly Pet[] | null;

/** The data of earlier snapshots: equal pets and lists are used again, so that equal data are the same objects. */
export interface EarlierData {
  /** Returns what is in doubt of a complete list that was sent at this moment. */
  doubtAt(sentAtMs: number): ListDoubt;
  /** Returns the pets that other calls had shown shortly before this moment. */
  shownBefore(sentAtMs: number): Iterable<Int64>;
  findEarlier(list: ListName): readonly Pet[] | undefined;
  findEarlier(id: Int64): Pet | null | undefined;
}

/**
 * Rule 1: concludes all that may ever be concluded from one call; undefined where it says nothing of the read. A pet need not have
 * a status, so only a complete list of all pets answers every filter and proves that a pet does not exist.
 */
export function answerFrom(snapshot: Snapshot, key: ReadKey): Found | undefined {
  const read = readOf(key);
  switch (read.kind) {
    case 'list':
      return snapshot.lists.get(read.list);
    case 'pet':
      return petFrom(snapshot, read.id);
  }
}

function petFrom({ key: call, isComplete, byId, unproven }: Snapshot, id: Int64): Pet | null | undefined {
  const isProof = call === id || (call === ALL_PETS && isComplete && !unproven.has(id));
  return byId.get(id) ?? (isProof ? null : undefined);
}

/** Returns the lists that are no use for a read of which the snapshot shows nothing: calls for them would show the same. */
export function listsWithout({ key: call, lists, unproven }: Snapshot, key: ReadKey): Iterable<ListName> {
  // A pet that was shown shortly before may be in another list.
  const isUnproven = !isList(key) && unproven.has(key);
  return isUnproven && isList(call) ? [call] : lists.keys();
}

const ANY_PET: Snapshot['unproven'] = { has: () => true };
const NO_PET: Snapshot['unproven'] = new Set();

export function listSnapshot(
  key: ListName,
  list: { readonly pets: readonly Pet[]; readonly complete: boolean },
  asOfMs: number,
  earlier: EarlierData,
): Snapshot {
  const all = list.pets.map((pet) => reusedPet(pet, earlier));
  const pets = reusedList(key, all, earlier);
  const lists = new Map<ListName, readonly Pet[]>([[key, pets]]);
  const doubt = earlier.doubtAt(asOfMs);
  const isComplete = list.complete && doubt !== 'lists';
  if (isComplete) {
    for (const [name, shown] of narrowerLists(key, pets)) lists.set(name, reusedList(name, shown, earlier));
  }
  const byId = new Map(pets.map((pet) => [pet.id, pet]));
  const lacking = [...earlier.shownBefore(asOfMs)].filter((id) => !byId.has(id));
  const unprovenIds = lacking.length > 0 ? new Set(lacking) : NO_PET;
  const unproven = doubt === 'none' ? unprovenIds : ANY_PET;
  return { key, asOfMs, pets, isComplete, byId, lists, unproven };
}

/** What `GET /pets/{petId}` or a create showed. */
export function petSnapshot(id: Int64, pet: Pet | null, asOfMs: number, earlier: EarlierData): Snapshot {
  const pets = pet ? [reusedPet(pet, earlier)] : [];
  const byId = new Map(pets.map((one) => [one.id, one]));
  return { key: id, asOfMs, pets, isComplete: true, byId, lists: new Map(), unproven: NO_PET };
}

function reusedPet(pet: Pet, earlier: EarlierData): Pet {
  const before = earlier.findEarlier(pet.id);
  return before && isSamePet(before, pet) ? before : pet;
}

function reusedList(key: ListName, pets: readonly Pet[], earlier: EarlierData): readonly Pet[] {
  const before = earlier.findEarlier(key);
  const isSame = before?.length === pets.length && before.every((pet, index) => pet === pets[index]);
  return isSame ? before : pets;
}
