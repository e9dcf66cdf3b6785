import { NoFragmentCyclesRule, NoSchemaIntrospectionCustomRule, specifiedRules, validate } from 'graphql';
import type { DocumentNode, GraphQLError, GraphQLSchema, ValidationRule } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { schema } from '../schema/schema.ts';

/** Nobody corrects more at a time, and one document of a few kilobytes could have thousands, each with a page of text. */
const MOST_ERRORS = 20;

/** What a name came close to costs time and memory by the name's length, and nobody mistypes one in a document of so many characters. */
const LONGEST_HELPED = 10_000;

/**
 * How documents are held against the schema. Without introspection the schema cannot be asked for, and no error spells out
 * names of it that the document came close to.
 */
export function useSchemaRules({ introspection }: { introspection: boolean }): Plugin {
  return {
    onValidate({ addValidationRule, setValidationFn }) {
      if (!introspection) addValidationRule(NoSchemaIntrospectionCustomRule);
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode, rules: readonly ValidationRule[]) =>
        schemaErrors(document, { introspection, rules }),
      );
    },
  };
}

/** What is wrong with a document. */
export function schemaErrors(
  document: DocumentNode,
  { introspection, rules = specifiedRules }: { introspection: boolean; rules?: readonly ValidationRule[] },
): readonly GraphQLError[] {
  const long = (document.loc?.source.body.length ?? Infinity) > LONGEST_HELPED;
  const options = { maxErrors: MOST_ERRORS, hideSuggestions: !introspection || long };
  // Alone and first: the other rules compare fragments of themselves with each other until the stack is full.
  const cycles = validate(schema, document, [NoFragmentCyclesRule], options);
  return cycles.length > 0 ? cycles : validate(schema, document, rules, options);
}
