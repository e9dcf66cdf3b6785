import fc from 'fast-check';
import type { Int64 } from '../../src/pets/int64.ts';
import { PET_STATUSES } from '../../src/pets/pet.ts';
import type { Pet, PetStatus } from '../../src/pets/pet.ts';
import { LISTS } from '../../src/pets/read-key.ts';
import type { ListName, Read, ReadKey } from '../../src/pets/read-key.ts';
import { isListed } from '../support/pet-api/contract.ts';

/** The pets of a store that answers as pet-api.md says, at one moment. */
export interface ModelStore {
  /** A hundred at most, in the order of the store. */
  readonly list: (name: ListName) => { readonly pets: readonly Pet[]; readonly complete: boolean };
  readonly get: (id: Int64) => Pet | undefined;
  readonly size: number;
}

const MAX_LIMIT = 100;

function createModelStore(pets: readonly Pet[]): ModelStore {
  return {
    list(name) {
      const matching = pets.filter((pet) => isListed(pet, name));
      return { pets: matching.slice(0, MAX_LIMIT), complete: matching.length < MAX_LIMIT };
    },
    get: (id) => pets.find((pet) => pet.id === id),
    size: pets.length,
  };
}

function modelPet(id: number, status?: PetStatus): Pet {
  return { id: String(id) as Int64, name: `Pet ${id}`, categoryId: '1' as Int64, status };
}

const MAX_PETS = 260;

/** Stores of every size, most of them about as large as a list. */
export const anyStore: fc.Arbitrary<ModelStore> = fc
  .oneof(fc.nat(5), fc.integer({ min: 95, max: 105 }), fc.nat(MAX_PETS))
  .chain((size) =>
    fc.array(fc.option(fc.constantFrom(...PET_STATUSES), { nil: undefined, freq: 6 }), {
      minLength: size,
      maxLength: size,
      size: 'max',
    }),
  )
  .map((statuses) => createModelStore(statuses.map((status, index) => modelPet(index + 1, status))));

export const anyList: fc.Arbitrary<ListName> = fc.constantFrom(...LISTS);

/** Reads of each kind: one that is missing here does not compile. */
const ANY_READ: Readonly<Record<Read['kind'], { readonly weight: number; readonly arbitrary: fc.Arbitrary<ReadKey> }>> =
  {
    list: { weight: 1, arbitrary: anyList },
    pet: { weight: 3, arbitrary: fc.integer({ min: 1, max: MAX_PETS + 20 }).map((id) => String(id) as Int64) },
  };

export const anyRead: fc.Arbitrary<ReadKey> = fc.oneof(...Object.values(ANY_READ));
