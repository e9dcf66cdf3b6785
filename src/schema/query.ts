import { Kind } from 'graphql';
import type { ValueNode } from 'graphql';
import { listOf } from '../pets/read-key.ts';
import { badArgument, int64Argument } from './arguments.ts';
import { builder } from './builder.ts';
import { sized } from './field-size.ts';
import { pet, petStatus } from './pet.ts';
import { rateLimit } from './rate-limit.ts';

/** Bounds of `limit` in `pets`. */
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;
/** Max ids in one `petsById`. */
const MAX_IDS = 100;

builder.queryType({
  description: 'All reads. Each uses the API key of the request.',
  fields: (t) => ({
    pets: t.field({
      type: [pet],
      nullable: { list: true, items: false },
      description: 'Pets in the order of the pet API, which shows at most 100 and has no further pages.',
      args: {
        status: t.arg({ type: petStatus, description: 'Only pets with this status (default: all pets).' }),
        limit: t.arg.int({ defaultValue: DEFAULT_LIMIT, description: 'Maximum number of pets, from 1 to 100.' }),
      },
      extensions: sized((argument) => ({ use: 'list', items: maxItems(argument('limit')), count: 1 })),
      resolve: (_root, { status, limit }, { pets }) => {
        const most = checkedLimit(limit);
        const found = pets.read(listOf({ status: status ?? undefined }));
        return found && found.then((all) => (all.length > most ? all.slice(0, most) : all));
      },
    }),
    pet: t.field({
      type: pet,
      description: 'One pet, or null when no pet has this id.',
      args: { id: t.arg.id({ required: true, description: 'An int64.' }) },
      extensions: sized(() => ({ use: 'pet', items: 1, count: 1 })),
      resolve: (_root, { id }, { pets }) => pets.read(int64Argument('id', id)),
    }),
    petsById: t.field({
      type: [pet],
      nullable: { list: true, items: true },
      description: 'Several pets in the order of the ids, with null for each id that no pet has.',
      args: { ids: t.arg.idList({ required: true, description: 'At most 100 ids, each an int64.' }) },
      extensions: sized((argument) => {
        const ids = maxIds(argument('ids'));
        return { use: 'pet', items: ids, count: ids };
      }),
      resolve: (_root, { ids }, { pets }) => {
        if (ids.length > MAX_IDS) throw badArgument('ids', `expected at most ${MAX_IDS} ids, got ${ids.length}`);
        // All ids are checked before the first read. Then each item of the list fails alone.
        const checked = ids.map((id, index) => int64Argument(`ids[${index}]`, id));
        return checked.map((id) => pets.read(id));
      },
    }),
    rateLimit: t.field({
      type: rateLimit,
      extensions: sized(() => ({ use: 'none', items: 1, count: 1 })),
      description: 'What is left of the quota of the API key, after the reads beside it. This costs no upstream call.',
      resolve: (_root, _args, { pets }) => pets.readQuota(),
    }),
  }),
});

/** Returns a limit within its bounds. An explicit null means the default. */
function checkedLimit(limit: number | null | undefined): number {
  const given = limit ?? DEFAULT_LIMIT;
  if (given >= 1 && given <= MAX_LIMIT) return given;
  throw badArgument('limit', `expected a whole number from 1 to ${MAX_LIMIT}, got ${given}`);
}

/** Returns the maximum of items. A variable may have any value, and a value that is no limit fails. */
function maxItems(value: ValueNode | undefined): number {
  if (value?.kind === Kind.VARIABLE) return MAX_LIMIT;
  return value?.kind === Kind.INT ? Math.min(Math.abs(Number(value.value)), MAX_LIMIT) : DEFAULT_LIMIT;
}

function maxIds(value: ValueNode | undefined): number {
  if (value?.kind === Kind.VARIABLE) return MAX_IDS;
  return value?.kind === Kind.LIST ? Math.min(value.values.length, MAX_IDS) : 1;
}
