import type { Int64 } from '../int64.ts';
import type { NewPet, PetStatus } from '../pet.ts';

/** An animal to start with; one with an id of its own takes none from the sequence. */
export interface SeedAnimal extends NewPet {
  readonly id?: Int64;
}

const NAMES = (
  'Ada Balu Cleo Dexter Elsa Felix Ginger Hazel Indie Jasper Kiki Luna Milo ' +
  'Nala Otis Pepper Quincy Rosie Simba Tilly Umber Violet Willow Xena Yoshi Ziggy'
).split(' ');
const CATEGORIES = 8;

/**
 * The animals that a new store starts with, always the same 250: 140 available, more than one listing can show, 60
 * pending, 40 sold and 10 without a status. No double can hold the id of the last one.
 */
export function seedAnimals(): SeedAnimal[] {
  const animals: SeedAnimal[] = Array.from({ length: 249 }, (_, index) => ({
    name: nameOf(index),
    categoryId: String(1 + (index % CATEGORIES)) as Int64,
    status: statusOf(index),
  }));
  animals.push({
    id: '9007199254740993' as Int64,
    name: 'Methuselah',
    categoryId: '9007199254740995' as Int64,
    status: 'available',
  });
  return animals;
}

function nameOf(index: number): string {
  const round = Math.floor(index / NAMES.length);
  return `${NAMES[index % NAMES.length]}${round === 0 ? '' : ` ${round + 1}`}`;
}

/** Mixed, so that the first listing shows every status: 7 is prime to 249, so each index comes once. */
function statusOf(index: number): PetStatus | undefined {
  const place = (index * 7) % 249;
  if (place < 139) return 'available';
  if (place < 199) return 'pending';
  return place < 239 ? 'sold' : undefined;
}
