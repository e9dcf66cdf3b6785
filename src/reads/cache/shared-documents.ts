import { z } from 'zod';
import { STORED_PET } from '../../pets/stored-pet.ts';
import { isList } from '../../pets/read-key.ts';
import type { ListName } from '../../pets/read-key.ts';

/** Names end in the hash of the format, which a test computes: documents of other formats count as absent. */
export const INDEX_NAME = 'lists:1640c708';
export const LIST_NAME = 'list:3949db65';

/** By the clock of the store, in milliseconds since the epoch. */
const time = z.number();
type ByList<Value> = Readonly<Partial<Record<ListName, Value>>>;

/** What the replicas share of one caller beside its lists. It is small, since each of them looks at it several times a second. */
export const INDEX = z.object({
  /** A UUID that each write changes; '' before the first. */
  version: z.string(),
  /** When the last list of each name was called for, since that write. */
  lists: byList(time),
  /** The process that refreshes a list now, and until when the others leave it to that one. */
  refreshes: byList(z.object({ by: z.string(), untilMs: time })),
});
export type Index = Readonly<z.infer<typeof INDEX>>;

/** The last list of one name. */
export const SHARED_LIST = z.object({
  /** That of the index when the list was called for: lists from before a write are not read. */
  version: z.string(),
  asOfMs: time,
  complete: z.boolean(),
  pets: z.array(STORED_PET),
});
export type SharedList = z.infer<typeof SHARED_LIST>;

/** Ignores lists that only another version of petql knows, so that a new one needs no new format. */
function byList<Value>(value: z.ZodType<Value>) {
  return z.record(z.string(), value).transform((entries): ByList<Value> => {
    const known = Object.entries(entries).filter(([list]) => isList(list));
    return Object.fromEntries(known);
  });
}
