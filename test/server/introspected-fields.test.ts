import { getIntrospectionQuery, getOperationAST, graphqlSync, parse } from 'graphql';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import type { Limits } from '../../src/limits.ts';
import { schema } from '../../src/schema/schema.ts';
import { documentLimitError } from '../../src/server/document-limits.ts';
import { createFieldsAt } from '../../src/server/fields-at.ts';
import { fragmentsOf } from '../../src/server/fragments.ts';
import { introspectedFields } from '../../src/server/introspected-fields.ts';

const limits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, { fallback }]) => [name, fallback]),
) as unknown as Limits;
const ALL = {
  descriptions: true,
  schemaDescription: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  inputValueDeprecation: true,
  experimentalDirectiveDeprecation: true,
  oneOf: true,
};

function countOf(query: string, most = Infinity): number {
  const document = parse(query);
  const operation = getOperationAST(document);
  if (!operation) throw new Error('expected an operation');
  const fieldsAt = createFieldsAt(fragmentsOf(document));
  return introspectedFields(fieldsAt([operation.selectionSet]), fieldsAt, most);
}

function fieldsIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, below) => sum + fieldsIn(below), own);
}

test.each([
  getIntrospectionQuery(),
  getIntrospectionQuery(ALL),
  '{ __schema { queryType { name fields { args { name defaultValue type { ofType { name } } } } } mutationType { name } } }',
  '{ __schema { directives { name locations args { name type { enumValues { name } } } } subscriptionType { name } } }',
  '{ __type(name: "PetStatus") { enumValues { name description } possibleTypes { name } interfaces { name } } }',
  '{ __type(name: "CreatePetInput") { inputFields { name type { kind ofType { kind } } } } other: __type(name: "None") { name } }',
  '{ ...f ... { __schema { types { name } } } } fragment f on Query { __schema { types { name kind ...g ...g } } } fragment g on __Type { kind fields(includeDeprecated: true) { name } }',
])('as many fields are counted as the answer has', (query) => {
  // The operation's own fields, which the lists do not multiply, are not among them.
  const { data, errors } = graphqlSync({ schema, source: query });
  expect(errors).toBeUndefined();
  expect(countOf(query)).toBe(fieldsIn(data) - Object.keys(data ?? {}).length);
});

test('what a variable leaves open counts as if it were everything', () => {
  const types = Object.keys(schema.getTypeMap()).length;
  expect(countOf('query ($name: String!) { __type(name: $name) { name kind } }')).toBe(2 * types);
  const left = '__schema { types { name @skip(if: $if) kind @include(if: $if) } }';
  expect(countOf(`query ($if: Boolean!) { ${left} }`)).toBe(2 * types + 1);
});

test('what is not the schema, or not in it, counts as itself or not at all', () => {
  expect(countOf('{ __typename pets { id __typename } pet(id: "1") { id } }')).toBe(0);
  expect(countOf('{ __schema { petz { name } description { text } } }')).toBe(2);
  expect(countOf('{ __type { name } __schema }')).toBe(0);
});

test('no more is looked at than matters', () => {
  const ring = '{ __schema { types { ...t } } } fragment t on __Type { fields { type { ...t } } }';
  expect(countOf(ring, 1_000)).toBeGreaterThan(1_000);
});

test.each([7, 9, 11, 13])(
  'tools that ask for all of the schema, with types in %i others, are far from the limit',
  (typeDepth) => {
    const query = getIntrospectionQuery({ ...ALL, typeDepth });
    expect(documentLimitError(parse(query), limits)).toBeUndefined();
    expect(countOf(query)).toBeLessThan(5_000 / 3);
  },
);

test('the limit is that of all operations of a document together', () => {
  const operations = (count: number) =>
    `${Array.from({ length: count }, (_, k) => `query q${k} { ...f }`).join(' ')} fragment f on Query { __schema { types { name } } }`;
  expect(documentLimitError(parse(operations(100)), limits)).toBeUndefined();
  expect(documentLimitError(parse(operations(300)), limits)).toMatchObject({
    code: 'LIMIT_EXCEEDED',
    details: { limit: 'introspection', most: 5_000 },
  });
});
