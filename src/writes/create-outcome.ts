import { z } from 'zod';
import { NEW_PET_FIELD_NAMES } from '../pets/pet.ts';
import type { NewPet } from '../pets/pet.ts';
import { STORED_PET } from '../pets/stored-pet.ts';

/** The pet that was added, or what the upstream finds wrong with it. */
const CREATED = [
  z.object({ pet: STORED_PET }),
  z.object({ refusal: z.object({ code: z.string(), message: z.string() }) }),
] as const;

/** The outcome of a create that was sent: `unknown` without a clear response, with its status if there was one. */
export const CREATE_OUTCOME = z.union([...CREATED, z.object({ unknown: z.object({ status: z.int().optional() }) })]);

export type CreateOutcome = Readonly<z.infer<typeof CREATE_OUTCOME>>;
export type Created = Exclude<CreateOutcome, { readonly unknown: unknown }>;

/** Nobody knows what came of the create: it may have been sent, and is not sent again. */
export const UNKNOWN_OUTCOME: CreateOutcome = { unknown: {} };

/** How many fields a new pet had in the first release. */
const FIRST_FIELDS = 3;

/**
 * Returns the text whose hash tells the inputs of two creates apart. It is the same in all releases, for retries across an upgrade:
 * a later field is in it only where the pet has it.
 */
export function inputOf(pet: NewPet): string {
  const values = NEW_PET_FIELD_NAMES.map((name) => pet[name] ?? null);
  while (values.length > FIRST_FIELDS && values.at(-1) === null) values.pop();
  return JSON.stringify(values);
}
