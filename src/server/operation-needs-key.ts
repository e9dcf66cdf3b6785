import { Kind, getOperationAST } from 'graphql';
import type { DocumentNode, SelectionSetNode } from 'graphql';
import { fragmentsOf } from './fragments.ts';

/**
 * Whether nothing of an operation can run without an API key: it asks for data and for nothing else. Introspection,
 * `__typename` included, needs none.
 */
export function operationNeedsKey(document: DocumentNode, operationName: string | undefined): boolean {
  const operation = getOperationAST(document, operationName);
  if (!operation) return false;
  const fragments = fragmentsOf(document);
  const visited = new Set<string>();
  return every(operation.selectionSet);

  function every({ selections }: SelectionSetNode): boolean {
    return selections.every((selection) => {
      if (selection.kind === Kind.FIELD) return !selection.name.value.startsWith('__');
      if (selection.kind === Kind.INLINE_FRAGMENT) return every(selection.selectionSet);
      if (visited.has(selection.name.value)) return true;
      visited.add(selection.name.value);
      const fragment = fragments.get(selection.name.value);
      return fragment ? every(fragment.selectionSet) : true;
    });
  }
}
