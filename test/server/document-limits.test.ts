import { getIntrospectionQuery, parse } from 'graphql';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import type { Limits } from '../../src/limits.ts';
import { documentLimitError } from '../../src/server/document-limits.ts';

const limits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, { fallback }]) => [name, fallback]),
) as unknown as Limits;

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => one(index)).join(' ');

const components = (count: number, on: string, fields: string) =>
  times(count, (index) => `fragment C${index} on ${on} { ${fields} }`);
const spreads = (count: number) => times(count, (index) => `...C${index}`);

test.each([
  ['the schema, as GraphiQL asks for it', getIntrospectionQuery({ inputValueDeprecation: true, oneOf: true })],
  [
    'two hundred animals',
    `{ ${times(200, (k) => `p${k}: pet(id: "${k}") { ...C0 __typename }`)} } ${components(1, 'Pet', 'id name status')}`,
  ],
  [
    'fifteen hundred fields',
    `{ ${times(150, (k) => `p${k}: pet(id: "${k}") { id name status }`)} ${times(45, (k) => `q${k}: rateLimit { ${times(18, () => 'plan')} }`)} }`,
  ],
  [
    'a hundred components over one list',
    `{ pets { ${spreads(100)} } } ${components(100, 'Pet', 'id name status categoryId __typename')}`,
  ],
  ['the same with ten fields each', `{ pets { ${spreads(100)} } } ${components(100, 'Pet', 'a b c d e f g h i j')}`],
  [
    'a page of them',
    `{ ...Page } fragment Page on Query { pets { ${spreads(100)} } } ${components(100, 'Pet', 'id name status')}`,
  ],
  [
    'a hundred components that each list',
    `{ ${spreads(100)} } ${components(100, 'Query', 'pets(status: AVAILABLE) { id name }')}`,
  ],
  [
    'ten lists of twenty components',
    `{ ${times(10, (k) => `l${k}: pets { ${spreads(20)} }`)} } ${components(20, 'Pet', 'id name status')}`,
  ],
  [
    'fifty operations over twenty fragments',
    `${times(50, (k) => `query q${k} { pets { ${spreads(20)} } }`)} ${components(20, 'Pet', 'id name status')}`,
  ],
  ['three hundred operations', times(300, (k) => `query q${k} { pets { id } }`)],
])('what is asked for in earnest is within all limits: %s', (_name, text) => {
  expect(documentLimitError(parse(text), limits)).toBeUndefined();
});

test('where more fields are allowed, more may be looked at', () => {
  const document = parse(`{ ${times(150, (k) => `a${k} { ${times(150, (j) => `b${j} c${j}`)} }`)} }`);
  const most = { ...limits, maxFields: 100_000 };
  expect(documentLimitError(document, { ...most, maxFields: 1_500 })?.details).toMatchObject({ limit: 'fields' });
  expect(documentLimitError(document, most)).toBeUndefined();
});

test('the selections of all operations and fragments count together', () => {
  const document = (operations: number) =>
    parse(
      `${times(operations, (k) => `query q${k} { __typename ...F }`)} fragment F on Query { ${times(150, (k) => `a${k}`)} }`,
    );
  expect(documentLimitError(document(100), limits)).toBeUndefined();
  expect(documentLimitError(document(150), limits)?.details).toEqual({ limit: 'selections', most: 20_000 });
});

test('comparisons of all places and definitions count together, and those of a fragment once', () => {
  const list = (name: string) => `${name}: pets { ${'id name status '.repeat(90)} }`;
  const shared = (operations: number) =>
    parse(`${times(operations, (k) => `query q${k} { ...F }`)} fragment F on Query { ${list('a')} ${list('b')} }`);
  expect(documentLimitError(shared(20), limits)).toBeUndefined();
  const own = (operations: number) => parse(times(operations, (k) => `query q${k} { ${list('a')} ${list('b')} }`));
  expect(documentLimitError(own(4), limits)).toBeUndefined();
  expect(documentLimitError(own(6), limits)?.details).toEqual({ limit: 'comparisons', most: 130_000 });
  expect(documentLimitError(own(6), { ...limits, maxFields: 3_000 })).toBeUndefined();
});
