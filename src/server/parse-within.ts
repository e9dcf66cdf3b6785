import { GraphQLError, parse } from 'graphql';
import type { DocumentNode } from 'graphql';
import type { Limits } from '../limits.ts';
import { graphqlError, parseFailure } from './error-answers.ts';
import { textLimitError } from './text-limits.ts';

/**
 * The document of a text that is within the limits for texts.
 *
 * @throws GraphQLError LIMIT_EXCEEDED or GRAPHQL_PARSE_FAILED.
 */
export function parseWithin(text: string, limits: Limits): DocumentNode {
  const limitError = textLimitError(text, limits);
  if (limitError) throw graphqlError(limitError);
  try {
    return parse(text);
  } catch (error) {
    throw error instanceof GraphQLError ? parseFailure(error) : error;
  }
}
