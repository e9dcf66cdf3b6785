import { PetqlError } from '../errors.ts';

/** What can be past its limit: the limits' settings without their `max`. */
export type LimitName = keyof typeof WORDS;

/**
 * The LIMIT_EXCEEDED error, which names the limit, what it allows and, where that is known, what came.
 *
 * @param httpStatus default 400.
 */
export function limitExceeded(limit: LimitName, most: number, came?: number, httpStatus = 400): PetqlError {
  const got = came === undefined ? '' : `, got ${came}`;
  const message = `${WORDS[limit].replace('#', String(most))}${got}.`;
  return new PetqlError('LIMIT_EXCEEDED', message, { details: { limit, most }, httpStatus });
}

const WORDS = {
  bodyBytes: 'The request is past a limit: expected a body of at most # bytes',
  tokens: 'The document is past a limit: at most # tokens, and as many lines',
  depth: 'The document is past a limit: at most # levels of fields, of fragments, or of lists and objects in arguments',
  rootFields: 'The document is past a limit: at most # fields in an operation',
  aliases: 'The document is past a limit: at most # aliases',
  fields: 'The document is past a limit: at most # fields',
  repeats: 'The document is past a limit: at most # times the same field at one place',
  comparisons: 'The document is past a limit: at most # comparisons of fields and fragments that are at one place',
  selections:
    'The document is past a limit: at most # selections, at all places where its operations and fragments put them',
  listedFields: 'The document is past a limit: at most # fields of animals that `pets` can show',
  introspection: 'The document is past a limit: at most # fields of the answer that tell of the schema',
  ids: 'The operation is past a limit: at most # ids in all its lists',
  variables: 'The variables are past a limit: at most # values, with those in lists and objects',
  answer: 'The answer is past a limit: at most # characters of data',
  upstreamCalls: 'The operation is past a limit: at most # upstream calls in the worst case',
  batch: 'The request is past a limit: at most # operations',
} as const;
