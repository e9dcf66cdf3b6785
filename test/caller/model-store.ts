import fc from 'fast-check';
import type { ListingName } from '../../src/caller/call.ts';
import type { Demand } from '../../src/caller/demand.ts';
import type { Int64 } from '../../src/int64.ts';
import { PET_STATUSES } from '../../src/pet.ts';
import type { Pet, PetStatus } from '../../src/pet.ts';
import type { Listing, UpstreamOutcome } from '../../src/upstream/pet-api.ts';

/** The animals of a store that answers as pet-api.md says, at one moment. */
export interface ModelStore {
  /** A hundred at most, in the order of the store. */
  list(listing: ListingName): { readonly pets: readonly Pet[]; readonly complete: boolean };
  get(id: Int64): Pet | undefined;
  readonly size: number;
}

const LARGEST_LISTING = 100;

export function createModelStore(pets: readonly Pet[]): ModelStore {
  return {
    list(listing) {
      const matching = pets.filter(({ status }) => listing === 'all' || status === listing);
      return { pets: matching.slice(0, LARGEST_LISTING), complete: matching.length < LARGEST_LISTING };
    },
    get: (id) => pets.find((pet) => pet.id === id),
    size: pets.length,
  };
}

/** What the store answers to `GET /pets` and `GET /pets/{petId}`. */
export function listed(store: Pick<ModelStore, 'list'>, status: PetStatus | undefined): UpstreamOutcome<Listing> {
  return { kind: 'ok', value: store.list(status ?? 'all') };
}

export function found(store: Pick<ModelStore, 'get'>, id: Int64): UpstreamOutcome<Pet> {
  const pet = store.get(id);
  return pet ? { kind: 'ok', value: pet } : { kind: 'not-found' };
}

export function modelPet(id: number, status?: PetStatus): Pet {
  return { id: String(id) as Int64, name: `Pet ${id}`, categoryId: '1' as Int64, status };
}

const LARGEST_STORE = 260;

/** Stores of every size, those about as large as a listing most of all. */
export const anyStore: fc.Arbitrary<ModelStore> = fc
  .oneof(fc.nat(5), fc.integer({ min: 95, max: 105 }), fc.nat(LARGEST_STORE))
  .chain((size) =>
    fc.array(fc.option(fc.constantFrom(...PET_STATUSES), { nil: undefined, freq: 6 }), {
      minLength: size,
      maxLength: size,
      size: 'max',
    }),
  )
  .map((statuses) => createModelStore(statuses.map((status, index) => modelPet(index + 1, status))));

export const anyListing: fc.Arbitrary<ListingName> = fc.constantFrom('all', ...PET_STATUSES);

export const anyDemand: fc.Arbitrary<Demand> = fc.oneof(
  { weight: 1, arbitrary: anyListing.map((listing): Demand => ({ kind: 'listing', listing })) },
  {
    weight: 3,
    arbitrary: fc
      .integer({ min: 1, max: LARGEST_STORE + 20 })
      .map((id): Demand => ({ kind: 'animal', id: String(id) as Int64 })),
  },
);
