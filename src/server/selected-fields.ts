import { Kind } from 'graphql';
import type { DocumentNode, FieldNode, SelectionNode, SelectionSetNode } from 'graphql';
import { fragmentsOf } from './fragments.ts';

/** The fields of some selection sets by the names that they have in the answer, in the answer's order. */
export type SelectedFields = (sets: readonly SelectionSetNode[]) => ReadonlyMap<string, readonly FieldNode[]>;

/**
 * Fields as GraphQL's algorithm collects them (October 2021 edition, section 6.3.2), for a schema without abstract types: a
 * fragment that validation has let through always applies.
 *
 * @param isTrue what each variable is that a `@skip` or `@include` is decided by.
 */
export function createSelectedFields(document: DocumentNode, isTrue: (variable: string) => boolean): SelectedFields {
  const fragments = fragmentsOf(document);

  return (sets) => {
    const fields = new Map<string, FieldNode[]>();
    const visited = new Set<string>();
    for (const set of sets) visit(set);
    return fields;

    function visit({ selections }: SelectionSetNode): void {
      for (const selection of selections) {
        if (!isIncluded(selection)) continue;
        if (selection.kind === Kind.FIELD) {
          const key = (selection.alias ?? selection.name).value;
          const others = fields.get(key);
          if (others) others.push(selection);
          else fields.set(key, [selection]);
        } else if (selection.kind === Kind.INLINE_FRAGMENT) visit(selection.selectionSet);
        else visitFragment(selection.name.value);
      }
    }

    function visitFragment(name: string): void {
      const fragment = fragments.get(name);
      if (!fragment || visited.has(name)) return;
      visited.add(name);
      visit(fragment.selectionSet);
    }
  };

  function isIncluded({ directives = [] }: SelectionNode): boolean {
    return directives.every(({ name, arguments: [argument] = [] }) => {
      const value = argument?.value;
      const met =
        value?.kind === Kind.VARIABLE ? isTrue(value.name.value) : value?.kind === Kind.BOOLEAN && value.value;
      return name.value === 'skip' ? !met : met;
    });
  }
}
