import { Kind } from 'graphql';
import type { DocumentNode, FragmentDefinitionNode, SelectionSetNode } from 'graphql';
import type { PetqlError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** The limits of a document that was parsed. */
const MEASURED = {
  depth: 'maxDepth',
  rootFields: 'maxRootFields',
  aliases: 'maxAliases',
  fields: 'maxFields',
} as const satisfies Record<string, keyof Limits>;

type Measure = Record<keyof typeof MEASURED, number>;

/**
 * Checks a parsed document before it is validated.
 *
 * @returns the LIMIT_EXCEEDED error of the first limit that an operation is past, or undefined.
 */
export function documentLimitError(document: DocumentNode, limits: Limits): PetqlError | undefined {
  const measureOf = createMeasure(document);
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const measure = measureOf(definition.selectionSet);
    for (const limit of ['depth', 'rootFields', 'aliases', 'fields'] as const) {
      const most = limits[MEASURED[limit]];
      if (measure[limit] > most) return limitExceeded(limit, most, measure[limit]);
    }
  }
  return undefined;
}

/** The most fields that an operation of the document has at its top. */
export function rootFieldsOf(document: DocumentNode): number {
  const measureOf = createMeasure(document);
  const operations = document.definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  return Math.max(0, ...operations.map(({ selectionSet }) => measureOf(selectionSet).rootFields));
}

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
