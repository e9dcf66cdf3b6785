import { parse } from 'graphql';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import type { Limits } from '../../src/limits.ts';
import { documentLimitError } from '../../src/server/document-limits.ts';

const limits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, { fallback }]) => [name, fallback]),
) as unknown as Limits;
const FIELDS = 'id name categoryId status';
const past = (query: string) => documentLimitError(parse(query), limits)?.details?.['limit'];
const aliased = (count: number, field: string) =>
  Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ');

test.each([
  `{ ${aliased(200, 'pet(id: "1") { id name categoryId status __typename }')} }`,
  `{ ${aliased(50, `pets(limit: 100) { ${FIELDS} }`)} }`,
  `{ ${aliased(200, `pets { ${FIELDS} }`)} }`,
  `{ ${aliased(200, `pets(limit: null, status: SOLD) { ${FIELDS} }`)} }`,
  `query ($n: Int) { ${aliased(50, `pets(limit: $n) { ${FIELDS} }`)} }`,
  `{ ${aliased(199, `pets(limit: 25) { ${FIELDS} }`)} }`,
  // Fragments of components ask for the same again.
  `{ ...a ...b } ${['a', 'b'].map((name) => `fragment ${name} on Query { ${aliased(50, `pets(limit: 100) { ${FIELDS} }`)} }`).join(' ')}`,
  `{ pets(limit: 100) { ${aliased(190, 'name')} } }`,
])('what is asked for in earnest may be shown', (query) => {
  expect(past(query)).toBeUndefined();
});

// Half a megabyte and more for a document of some kilobytes, out of one listing that is known already.
test.each([
  `{ ${aliased(51, `pets(limit: 100) { ${FIELDS} }`)} }`,
  `{ ${aliased(51, `pets(limit: 1000000) { ${FIELDS} }`)} }`,
  `query ($n: Int) { ${aliased(51, `pets(status: SOLD, limit: $n) { ${FIELDS} }`)} }`,
  `{ ${aliased(200, `pets(limit: 26) { ${FIELDS} }`)} }`,
  // What is no limit takes nothing off the others.
  `{ b: pets(limit: -1000000) { id } ${aliased(51, `pets(limit: 100) { ${FIELDS} }`)} }`,
  `{ ${aliased(51, 'pets(limit: 100) { ...f }')} } fragment f on Pet { ${FIELDS} }`,
  `{ ... { ${aliased(25, `pets(limit: 100) { ${FIELDS} }`)} } ...g } fragment g on Query { b: pets(limit: 100) { ${aliased(110, 'name')} } c: pets(limit: 100) { ${FIELDS} } }`,
])('lists that show the same animals again and again are past a limit', (query) => {
  expect(past(query)).toBe('listedFields');
});
