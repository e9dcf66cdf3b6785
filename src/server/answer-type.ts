const JSON_TYPE = 'application/json; charset=utf-8';
const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';

/** What weighs nothing is not accepted (RFC 9110, section 12.4.2). */
const WEIGHS_NOTHING = /;\s*q\s*=\s*0(?:\.0*)?\s*(?:[;,]|$)/i;

/**
 * The content type of an answer to whoever accepts this, as Yoga chooses it: the first type that it has, whatever the
 * weights.
 *
 * @returns undefined where it is something else, names a character set, or refuses something, so that Yoga has to be asked.
 */
export function answerType(accept: string | undefined): string | undefined {
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return JSON_TYPE;
  if (accept.length > LONGEST || accept.toLowerCase().includes('charset') || WEIGHS_NOTHING.test(accept)) {
    return undefined;
  }
  for (const part of accept.split(',')) {
    const [type = ''] = part.split(';', 1);
    const asked = type.replaceAll(/\s/g, '').toLowerCase();
    const known = TYPES.get(asked);
    if (known || asked.includes('*')) return known;
  }
  return undefined;
}

/**
 * Whether whoever accepts this can be answered in JSON, as Yoga sees it. It looks only once an operation has run, which would
 * be paid for in vain, and a creation would have happened; and it has other types, for answers that come in parts.
 */
export function isAcceptable(accept: string | null): boolean {
  return (accept || '*/*').split(',').some((part) => {
    const [type = '', ...params] = part.replaceAll(/\s/g, '').toLowerCase().split(';');
    const charset = params.find((param) => param.includes('charset=')) ?? UTF_8;
    const [kind, format] = type.split('/');
    return (
      charset === UTF_8 &&
      !WEIGHS_NOTHING.test(part) &&
      (kind === '*' || kind === 'application') &&
      (format === '*' || format === 'json' || format === 'graphql-response+json')
    );
  });
}

const UTF_8 = 'charset=utf-8';

/** Longer than what clients send. */
const LONGEST = 200;

const TYPES: ReadonlyMap<string, string> = new Map([
  ['application/json', JSON_TYPE],
  ['application/*', JSON_TYPE],
  ['*/*', JSON_TYPE],
  ['application/graphql-response+json', GRAPHQL_TYPE],
]);
