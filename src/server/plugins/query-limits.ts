import { Kind, visit } from 'graphql';
import type { DocumentNode, FieldNode, SelectionNode, SelectionSetNode } from 'graphql';
import type { PetqlError } from '../../common/errors.ts';
import type { RequestLimits } from '../../settings/settings.ts';
import { LISTS, WIDE_LISTS } from '../../pets/read-key.ts';
import { rootFieldSizes } from '../../schema/field-size.ts';
import type { FieldSize, FieldUse } from '../../schema/field-size.ts';
import { schema } from '../../schema/schema.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** A result has the names of its fields in each item of a list, and in the path of each error. */
const MAX_NAME_LENGTH = 255;
/** Validation compares each two fields of one response name, with all that they select. */
const MAX_REPEATS = 100;
/** An id or a write can cost a call, or an error. There are few lists, however often a document has them. */
const COST_OF: { readonly [Use in FieldUse]: number } = { none: 0, list: 0, pet: 20, write: 20 };
const ROOT_FIELD_SIZES = rootFieldSizes(schema);
const INTROSPECTION = new Set(['__schema', '__type']);
/** Lists of the schema that introspection shows, at their mean length. */
const INTROSPECTION_SIZES = new Map([
  ['types', 30],
  ['directives', 5],
  ['fields', 3],
  ['enumValues', 2],
]);

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
  if (nameLength > MAX_NAME_LENGTH) return limitExceeded('nameLength', MAX_NAME_LENGTH, nameLength);
  if (repeats > MAX_REPEATS) return limitExceeded('repeats', MAX_REPEATS, repeats);
  const { depth, aliases, cost } = measureDocument(document);
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

/**
 * Returns the maximum of upstream calls that an operation of the document can cost with any variables. Any list may be tried for pets,
 * and a wide one for other lists.
 */
export function maxCalls(document: DocumentNode): number {
  const { list, pet, write } = measureDocument(document);
  const wide = list > 0 ? WIDE_LISTS.length : 0;
  const lists = pet > 0 ? LISTS.length : Math.min(list + wide, LISTS.length);
  return lists + pet + write;
}

/** How often an operation has each use of the pet API: a table over the uses. */
type Uses = { readonly [Use in FieldUse]: number };

interface Measure extends Uses {
  readonly depth: number;
  readonly aliases: number;
  /** Fields that the result can have: each counts once for every item of the lists around it. */
  readonly cost: number;
}

const NO_USES: Uses = { none: 0, list: 0, pet: 0, write: 0 };
const NOTHING: Measure = { depth: 0, aliases: 0, cost: 0, ...NO_USES };

/** Returns the maximum of each measure over the operations. */
function measureDocument({ definitions }: DocumentNode): Measure {
  /** Each fragment is measured once, so that fragments that multiply cost no more than they are long. */
  const measured = new Map<string, Measure>();
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  const measures = operations.map(({ selectionSet }) => measure(selectionSet));
  return combined(measures, (numbers) => Math.max(0, ...numbers));

  function measure({ selections }: SelectionSetNode): Measure {
    const parts = selections.map(measureSelection);
    const sums = combined(parts, (numbers) => numbers.reduce((total, one) => total + one, 0));
    return { ...sums, depth: Math.max(0, ...parts.map(({ depth }) => depth)) };
  }

  function measureSelection(selection: SelectionNode): Measure {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return measureFragment(selection.name.value);
    const below = selection.selectionSet ? measure(selection.selectionSet) : NOTHING;
    if (selection.kind === Kind.INLINE_FRAGMENT) return below;
    const { count, items, use } = sizeOf(selection);
    const aliases = below.aliases + (selection.alias ? 1 : 0);
    // graphql-js bounds introspection (MaxIntrospectionDepthRule), and tools ask for more levels than data has.
    const depth = INTROSPECTION.has(selection.name.value) ? 1 : below.depth + 1;
    const cost = 1 + COST_OF[use] * count + items * below.cost;
    return { ...NO_USES, [use]: count, depth, aliases, cost };
  }

  function measureFragment(name: string): Measure {
    const known = measured.get(name);
    if (known) return known;
    // Ends a cycle, which validation rejects.
    measured.set(name, NOTHING);
    const fragment = definitions.find(
      (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === name,
    );
    const result = fragment && 'selectionSet' in fragment ? measure(fragment.selectionSet) : NOTHING;
    measured.set(name, result);
    return result;
  }
}

/** Combines each of the numbers. */
function combined(measures: readonly Measure[], combine: (numbers: readonly number[]) => number): Measure {
  const names = Object.keys(NOTHING) as (keyof Measure)[];
  const numbers = names.map((name) => [name, combine(measures.map((each) => each[name]))]);
  return Object.fromEntries(numbers) as Measure;
}

/** Returns the size of a field: as its root field states it, or the length of a list of introspection. */
function sizeOf({ name, arguments: given = [] }: FieldNode): FieldSize {
  const argument = (wanted: string) => given.find((one) => one.name.value === wanted)?.value;
  const stated = ROOT_FIELD_SIZES.get(name.value);
  return stated?.(argument) ?? { use: 'none', items: INTROSPECTION_SIZES.get(name.value) ?? 1, count: 0 };
}
