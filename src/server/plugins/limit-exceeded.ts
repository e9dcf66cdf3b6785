import { PetqlError } from '../../common/errors.ts';

/** What can exceed its limit: the limits' settings without their `max`. */
type LimitName = keyof typeof LIMIT_RULES;

/**
 * The LIMIT_EXCEEDED error, which names the limit, its maximum and, where it is known, what the request has.
 *
 * @param httpStatus default 422.
 */
export function limitExceeded(limit: LimitName, max: number, actual?: number, httpStatus = 422): PetqlError {
  const got = actual === undefined ? '' : `, got ${actual}`;
  const message = `${LIMIT_RULES[limit].replace('#', String(max))}${got}. ${ADVICE}`;
  return new PetqlError('LIMIT_EXCEEDED', message, { details: { limit, max }, httpStatus });
}

const LIMIT_RULES = {
  bodyBytes: 'The request body must have at most # bytes',
  tokens: 'The document must have at most # tokens',
  depth: 'The document must have at most # levels of fields',
  nameLength: 'Names and aliases must have at most # characters',
  repeats: 'The document must have at most # fields of one response name',
  comparisons: 'The validation of the document must compare fields at most # times',
  aliases: 'The document must have at most # aliases',
  cost: 'The document must have a cost of at most #',
  resultBytes: 'The data and errors of the result must have at most # bytes',
  upstreamCalls: 'The operation must need at most # upstream calls at worst',
} as const;

const ADVICE = 'Ask for less, or split the operation.';
