const JSON_TYPE = 'application/json; charset=utf-8';
const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';

/**
 * The content type of an answer to whoever accepts this, as Yoga chooses it: the first type that it has, whatever the
 * weights.
 *
 * @returns undefined where it is something else, or names a character set, so that Yoga has to be asked.
 */
export function answerType(accept: string | undefined): string | undefined {
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return JSON_TYPE;
  if (accept.length > LONGEST || accept.toLowerCase().includes('charset')) return undefined;
  for (const part of accept.split(',')) {
    const [type = ''] = part.split(';', 1);
    const asked = type.replaceAll(/\s/g, '').toLowerCase();
    const known = TYPES.get(asked);
    if (known || asked.includes('*')) return known;
  }
  return undefined;
}

/** Longer than what clients send. */
const LONGEST = 200;

const TYPES: ReadonlyMap<string, string> = new Map([
  ['application/json', JSON_TYPE],
  ['application/*', JSON_TYPE],
  ['*/*', JSON_TYPE],
  ['application/graphql-response+json', GRAPHQL_TYPE],
]);
