import type { Int64 } from './int64.ts';

/** The values of PetStatus in pet-api.md. */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;

export type PetStatus = (typeof PET_STATUSES)[number];

/** A pet in the store. One without a status is in no filtered list. */
export interface Pet {
  readonly id: Int64;
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus | undefined;
}

/** A value for each field of a pet: one that is missing does not compile. */
export type EachField<Value> = { readonly [Name in keyof Pet]-?: Value };

/** A pet or a new pet with each field named, also where it may be absent: one that is forgotten does not compile. */
export type WithEachField<Of> = Of & { readonly [Name in keyof Of]-?: unknown };

/** What petql does with the values of one field. */
interface Field<Value> {
  readonly isSame: (one: Value, other: Value) => boolean;
  /** Returns the memory that the value takes. */
  readonly bytes: (value: Value) => number;
}

const TEXT: Field<string | undefined> = {
  isSame: (one, other) => one === other,
  bytes: (text) => (text === undefined ? 0 : TEXT_BYTES + CHARACTER_BYTES * text.length),
};

/** An object, and the place of each of its fields. */
const OBJECT_BYTES = 24;
const FIELD_BYTES = 8;
const TEXT_BYTES = 16;
const CHARACTER_BYTES = 2;

/** A pet, or an object in it, by a table of all its fields: one that is missing does not compile. */
function objectOf<Of extends object>(fields: { readonly [Name in keyof Of]-?: Field<Of[Name]> }): Field<Of> {
  const entries = Object.entries(fields) as [keyof Of, Field<unknown>][];
  const ownBytes = OBJECT_BYTES + FIELD_BYTES * entries.length;
  return {
    isSame: (one, other) => entries.every(([name, { isSame }]) => isSame(one[name], other[name])),
    bytes: (value) => entries.reduce((sum, [name, { bytes }]) => sum + bytes(value[name]), ownBytes),
  };
}

/** A list of texts needs a comparison and a weight of its items, an object its own `objectOf`. */
const FIELDS: { readonly [Name in keyof Pet]-?: Field<Pet[Name]> } = {
  id: TEXT,
  name: TEXT,
  categoryId: TEXT,
  status: TEXT,
};
const PET = objectOf<Pet>(FIELDS);
export const PET_FIELD_NAMES = Object.keys(FIELDS) as readonly (keyof Pet)[];

/** Whether all fields are equal. The response cache serves a response again while its pets are the same objects. */
export function isSamePet(one: Pet, other: Pet): boolean {
  return PET.isSame(one, other);
}

/** Returns the memory that a pet takes, for the bounds of the caches. */
export function petBytes(pet: Pet): number {
  return PET.bytes(pet);
}

/** A pet to be added; the upstream gives it its id. */
export interface NewPet {
  readonly name: string;
  readonly categoryId: Int64;
  readonly status: PetStatus | undefined;
}

/** An object has none yet: its int64s need forms of their own. */
type FormOf<Value> = Value extends Int64 ? 'int64' : Value extends string ? 'text' : never;

/**
 * All fields of a new pet: one that is missing here does not compile. Both what petql sends and the input of an idempotency record
 * follow this order, so a new field comes last.
 */
export const NEW_PET_FIELDS: {
  readonly [Name in keyof NewPet]-?: FormOf<NonNullable<NewPet[Name]>>;
} = {
  name: 'text',
  categoryId: 'int64',
  status: 'text',
};
export const NEW_PET_FIELD_NAMES = Object.keys(NEW_PET_FIELDS) as readonly (keyof NewPet)[];
