import type { Pet } from '../pet.ts';

/**
 * How much room arrays of animals take that several hold: those who were answered the same hold the same array, which takes
 * its room once, and for as long as anybody holds it.
 */
export interface HeldAnimals {
  /** Of all arrays that are held. */
  readonly bytes: number;
  /** How much more it would be with this one. */
  added(pets: readonly Pet[]): number;
  hold(pets: readonly Pet[]): void;
  /** One that was held before. */
  release(pets: readonly Pet[]): void;
}

/** An animal with its ids, a short name and its place in an array. */
const PET_BYTES = 150;
/** At most: many strings have one. */
const CHARACTER_BYTES = 2;

export function createHeldAnimals(): HeldAnimals {
  const holders = new Map<readonly Pet[], number>();
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    added: (pets) => (holders.has(pets) ? 0 : bytesOf(pets)),
    hold(pets) {
      const count = holders.get(pets) ?? 0;
      holders.set(pets, count + 1);
      if (count === 0) bytes += bytesOf(pets);
    },
    release(pets) {
      const count = holders.get(pets) ?? 0;
      if (count > 1) holders.set(pets, count - 1);
      else if (holders.delete(pets)) bytes -= bytesOf(pets);
    },
  };
}

/** Names have no greatest length: one may take more than ten thousand usual animals. */
export function animalBytes({ name }: Pet): number {
  return PET_BYTES + CHARACTER_BYTES * name.length;
}

function bytesOf(pets: readonly Pet[]): number {
  return pets.reduce((sum, pet) => sum + animalBytes(pet), 0);
}
