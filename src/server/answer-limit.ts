import type { GraphQLError } from 'graphql';
import { graphqlError } from './error-answers.ts';
import { limitExceeded } from './limit-exceeded.ts';

/**
 * Characters of the JSON of a query's data. An operation of a few kilobytes can show one listing two hundred times, and how
 * long its names are is for whoever added them to say.
 */
export const MOST_CHARACTERS = 4_194_304;

/** What stands in the place of longer data. The operation has run, so that its HTTP status is that of one. */
export function answerTooLong(): GraphQLError {
  return graphqlError(limitExceeded('answer', MOST_CHARACTERS, undefined, 200));
}

/** How long a value's JSON would be; whatever is more than `most` is not looked at to its end. */
export function jsonLength(value: unknown, most = Infinity): number {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value).length;
  let length = 2;
  for (const [index, [key, item]] of Object.entries(value).entries()) {
    if (index > 0) length += 1;
    if (!Array.isArray(value)) length += JSON.stringify(key).length + 1;
    length += jsonLength(item, most - length);
    if (length > most) return length;
  }
  return length;
}
