import { getOperationAST } from 'graphql';
import type { DocumentNode } from 'graphql';
import { createFieldsAt } from './fields-at.ts';
import { fragmentsOf } from './fragments.ts';

/**
 * Whether nothing of an operation can run without an API key: it asks for data and for nothing else. Introspection,
 * `__typename` included, needs none.
 */
export function operationNeedsKey(document: DocumentNode, operationName: string | undefined): boolean {
  const operation = getOperationAST(document, operationName);
  if (!operation) return false;
  const root = createFieldsAt(fragmentsOf(document))([operation.selectionSet]);
  return root.values().every((fields) => fields.every(({ name }) => !name.value.startsWith('__')));
}
