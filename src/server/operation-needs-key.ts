import { Kind, getOperationAST } from 'graphql';
import type { DocumentNode, SelectionSetNode } from 'graphql';

/**
 * Whether nothing of an operation can run without an API key: it asks for data and for nothing else. Introspection,
 * `__typename` included, needs none.
 */
export function operationNeedsKey(document: DocumentNode, operationName: string | undefined): boolean {
  const operation = getOperationAST(document, operationName);
  if (!operation) return false;
  const visited = new Set<string>();
  return every(operation.selectionSet);

  function every({ selections }: SelectionSetNode): boolean {
    return selections.every((selection) => {
      if (selection.kind === Kind.FIELD) return !selection.name.value.startsWith('__');
      if (selection.kind === Kind.INLINE_FRAGMENT) return every(selection.selectionSet);
      if (visited.has(selection.name.value)) return true;
      visited.add(selection.name.value);
      const fragment = document.definitions.find(
        (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value,
      );
      return fragment?.kind === Kind.FRAGMENT_DEFINITION ? every(fragment.selectionSet) : true;
    });
  }
}
