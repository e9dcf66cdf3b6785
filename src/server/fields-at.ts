import { Kind } from 'graphql';
import type { FieldNode, FragmentSpreadNode, SelectionSetNode } from 'graphql';
import type { Fragments } from './fragments.ts';

/** The fields at one place of the answer by the names that they have there. */
export interface FieldsAt extends ReadonlyMap<string, readonly FieldNode[]> {
  /** How often the sets there spread fragments, each of them each fragment once; not what fragments spread. */
  readonly spreads: number;
}

/** Collects what is selected there: each field that a `@skip` or `@include` could leave out is among them. */
export type CollectFields = (sets: readonly SelectionSetNode[]) => FieldsAt;

/** How much is still looked at of a document: its places, and the fields and spreads at each of them. */
export interface Looks {
  /** Below zero once there was more to look at; nothing is collected then. */
  left: number;
}

const NOTHING: FieldsAt = Object.assign(new Map<string, readonly FieldNode[]>(), { spreads: 0 });

/** For a document that need not be valid. */
export function createFieldsAt(fragments: Fragments, looks: Looks = { left: Infinity }): CollectFields {
  /** A set may be part of thousands of places, and hold thousands of the same spread. */
  const distinct = new Map<SelectionSetNode, readonly (FieldNode | FragmentSpreadNode)[]>();
  /** Of sets that are alone at their place, as most are: thousands of operations may spread the same fragment. */
  const alone = new Map<SelectionSetNode, FieldsAt>();
  return fieldsAt;

  function fieldsAt(sets: readonly SelectionSetNode[]): FieldsAt {
    looks.left -= 1;
    const [only] = sets;
    if (!only || sets.length > 1) return collected(sets);
    const known = alone.get(only);
    if (known) return known;
    // Stands meanwhile, so that a fragment of nothing but itself ends.
    alone.set(only, NOTHING);
    const [first, ...others] = distinctOf(only);
    const fragment =
      first?.kind === Kind.FRAGMENT_SPREAD && others.length === 0 ? fragments.get(first.name.value) : undefined;
    const found = fragment ? fieldsAt([fragment.selectionSet]) : collected(sets);
    alone.set(only, found);
    return found;
  }

  function collected(sets: readonly SelectionSetNode[]): FieldsAt {
    const fields = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    let spreads = 0;
    const open = looks.left < 0 ? [] : [...sets];
    // The list grows by its fragments while it is gone through.
    for (const [index, set] of open.entries()) {
      const selections = distinctOf(set);
      looks.left -= selections.length;
      for (const selection of selections) {
        if (selection.kind === Kind.FRAGMENT_SPREAD) {
          if (index < sets.length) spreads += 1;
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
    return Object.assign(fields, { spreads });
  }

  /** With what inline fragments hold, and without spreads that add nothing. */
  function distinctOf(set: SelectionSetNode): readonly (FieldNode | FragmentSpreadNode)[] {
    const known = distinct.get(set);
    if (known) return known;
    const spread = new Set<string>();
    const found: (FieldNode | FragmentSpreadNode)[] = [];
    const open = [set];
    for (const { selections } of open) {
      for (const selection of selections) {
        if (selection.kind === Kind.INLINE_FRAGMENT) open.push(selection.selectionSet);
        else if (selection.kind === Kind.FIELD) found.push(selection);
        else if (fragments.has(selection.name.value) && !spread.has(selection.name.value)) {
          spread.add(selection.name.value);
          found.push(selection);
        }
      }
    }
    distinct.set(set, found);
    return found;
  }
}

/** What is selected of fields that are one in the answer. */
export function setsBelow(fields: readonly FieldNode[]): SelectionSetNode[] {
  return fields.flatMap(({ selectionSet }) => selectionSet ?? []);
}
