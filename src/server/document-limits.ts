import { Kind } from 'graphql';
import type { DocumentNode, SelectionSetNode } from 'graphql';
import type { PetqlError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { createComparisons } from './comparisons.ts';
import { createFieldsAt } from './fields-at.ts';
import { fragmentsOf } from './fragments.ts';
import type { Fragments } from './fragments.ts';
import { introspectedFields } from './introspected-fields.ts';
import { limitExceeded } from './limit-exceeded.ts';
import type { LimitName } from './limit-exceeded.ts';
import { listedFields } from './listed-fields.ts';

/** What of a document is measured once it is parsed, and which limit each of it is held against. */
const MEASURED = {
  depth: 'depth',
  /** Fragments in fragments. */
  nesting: 'depth',
  rootFields: 'rootFields',
  aliases: 'aliases',
  fields: 'fields',
} as const satisfies Record<string, LimitName>;

const SETTINGS = {
  depth: 'maxDepth',
  rootFields: 'maxRootFields',
  aliases: 'maxAliases',
  fields: 'maxFields',
} as const satisfies Partial<Record<LimitName, keyof Limits>>;

const OF_FRAGMENTS = ['depth', 'aliases', 'fields', 'nesting'] as const;
const OF_OPERATIONS = ['depth', 'rootFields', 'aliases', 'fields', 'nesting'] as const;

/** Of one field at one place of the answer; a hundred fragments of components may each ask for it. */
const MOST_REPEATS = 100;

/**
 * Fields of the answer that tell of the schema. All of it, as GraphiQL asks for it, are 1,400; nobody needs a key for them,
 * and an operation of 8 KB could show it in fifty thousand.
 */
const MOST_INTROSPECTED = 5_000;

/** Fields of animals in lists: fifty full ones with four fields each, while there are four that differ. */
const MOST_LISTED = 20_000;

/**
 * Fields and spreads at all places of all operations and fragments, and those places: three times what the longest operation has.
 * Each of a few hundred operations, or of their places, may spread a thicket of fragments, which costs their product.
 */
const MOST_SELECTIONS = 20_000;
/** Where more fields are allowed. */
const SELECTIONS_OF_FIELD = 10;

/** Of a document, in validation's pairs: a hundred components that ask for the same ten fields of a list have 60,000. */
const MOST_COMPARISONS = 130_000;
/** Where more fields are allowed. */
const COMPARISONS_OF_FIELD = 85;

type Measure = Record<keyof typeof MEASURED, number>;

/**
 * Checks a parsed document before it is validated.
 *
 * @returns the LIMIT_EXCEEDED error of the first limit that an operation is past, or undefined.
 */
export function documentLimitError(document: DocumentNode, limits: Limits): PetqlError | undefined {
  const fragments = fragmentsOf(document);
  const measureOf = createMeasure(fragments);
  const mostSelections = Math.max(MOST_SELECTIONS, SELECTIONS_OF_FIELD * limits.maxFields);
  const looks = { left: mostSelections };
  const fieldsAt = createFieldsAt(fragments, looks);
  const compare = createComparisons(fieldsAt, limits.maxFields);
  const mostComparisons = Math.max(MOST_COMPARISONS, COMPARISONS_OF_FIELD * limits.maxFields);
  let comparisons = 0;
  // Of all operations: which one of them is to run, whoever sends a document says beside it.
  let introspected = 0;
  for (const definition of document.definitions) {
    // A fragment that nothing uses is validated all the same.
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION) continue;
    const measure = measureOf(definition.selectionSet);
    for (const measured of definition.kind === Kind.OPERATION_DEFINITION ? OF_OPERATIONS : OF_FRAGMENTS) {
      const limit = MEASURED[measured];
      const most = limits[SETTINGS[limit]];
      if (measure[measured] > most) return limitExceeded(limit, most, measure[measured]);
    }
    const compared = compare(definition.selectionSet);
    if (compared.repeats > MOST_REPEATS) return limitExceeded('repeats', MOST_REPEATS, compared.repeats);
    comparisons += compared.comparisons;
    if (comparisons > mostComparisons) return limitExceeded('comparisons', mostComparisons);
    if (looks.left < 0) return limitExceeded('selections', mostSelections);
    if (definition.kind === Kind.FRAGMENT_DEFINITION) continue;
    const root = fieldsAt([definition.selectionSet]);
    const listed = listedFields(root, fieldsAt);
    if (listed > MOST_LISTED) return limitExceeded('listedFields', MOST_LISTED, listed);
    introspected += introspectedFields(root, fieldsAt, MOST_INTROSPECTED);
    if (introspected > MOST_INTROSPECTED) return limitExceeded('introspection', MOST_INTROSPECTED);
    if (looks.left < 0) return limitExceeded('selections', mostSelections);
  }
  return undefined;
}

/** Each fragment is measured once, so that fragments of fragments cost no more than they are long. */
function createMeasure(fragments: Fragments): (selections: SelectionSetNode) => Measure {
  const measured = new Map<string, Measure>();
  return measure;

  function measure(set: SelectionSetNode): Measure {
    const total: Measure = { aliases: 0, depth: 0, fields: 0, nesting: 0, rootFields: 0 };
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const below = selection.selectionSet ? measure(selection.selectionSet) : NOTHING;
        add(total, {
          aliases: below.aliases + (selection.alias ? 1 : 0),
          depth: below.depth + 1,
          fields: below.fields + 1,
          nesting: below.nesting,
          rootFields: 1,
        });
      } else {
        add(
          total,
          selection.kind === Kind.INLINE_FRAGMENT ? measure(selection.selectionSet) : fragment(selection.name.value),
        );
      }
    }
    return total;
  }

  function fragment(name: string): Measure {
    const known = measured.get(name);
    if (known) return known;
    const definition = fragments.get(name);
    if (!definition) return NOTHING;
    // Stands while the fragment is measured, so that a cycle ends; validation then refuses it.
    measured.set(name, NOTHING);
    const own = measure(definition.selectionSet);
    const result = { ...own, nesting: own.nesting + 1 };
    measured.set(name, result);
    return result;
  }
}

const NOTHING: Measure = { aliases: 0, depth: 0, fields: 0, nesting: 0, rootFields: 0 };

function add(total: Measure, part: Measure): void {
  total.aliases += part.aliases;
  total.fields += part.fields;
  total.rootFields += part.rootFields;
  total.depth = Math.max(total.depth, part.depth);
  total.nesting = Math.max(total.nesting, part.nesting);
}
