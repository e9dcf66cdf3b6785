import { bareNumber } from '../common/lossless-json.ts';
import { ContractBreach, fieldsOf, readJson } from '../upstream/json-body.ts';
import type { Fields } from '../upstream/json-body.ts';
import { int64FromJson } from './int64.ts';
import type { Int64 } from './int64.ts';
import { NEW_PET_FIELDS, NEW_PET_FIELD_NAMES, PET_STATUSES, isSamePet } from './pet.ts';
import type { NewPet, Pet, WithEachField } from './pet.ts';
import { FILTERS } from './read-key.ts';
import type { PetFilter } from './read-key.ts';

/** The largest list that the upstream returns (pet-api.md, "Page size"). */
export const LIST_LIMIT = 100;

/** What one response showed of a list. */
export interface DecodedList {
  readonly pets: readonly Pet[];
  /** Whether these are all pets that the upstream has in the list: fewer than it can show, and none that petql leaves out. */
  readonly complete: boolean;
}

export interface PetDecoders {
  /**
   * Reads one pet.
   *
   * @param id that of the request, if it names one.
   * @throws ContractBreach
   */
  readonly pet: (body: Buffer, id?: Int64) => Pet;
  /**
   * Reads pets with different ids, and leaves out those that break the contract, up to a half: one pet says nothing of the others. A
   * pet without a status stays in the list in which the upstream put it.
   *
   * @param filter of the request.
   * @throws ContractBreach
   */
  readonly pets: (body: Buffer, filter: PetFilter) => DecodedList;
}

interface DecoderEvents {
  /** Gets the field and the pet of each value of an enum that petql does not know; the pet then has none. */
  readonly onUnknownValue: (field: keyof Pet, petId: Int64) => void;
  /** Gets why each pet is left out. */
  readonly onLeftOut: (problem: string) => void;
}

/** Checks by hand and not with zod, which takes several times longer for a list of 100 pets. */
export function createPetDecoders({ onUnknownValue, onLeftOut }: DecoderEvents): PetDecoders {
  return {
    pet(body, id) {
      const pet = readPet(fieldsOf(readJson(body)));
      if (id !== undefined && pet.id !== id) throw new ContractBreach('id: expected the id of the request');
      return pet;
    },

    pets(body, filter) {
      const json = readJson(body);
      if (!Array.isArray(json)) throw new ContractBreach('the body: expected an array', true);
      if (json.length > LIST_LIMIT) throw new ContractBreach(`the body: expected at most ${LIST_LIMIT} pets`);

      const pets = new Map<Int64, Pet>();
      const problems: string[] = [];
      for (const [index, element] of json.entries()) {
        const problem = addPet(element, filter, pets);
        if (problem === undefined) continue;
        problems.push(`[${index}].${problem}`);
        onLeftOut(problem);
      }
      if (2 * problems.length > json.length) throw new ContractBreach(problems[0] ?? '');
      return { pets: [...pets.values()], complete: json.length < LIST_LIMIT && problems.length === 0 };
    },
  };

  /** Returns why a pet is left out; undefined where it is added, or an equal one was. */
  function addPet(element: unknown, filter: PetFilter, pets: Map<Int64, Pet>): string | undefined {
    try {
      // What is no object has no id.
      const pet = readPet(Object(element) as Fields);
      // A pet may change while the upstream makes the list, or come twice where one was added before it.
      const wrong = FILTERS.find((name) => !isListed(pet[name], filter[name]));
      if (wrong !== undefined) return `${wrong}: expected the ${wrong} of the request`;

      const twin = pets.get(pet.id);
      if (twin && !isSamePet(twin, pet)) return 'id: expected different ids';
      pets.set(pet.id, pet);
      return undefined;
    } catch (error) {
      if (error instanceof ContractBreach) return error.message;
      throw error;
    }
  }

  function readPet({ id, name, categoryId, status }: Fields): WithEachField<Pet> {
    const petId = readInt64(id, 'id');
    if (typeof name !== 'string') throw new ContractBreach('name: expected a string');

    return {
      id: petId,
      // Text that JSON cannot send as UTF-8 would make the response unreadable to many clients.
      name: name.toWellFormed(),
      categoryId: readInt64(categoryId, 'categoryId'),
      status: readEnum(status, PET_STATUSES, 'status', petId),
    };
  }

  function readEnum<Value extends string>(
    json: unknown,
    values: readonly Value[],
    field: keyof Pet,
    petId: Int64,
  ): Value | undefined {
    // Many services write null where the contract says absent.
    const text = json ?? undefined;
    if (text === undefined) return undefined;
    if (typeof text !== 'string') throw new ContractBreach(`${field}: expected a string`);

    // Some write the names of their enum.
    const known = values.find((each) => each === text.toLowerCase());
    if (!known) onUnknownValue(field, petId);
    return known;
  }
}

function isListed(value: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || value === undefined || value === wanted;
}

/** Returns a NewPet as JSON, with each int64 as a bare number, and without the fields that it does not have. */
export function encodeNewPet(pet: NewPet): string {
  return JSON.stringify(Object.fromEntries(NEW_PET_FIELD_NAMES.map((name) => [name, encodeField(pet, name)])));
}

function encodeField(pet: NewPet, name: keyof NewPet): unknown {
  const value = pet[name];
  return value !== undefined && NEW_PET_FIELDS[name] === 'int64' ? bareNumber(value) : value;
}

function readInt64(value: unknown, field: string): Int64 {
  const exact = int64FromJson(value);
  if (exact === undefined) throw new ContractBreach(`${field}: expected an int64`);
  return exact;
}
