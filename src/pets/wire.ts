import { bareNumber } from '../lossless-json.ts';
import { ContractBreach, fieldName, fieldsOf, readJson } from '../upstream/json-body.ts';
import { int64FromJson } from './int64.ts';
import type { Int64 } from './int64.ts';
import { NEW_PET_FIELDS, NEW_PET_FIELD_NAMES, PET_STATUSES } from './pet.ts';
import type { NewPet, Pet, WithEachField } from './pet.ts';
import { FILTERS } from './read-key.ts';
import type { PetFilter } from './read-key.ts';

/** The largest list that the upstream returns (pet-api.md, "Page size"). */
export const LIST_LIMIT = 100;

export interface PetDecoders {
  /**
   * Reads one pet.
   *
   * @param id that of the request, if it names one.
   * @throws ContractBreach
   */
  readonly pet: (body: Buffer, id?: Int64) => Pet;
  /**
   * Reads pets with different ids. A pet without a status stays in the list in which the upstream put it.
   *
   * @param filter of the request.
   * @throws ContractBreach
   */
  readonly pets: (body: Buffer, filter: PetFilter) => Pet[];
}

/**
 * Checks by hand and not with zod, which takes several times longer for a list of 100 pets.
 *
 * @param onUnknownStatus gets the id of each pet whose status petql does not know; the pet then has none.
 */
export function createPetDecoders(onUnknownStatus: (id: Int64) => void): PetDecoders {
  return {
    pet(body, id) {
      const pet = readPet(readJson(body), '');
      if (id !== undefined && pet.id !== id) throw new ContractBreach('id: expected the id of the request');
      return pet;
    },

    pets(body, filter) {
      const json = readJson(body);
      if (!Array.isArray(json)) throw new ContractBreach('the body: expected an array', true);
      if (json.length > LIST_LIMIT) throw new ContractBreach(`the body: expected at most ${LIST_LIMIT} pets`);

      const seen = new Set<Int64>();
      return json.map((element: unknown, index) => {
        const pet = readPet(element, `[${index}]`);
        if (seen.has(pet.id)) throw new ContractBreach(`[${index}].id: expected different ids`);
        seen.add(pet.id);

        const wrong = FILTERS.find((name) => !isListed(pet[name], filter[name]));
        if (wrong === undefined) return pet;
        throw new ContractBreach(`[${index}].${wrong}: expected the ${wrong} of the request`);
      });
    },
  };

  function readPet(json: unknown, at: string): WithEachField<Pet> {
    const { id, name, categoryId, status } = fieldsOf(json, at);
    const petId = readInt64(id, at, 'id');
    if (typeof name !== 'string') throw new ContractBreach(`${fieldName(at, 'name')}: expected a string`);

    const known = PET_STATUSES.find((each) => each === status);
    // Many services write null where the contract says absent.
    if (!known && status !== undefined && status !== null) {
      if (typeof status !== 'string') throw new ContractBreach(`${fieldName(at, 'status')}: expected a string`);
      onUnknownStatus(petId);
    }

    return { id: petId, name, categoryId: readInt64(categoryId, at, 'categoryId'), status: known };
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

function readInt64(value: unknown, at: string, field: string): Int64 {
  const exact = int64FromJson(value);
  if (exact === undefined) throw new ContractBreach(`${fieldName(at, field)}: expected an int64`);
  return exact;
}
