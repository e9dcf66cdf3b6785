import { Kind } from 'graphql';
import type { DocumentNode, FragmentDefinitionNode } from 'graphql';

/** The fragments of a document, by their names. */
export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
}
