import { z } from 'zod';
import { parseInt64 } from '../int64.ts';
import type { Int64 } from '../int64.ts';
import { PET_STATUSES } from '../pet.ts';
import type { Pet } from '../pet.ts';
import type { ListName } from './read-key.ts';

const LIST_NAME: z.ZodType<ListName> = z.enum(['all', ...PET_STATUSES]);
/** By the clock of the store, in milliseconds since the epoch. */
const time = z.number();
const int64 = z.custom<Int64>((value) => typeof value === 'string' && parseInt64(value) !== undefined);

/** What the replicas know of one caller. It is small, since each of them looks at it several times a second. */
export const INDEX = z.object({
  /** Of the last write, a UUID; '' before the first. */
  version: z.string(),
  /** When the last list of each name was called for, since that write. */
  lists: z.partialRecord(LIST_NAME, time),
  /** Which process refreshes a list now, and until when the others leave it to that one. */
  refreshes: z.partialRecord(LIST_NAME, z.object({ by: z.string(), untilMs: time })),
});
export type Index = Readonly<z.infer<typeof INDEX>>;

const PET = z
  .object({ id: int64, name: z.string(), categoryId: int64, status: z.enum(PET_STATUSES).optional() })
  .transform(({ id, name, categoryId, status }): Pet => ({ id, name, categoryId, status }));

/** The last list of one name. */
export const SHARED_LIST = z.object({
  /** That of the index when the list was called for: lists from before a write are not read. */
  version: z.string(),
  asOfMs: time,
  complete: z.boolean(),
  pets: z.array(PET),
});
export type SharedList = z.infer<typeof SHARED_LIST>;
