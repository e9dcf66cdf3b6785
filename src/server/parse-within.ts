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
    return parse(text, { noLocation: isLong(text) });
  } catch (error) {
    throw error instanceof GraphQLError ? parseFailure(error) : error;
  }
}

/**
 * Each error of a document looks for its line from the text's start, up to the end of a line, and there may be a thousand. In a
 * longer text none is told where it is.
 */
const MOST_LOCATED_LINES = 500;
const MOST_LOCATED_CHARACTERS = 10_000;
const LINE_END = /\r\n|[\n\r]/g;

function isLong(text: string): boolean {
  if (text.length > MOST_LOCATED_CHARACTERS) return true;
  return (
    text
      .matchAll(LINE_END)
      .drop(MOST_LOCATED_LINES - 1)
      .next().done !== true
  );
}
