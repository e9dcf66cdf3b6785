import type { NewPet } from '../pet.ts';
import type { CreateOutcome } from './created.ts';

/** Longer names are not kept, so that a hundred thousand outcomes have room. */
const LONGEST_NAME_CHARACTERS = 200;

/**
 * What is kept of an outcome. Whoever asks for it again submits the same animal, and so its name too. Where the service has
 * made another long name of it, nothing remains to be kept but that the creation may have happened.
 */
export function keptOutcome(outcome: CreateOutcome, submitted: NewPet): string {
  if (!('pet' in outcome) || outcome.pet.name.length <= LONGEST_NAME_CHARACTERS) return JSON.stringify(outcome);
  const { name, ...pet } = outcome.pet;
  return JSON.stringify(name === submitted.name ? { pet } : { unknown: {} });
}

/** @param submitted the same as when it was kept. */
export function outcomeAgain(kept: string, submitted: NewPet): CreateOutcome {
  const outcome = JSON.parse(kept) as CreateOutcome;
  return 'pet' in outcome ? { pet: { ...outcome.pet, name: outcome.pet.name ?? submitted.name } } : outcome;
}
