import { Kind } from 'graphql';
import type { FieldNode, SelectionNode, SelectionSetNode } from 'graphql';
import type { Fragments } from './fragments.ts';

/** The fields at one place of the answer by the names that they have there. */
export type FieldsAt = ReadonlyMap<string, readonly FieldNode[]>;

/** Collects what is selected there: each field that a `@skip` or `@include` could leave out is among them. */
export type CollectFields = (sets: readonly SelectionSetNode[]) => FieldsAt;

/** For a document that need not be valid. */
export function createFieldsAt(fragments: Fragments): CollectFields {
  /** A set may be part of thousands of places, and hold thousands of the same spread. */
  const distinct = new Map<SelectionSetNode, readonly SelectionNode[]>();
  return (sets) => {
    const fields = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    const open = [...sets];
    // The list grows by its fragments while it is gone through.
    for (const set of open) {
      for (const selection of distinctOf(set)) {
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
  };

  function distinctOf(set: SelectionSetNode): readonly SelectionNode[] {
    const known = distinct.get(set);
    if (known) return known;
    const spread = new Set<string>();
    const found = set.selections.filter((selection) => {
      if (selection.kind !== Kind.FRAGMENT_SPREAD) return true;
      const { value } = selection.name;
      const isFirst = fragments.has(value) && !spread.has(value);
      spread.add(value);
      return isFirst;
    });
    distinct.set(set, found);
    return found;
  }
}

/** What is selected of fields that are one in the answer. */
export function setsBelow(fields: readonly FieldNode[]): SelectionSetNode[] {
  return fields.flatMap(({ selectionSet }) => selectionSet ?? []);
}
