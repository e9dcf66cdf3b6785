import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { TRANSPORTS, codesOf, sendBy } from '../support/transports.ts';
import type { Send, Sent } from '../support/transports.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Whatever came, it cost no upstream call, and the next sound request is served. */
afterEach(async () => {
  expect(gateway.petApi.log).toHaveLength(0);
  expect((await gateway.query('{ __typename }')).data).toEqual({ __typename: 'Query' });
});

const HEADERS = { authorization: 'Bearer demo-free' };
const FIRST = '{ pets(limit: 1) { id } }';
const BY_LIMIT = 'query ($limit: Int) { pets(limit: $limit) { id } }';
const BY_ID = 'query ($id: ID!) { pet(id: $id) { id } }';
const BY_IDS = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';
const CREATE = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }';
const NO_INT64 = ['', 'abc', '1e3', '1.5', '007', '+1', ' 1', '9223372036854775808', '-9223372036854775809'];

const BAD: [code: string, query: string, sent?: Sent][] = [
  ...['0', '101', '-1'].map((limit): [string, string] => ['BAD_USER_INPUT', `{ pets(limit: ${limit}) { id } }`]),
  ...['1.5', '"20"', '2147483648'].map((limit): [string, string] => [
    'GRAPHQL_VALIDATION_FAILED',
    `{ pets(limit: ${limit}) { id } }`,
  ]),
  ...[0, 101, -1, 1.5, '20'].map((limit): [string, string, Sent] => [
    'BAD_USER_INPUT',
    BY_LIMIT,
    { variables: { limit } },
  ]),
  ...NO_INT64.flatMap((id): [string, string, Sent][] => [
    ['BAD_USER_INPUT', BY_ID, { variables: { id } }],
    ['BAD_USER_INPUT', BY_IDS, { variables: { ids: ['1', id] } }],
    ['BAD_USER_INPUT', CREATE, { variables: { input: { name: 'x', categoryId: id } } }],
    ['BAD_USER_INPUT', `{ pet(id: ${JSON.stringify(id)}) { id } }`, {}],
  ]),
  ...[2 ** 53, -(2 ** 53), 1e300, 1.5].flatMap((id): [string, string, Sent][] => [
    ['BAD_USER_INPUT', BY_ID, { variables: { id } }],
    ['BAD_USER_INPUT', BY_IDS, { variables: { ids: ['1', id] } }],
    ['BAD_USER_INPUT', CREATE, { variables: { input: { name: 'x', categoryId: id } } }],
  ]),
  ['BAD_USER_INPUT', BY_IDS, { variables: { ids: Array.from({ length: 101 }, (_, index) => String(index)) } }],
  ['GRAPHQL_VALIDATION_FAILED', '{ pet(id: 1.5) { id } }'],
  ['GRAPHQL_PARSE_FAILED', '{ pets { id }'],
  ['GRAPHQL_PARSE_FAILED', ' '],
  ['BAD_USER_INPUT', ''],
  ['GRAPHQL_VALIDATION_FAILED', '{ pets { wings } dogs { id } }'],
  ['GRAPHQL_VALIDATION_FAILED', 'subscription { pets { id } }'],
  ['GRAPHQL_VALIDATION_FAILED', '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }'],
  ['GRAPHQL_VALIDATION_FAILED', '{ pets(status: LOST) { id } }'],
  ['BAD_USER_INPUT', `query A ${FIRST} query B ${FIRST}`, { operationName: 'C' }],
  ['BAD_USER_INPUT', `query A ${FIRST} query B ${FIRST}`],
  ['BAD_USER_INPUT', FIRST, { operationName: 1 as never }],
  ['BAD_USER_INPUT', FIRST, { variables: [] as never }],
  ['BAD_USER_INPUT', FIRST, { variables: '{}' as never }],
];

describe.each(TRANSPORTS)('by %s', (transport) => {
  let send: Send;
  beforeAll(() => {
    send = sendBy(transport, gateway);
  });

  test.each(BAD)('%s: %s %j', async (code, query, sent = {}) => {
    const answer = await send(query, sent);
    expect(codesOf(answer)[0]).toBe(code);
    expect(JSON.stringify(answer)).not.toMatch(/originalError|SyntaxError|stack/);
  });

  test('a limit out of range is named with its bounds', async () => {
    const { errors } = await send('{ pets(limit: 101) { id } }');
    expect(errors?.[0]?.message).toMatch(/^limit\b.*\b1 (?:to|and) 100, got 101/);
  });

  test('each of many errors says where it is', async () => {
    const fields = Array.from({ length: 80 }, (_, index) => `a${index}: pets(limit: 0) { id }`);
    const { errors } = await send(`query {\n${fields.join('\n')}\n}`);
    expect(errors).toMatchObject(
      fields.map((_, index) => ({
        path: [`a${index}`],
        locations: [{ line: index + 2, column: 1 }],
        extensions: { code: 'BAD_USER_INPUT' },
      })),
    );
  });
});

describe.each([
  '9007199254740993',
  '-9007199254740993',
  '1e400',
  '2.9999999999999999999',
  '3.0000000000000000001',
  '4503599627370497.5',
  '1e-400',
  '29999999999999999999e-19',
])('the JSON number %s', (number) => {
  const WANTS: [where: string, query: string, variables: string][] = [
    ['an id', BY_ID, `{"id":${number}}`],
    ['ids', BY_IDS, `{"ids":["1",${number}]}`],
    ['one id for a list', BY_IDS, `{"ids":${number}}`],
    ['a field of an input', CREATE, `{"input":{"name":"x","categoryId":${number}}}`],
    [
      'a category alone',
      'mutation ($of: ID!) { createPet(input: { name: "x", categoryId: $of }) { pet { id } } }',
      `{"of":${number}}`,
    ],
  ];

  test.each(WANTS)('is rejected as %s, by POST, GET and fetch', async (_where, query, variables) => {
    const body = `{"query":${JSON.stringify(query)},"variables":${variables}}`;
    const init = { method: 'POST', headers: { ...HEADERS, 'content-type': 'application/json' }, body };
    const search = new URLSearchParams({ query, variables });
    const responses = [
      await fetch(gateway.endpoint, init),
      await gateway.gateway.fetch(new Request(gateway.endpoint, init)),
      // A mutation by GET is another error.
      ...(query.startsWith('query') ? [await fetch(`${gateway.endpoint}?${search}`, { headers: HEADERS })] : []),
    ];
    for (const response of responses) expect(codesOf((await response.json()) as object)).toEqual(['BAD_USER_INPUT']);
  });

  // GraphQL keeps the digits of integers in documents.
  test.skipIf(/^-?\d+$/.test(number))('is rejected as a literal', async () => {
    const wanted = `{ petsById(ids: [1, ${number}]) { id } }`;
    expect(codesOf(await gateway.query(wanted))[0]).toMatch(/^(?:BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)$/);
  });
});

test.each(['3.0', '3e0', '30e-1', '0.3e1'])('the JSON number %s is the id 3', async (number) => {
  const body = `{"query":${JSON.stringify(BY_ID)},"variables":{"id":${number}}}`;
  const headers = { ...HEADERS, 'content-type': 'application/json', 'petql-dry-run': '1' };
  const response = await fetch(gateway.endpoint, { method: 'POST', headers, body });
  expect(await response.json()).toMatchObject({ data: { pet: null } });
});
