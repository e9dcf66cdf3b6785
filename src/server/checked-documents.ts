import { GraphQLError } from 'graphql';
import type { DocumentNode } from 'graphql';
import type { Limits } from '../limits.ts';
import { graphqlError } from './error-answers.ts';
import { documentLimitError } from './document-limits.ts';
import { parseWithin } from './parse-within.ts';
import { schemaErrors } from './schema-rules.ts';

/** Documents as both ways to answer see them: what the one has found out of a text, the other need not find out again. */
export interface CheckedDocuments {
  /**
   * The document of a text that is within all limits.
   *
   * @throws GraphQLError LIMIT_EXCEEDED or GRAPHQL_PARSE_FAILED.
   */
  parse(text: string): DocumentNode;
  /** What is wrong with it by the schema's rules. */
  errors(document: DocumentNode): readonly GraphQLError[];
}

export interface CheckedDocumentsOptions {
  readonly limits: Limits;
  /** Whether the schema can be asked for. */
  readonly introspection: boolean;
}

export function createCheckedDocuments({ limits, introspection }: CheckedDocumentsOptions): CheckedDocuments {
  /** Of the last text alone: the other way is taken next. */
  let last: { readonly text: string; readonly found: DocumentNode | GraphQLError } | undefined;
  const known = new WeakMap<DocumentNode, readonly GraphQLError[]>();
  return {
    parse(text) {
      if (last?.text !== text) last = { text, found: find(text) };
      const { found } = last;
      if (found instanceof GraphQLError) throw found;
      return found;
    },
    errors(document) {
      const errors = known.get(document) ?? schemaErrors(document, { introspection });
      known.set(document, errors);
      return errors;
    },
  };

  function find(text: string): DocumentNode | GraphQLError {
    try {
      const document = parseWithin(text, limits);
      const limitError = documentLimitError(document, limits);
      return limitError ? graphqlError(limitError) : document;
    } catch (error) {
      if (error instanceof GraphQLError) return error;
      throw error;
    }
  }
}
