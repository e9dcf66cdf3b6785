import { PetqlError } from '../../errors.ts';

/** What can exceed its limit: the limits' settings without their `max`. */
export type LimitName = keyof typeof RULES;

/** The LIMIT_EXCEEDED error, which names the limit, its maximum and, where it is known, what the request has. */
export function limitExceeded(limit: LimitName, max: number, actual?: number): PetqlError {
  const [rule, httpStatus] = RULES[limit];
  const got = actual === undefined ? '' : `, got ${actual}`;
  const message = `${rule.replace('#', String(max))}${got}. Ask for less, or split the operation.`;
  return new PetqlError('LIMIT_EXCEEDED', message, {
    details: { limit, most: max },
    ...(httpStatus && { httpStatus }),
  });
}

const RULES = {
  bodyBytes: ['The request body must have at most # bytes', 413],
  tokens: ['The document must have at most # tokens', 400],
  depth: ['The document must have at most # levels of fields', 400],
  aliases: ['The document must have at most # aliases', 400],
  cost: ['The document must have a cost of at most #', 400],
  upstreamCalls: ['The operation must need at most # upstream calls at worst', 400],
  // The operation has run.
  answer: ['The data of the result must have at most # characters', undefined],
} as const;
