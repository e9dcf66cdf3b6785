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

test.each(['9007199254740993', '1e400'])('the JSON number %s is rejected where it would be rounded', async (id) => {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
  const body = `{"query":${JSON.stringify(BY_ID)},"variables":{"id":${id}}}`;
  const response = await fetch(gateway.endpoint, { method: 'POST', headers, body });
  expect(codesOf((await response.json()) as object)).toEqual(['BAD_USER_INPUT']);
});
