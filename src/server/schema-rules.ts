import { NoFragmentCyclesRule, NoSchemaIntrospectionCustomRule, specifiedRules, validate } from 'graphql';
import type { DocumentNode, GraphQLError } from 'graphql';
import { schema } from '../schema/schema.ts';

/** Nobody corrects more at a time, and one document of a few kilobytes could have thousands, each with a page of text. */
const MOST_ERRORS = 20;

/** What a name came close to costs time and memory by the name's length, and nobody mistypes one in a document of so many characters. */
const LONGEST_HELPED = 10_000;

/**
 * What is wrong with a document. Without introspection the schema cannot be asked for, and no error spells out names of it
 * that the document came close to.
 */
export function schemaErrors(
  document: DocumentNode,
  { introspection }: { introspection: boolean },
): readonly GraphQLError[] {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  const long = (document.loc?.source.body.length ?? Infinity) > LONGEST_HELPED;
  const options = { maxErrors: MOST_ERRORS, hideSuggestions: !introspection || long };
  // Alone and first: the other rules compare fragments of themselves with each other until the stack is full.
  const cycles = validate(schema, document, [NoFragmentCyclesRule], options);
  return cycles.length > 0 ? cycles : validate(schema, document, rules, options);
}
