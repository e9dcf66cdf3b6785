import { Kind } from 'graphql';
import type { DocumentNode, FragmentDefinitionNode, SelectionSetNode } from 'graphql';
import { PetqlError } from '../errors.ts';

/** The largest request body that is read. A document of the longest kind needs far less. */
export const LARGEST_BODY_BYTES = 262_144;

/** What a document may hold at most. Room for a hundred aliased reads and for every introspection query. */
export const DOCUMENT_LIMITS = {
  /** Counted while parsing, so that nothing longer is ever parsed. */
  tokens: 5000,
  /** Levels of fields; introspection needs 14. */
  depth: 20,
  /** Aliases, fields and fields of the operation itself, counted as if each fragment stood where it is used. */
  aliases: 200,
  fields: 1500,
  rootFields: 200,
} as const;

type Measure = Record<'aliases' | 'depth' | 'fields' | 'rootFields', number>;

/**
 * Checks a parsed document before it is validated.
 *
 * @returns the LIMIT_EXCEEDED error of the first limit that an operation is past, or undefined.
 */
export function documentLimitError(document: DocumentNode): PetqlError | undefined {
  const measureOf = createMeasure(document);
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const measure = measureOf(definition.selectionSet);
    for (const limit of ['depth', 'rootFields', 'aliases', 'fields'] as const) {
      if (measure[limit] > DOCUMENT_LIMITS[limit]) return limitExceeded(limit, measure[limit]);
    }
  }
  return undefined;
}

export function limitExceeded(limit: keyof typeof DOCUMENT_LIMITS, came?: number): PetqlError {
  const most = DOCUMENT_LIMITS[limit];
  return new PetqlError(
    'LIMIT_EXCEEDED',
    `The document is past a limit: at most ${most} ${NAMES[limit]}${came === undefined ? '' : `, got ${came}`}.`,
    { details: { limit, most }, httpStatus: 400 },
  );
}

const NAMES = {
  tokens: 'tokens',
  depth: 'levels',
  aliases: 'aliases',
  fields: 'fields',
  rootFields: 'fields in an operation',
} as const;

/** Each fragment is measured once, so that fragments of fragments cost no more than they are long. */
function createMeasure(document: DocumentNode): (selections: SelectionSetNode) => Measure {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const measured = new Map<string, Measure>();
  return measure;

  function measure(set: SelectionSetNode): Measure {
    const total: Measure = { aliases: 0, depth: 0, fields: 0, rootFields: 0 };
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const below = selection.selectionSet ? measure(selection.selectionSet) : NOTHING;
        add(total, {
          aliases: below.aliases + (selection.alias ? 1 : 0),
          depth: below.depth + 1,
          fields: below.fields + 1,
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
    const result = measure(definition.selectionSet);
    measured.set(name, result);
    return result;
  }
}

const NOTHING: Measure = { aliases: 0, depth: 0, fields: 0, rootFields: 0 };

function add(total: Measure, part: Measure): void {
  total.aliases += part.aliases;
  total.fields += part.fields;
  total.rootFields += part.rootFields;
  total.depth = Math.max(total.depth, part.depth);
}
