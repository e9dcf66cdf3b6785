import { NoSchemaIntrospectionCustomRule, validate } from 'graphql';
import type { DocumentNode, GraphQLSchema, ValidationRule } from 'graphql';
import type { Plugin } from 'graphql-yoga';

/** The schema cannot be asked for, and no error spells out names of it that the document came close to. */
export function useHiddenSchema(): Plugin {
  return {
    onValidate({ addValidationRule, setValidationFn }) {
      addValidationRule(NoSchemaIntrospectionCustomRule);
      setValidationFn((schema: GraphQLSchema, document: DocumentNode, rules: readonly ValidationRule[]) =>
        validate(schema, document, rules, { hideSuggestions: true }),
      );
    },
  };
}
