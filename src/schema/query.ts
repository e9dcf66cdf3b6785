import { PetqlError } from '../errors.ts';
import { parseInt64 } from '../int64.ts';
import { builder } from './builder.ts';
import { int64Argument } from './int64-argument.ts';
import { petStatus } from './pet-status.ts';
import { pet } from './pet.ts';
import { rateLimit } from './rate-limit.ts';

/** Animals of one `pets`. */
export const DEFAULT_LIMIT = 20;
export const HIGHEST_LIMIT = 100;
/** Of one `petsById`. */
export const MOST_IDS = 100;

builder.queryType({
  description: 'What can be read. Every field reads with the API key of the request.',
  fields: (t) => ({
    pets: t.field({
      type: [pet],
      nullable: { list: true, items: false },
      description:
        'Animals, in the order in which the service gives them. It shows 100 at most and has no further pages.',
      args: {
        status: t.arg({ type: petStatus, description: 'Only animals with this status; without it, all of them.' }),
        limit: t.arg.int({ defaultValue: DEFAULT_LIMIT, description: 'How many at most, from 1 to 100.' }),
      },
      resolve: (_root, { status, limit }, { pets }) => pets.list(status ?? undefined, checkedLimit(limit)),
    }),
    pet: t.field({
      type: pet,
      description: 'One animal, or null when there is none with this id.',
      args: { id: t.arg.id({ required: true, description: 'Its identifier, an int64.' }) },
      resolve: (_root, { id }, { pets }) => pets.byId(int64Argument('id', id)),
    }),
    petsById: t.field({
      type: [pet],
      nullable: { list: true, items: true },
      description: 'Several animals in the order asked for, with null in the place of each that does not exist.',
      args: { ids: t.arg.idList({ required: true, description: 'Up to 100 identifiers, each an int64.' }) },
      resolve: (_root, { ids }, { pets }) => {
        if (ids.length > MOST_IDS) {
          throw new PetqlError('BAD_USER_INPUT', `ids: expected at most ${MOST_IDS} ids, got ${ids.length}.`, {
            details: { argument: 'ids' },
          });
        }
        // All are checked before the first is read; then each place in the list fails on its own.
        const checked = ids.map((id, index) => parseInt64(id) ?? int64Argument(`ids[${index}]`, id));
        return checked.map((id) => pets.byId(id));
      },
    }),
    rateLimit: t.field({
      type: rateLimit,
      description: 'What is left of the plan of the API key. Asking costs no call.',
      resolve: (_root, _args, { budget }) => budget(),
    }),
  }),
});

/** An explicit null means the default. */
function checkedLimit(limit: number | null | undefined): number {
  const given = limit ?? DEFAULT_LIMIT;
  if (given >= 1 && given <= HIGHEST_LIMIT) return given;
  throw new PetqlError('BAD_USER_INPUT', `limit: expected a whole number from 1 to ${HIGHEST_LIMIT}, got ${given}.`, {
    details: { argument: 'limit' },
  });
}
