import { Kind, visit } from 'graphql';
import type { DocumentNode, FieldNode } from 'graphql';
import type { PetqlError } from '../../common/errors.ts';
import { checkSizes } from '../../schema/field-size.ts';
import { schema } from '../../schema/schema.ts';
import type { RequestLimits } from '../../settings/settings.ts';
import { measureDocument } from './document-measure.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** A result has the names of its fields in each item of a list, and in the path of each error. */
const MAX_QUERIED_NAME_LENGTH = 255;
/** Validation compares each two fields of one response name, with all that they select. */
const MAX_REPEATS = 100;

checkSizes(schema);

/**
 * Checks each operation of a parsed document before it is validated.
 *
 * @returns the LIMIT_EXCEEDED error of the first limit that it exceeds, or undefined.
 */
export function queryLimitError(
  document: DocumentNode,
  { maxDepth, maxAliases, maxCost }: RequestLimits,
): PetqlError | undefined {
  const { nameLength, repeats } = measureNames(document);
  if (nameLength > MAX_QUERIED_NAME_LENGTH) return limitExceeded('nameLength', MAX_QUERIED_NAME_LENGTH, nameLength);
  if (repeats > MAX_REPEATS) return limitExceeded('repeats', MAX_REPEATS, repeats);
  const { depth, aliases, cost } = measureDocument(document, schema);
  if (depth > maxDepth) return limitExceeded('depth', maxDepth, depth);
  if (aliases > maxAliases) return limitExceeded('aliases', maxAliases, aliases);
  return cost > maxCost ? limitExceeded('cost', maxCost, cost) : undefined;
}

/**
 * Returns the length of the longest name, and how often one response name occurs: of fields with selections in the whole
 * document, of others in one selection set.
 */
function measureNames(document: DocumentNode): { readonly nameLength: number; readonly repeats: number } {
  let nameLength = 0;
  let repeats = 0;
  const fields: FieldNode[] = [];
  visit(document, {
    Name({ value }) {
      nameLength = Math.max(nameLength, value.length);
    },
    Field(field) {
      if (field.selectionSet) fields.push(field);
    },
    SelectionSet({ selections }) {
      const leaves = selections.filter((one) => one.kind === Kind.FIELD && !one.selectionSet);
      if (leaves.length > MAX_REPEATS) repeats = Math.max(repeats, maxRepeats(leaves as FieldNode[]));
    },
  });
  return { nameLength, repeats: Math.max(repeats, maxRepeats(fields)) };
}

/** Returns how many of the fields have the most frequent response name. */
function maxRepeats(fields: readonly FieldNode[]): number {
  const counts = new Map<string, number>();
  for (const { name, alias } of fields) {
    const { value } = alias ?? name;
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
