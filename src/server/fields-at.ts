import { Kind } from 'graphql';
import type { FieldNode, SelectionSetNode } from 'graphql';
import type { Fragments } from './fragments.ts';

/** The fields at one place of the answer by the names that they have there. */
export type FieldsAt = ReadonlyMap<string, readonly FieldNode[]>;

/**
 * Collects them from a document that may not be valid: each field that a `@skip` or `@include` could leave out is among them.
 */
export function fieldsAt(sets: readonly SelectionSetNode[], fragments: Fragments): FieldsAt {
  const fields = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  const open = [...sets];
  // The list grows by its fragments while it is gone through.
  for (const { selections } of open) {
    for (const selection of selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) open.push(selection.selectionSet);
      else if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const { value } = selection.name;
        const fragment = spread.has(value) ? undefined : fragments.get(value);
        if (fragment) open.push(fragment.selectionSet);
        spread.add(value);
      } else {
        const key = (selection.alias ?? selection.name).value;
        const same = fields.get(key);
        if (same) same.push(selection);
        else fields.set(key, [selection]);
      }
    }
  }
  return fields;
}

/** What is selected of fields that are one in the answer. */
export function setsBelow(fields: readonly FieldNode[]): SelectionSetNode[] {
  return fields.flatMap(({ selectionSet }) => selectionSet ?? []);
}
