import { z } from 'zod';
import { parseInt64 } from './int64.ts';
import type { Int64 } from './int64.ts';
import { PET_STATUSES } from './pet.ts';
import type { Pet, WithEachField } from './pet.ts';

const int64 = z.custom<Int64>((value) => typeof value === 'string' && parseInt64(value) !== undefined);

/** Each field of a pet: one that is missing here does not compile. A status that only a later version knows reads as none. */
const STORED_FIELDS = {
  id: int64,
  name: z.string(),
  categoryId: int64,
  status: z.enum(PET_STATUSES).optional().catch(undefined),
} satisfies { readonly [Name in keyof Pet]-?: z.ZodType<Pet[Name]> };

/** A pet in the store. A new field can be absent: outcomes of creates without it live for a day, under the same name. */
export const STORED_PET = z
  .object(STORED_FIELDS)
  .transform(({ id, name, categoryId, status }): WithEachField<Pet> => ({ id, name, categoryId, status }));
