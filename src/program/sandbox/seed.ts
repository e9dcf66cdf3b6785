import type { Int64 } from '../../pets/int64.ts';
import type { NewPet, PetStatus } from '../../pets/pet.ts';

/** A pet of a new store. */
export interface SandboxPet {
  /** An int64. Default: the next one. */
  readonly id?: bigint | number | string;
  readonly name: string;
  /** An int64. Default 1. */
  readonly categoryId?: bigint | number | string;
  /** Default: none. */
  readonly status?: PetStatus | undefined;
}

interface SeedPet extends NewPet {
  readonly id?: Int64;
}

const PET_NAMES = (
  'Ada Balu Cleo Dexter Elsa Felix Ginger Hazel Indie Jasper Kiki Luna Milo ' +
  'Nala Otis Pepper Quincy Rosie Simba Tilly Umber Violet Willow Xena Yoshi Ziggy'
).split(' ');
const CATEGORIES = 8;
/** Its ids are no exact doubles. */
const METHUSELAH: SeedPet = {
  id: '9007199254740993' as Int64,
  name: 'Methuselah',
  categoryId: '9007199254740995' as Int64,
  status: 'available',
};

/**
 * Returns the pets of a new store, always the same 250: 140 available, which is more than one list can show, 60 pending, 40 sold
 * and 10 without a status. The last one's id is larger than an exact double.
 */
export function seedPets(): SeedPet[] {
  const pets: SeedPet[] = Array.from({ length: 249 }, (_, index) => {
    const round = Math.floor(index / PET_NAMES.length);
    return {
      name: `${PET_NAMES[index % PET_NAMES.length]}${round === 0 ? '' : ` ${round + 1}`}`,
      categoryId: String(1 + (index % CATEGORIES)) as Int64,
      status: statusOf(index),
    };
  });
  return [...pets, METHUSELAH];
}

/** Mixes the statuses, so that the first list has every one: 7 is prime to 249, so each place comes once. */
function statusOf(index: number): PetStatus | undefined {
  const place = (index * 7) % 249;
  if (place < 139) return 'available';
  if (place < 199) return 'pending';
  return place < 239 ? 'sold' : undefined;
}
