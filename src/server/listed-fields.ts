import { Kind } from 'graphql';
import type { FieldNode } from 'graphql';
import { DEFAULT_LIMIT, HIGHEST_LIMIT } from '../schema/query.ts';
import { setsBelow } from './fields-at.ts';
import type { CollectFields, FieldsAt } from './fields-at.ts';

/**
 * How many fields of animals an operation's `pets` can show at most. Two hundred of them may cost one call together, or none.
 *
 * @param root the operation's own fields.
 */
export function listedFields(root: FieldsAt, fieldsAt: CollectFields): number {
  let count = 0;
  for (const fields of root.values()) {
    const [first] = fields;
    if (first?.name.value === 'pets') count += mostAnimals(first) * fieldsAt(setsBelow(fields)).size;
  }
  return count;
}

function mostAnimals({ arguments: given = [] }: FieldNode): number {
  const value = given.find(({ name }) => name.value === 'limit')?.value;
  if (value?.kind === Kind.VARIABLE) return HIGHEST_LIMIT;
  // What cannot be a limit shows none, and takes none off the others.
  return value?.kind === Kind.INT ? Math.min(Math.abs(Number(value.value)), HIGHEST_LIMIT) : DEFAULT_LIMIT;
}
