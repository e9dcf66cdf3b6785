import { readFileSync } from 'node:fs';
import { getIntrospectionQuery } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { fails } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { TRANSPORTS, codesOf, sendBy } from '../support/transports.ts';

const README = readFileSync(new URL('../../schema/README.md', import.meta.url), 'utf8').replaceAll(/\s+/g, ' ');

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, k) => one(k)).join(' ');
const aliases = (count: number) => `{ ${times(count, (k) => `a${k}: __typename`)} }`;
/** Fragments in layers, each of which spreads all of the layers below it; the lowest spread one that does not exist. */
const thicket = (layers: number, wide: number) =>
  times(layers * wide, (k) => {
    const layer = Math.floor(k / wide);
    const lower = times((layers - layer - 1) * wide, (j) => `...g${(layer + 1) * wide + j}`);
    return `fragment g${k} on Pet { ${lower || '...none'} }`;
  });

/** Documents over a default limit. Without it each costs seconds, the stack, or megabytes. */
const OVER: [limit: string, name: string, document: string][] = [
  ['tokens', '2,000 aliases', aliases(2_000)],
  ['tokens', 'unknown fields', `{ ${'\n'.repeat(20_000)} ${times(1_500, (k) => `x${k}`)} }`],
  ['tokens', 'lists in lists', `{ pets(limit: ${'['.repeat(4_900)}`],
  ['tokens', 'selections in selections', `${'{ a'.repeat(400)}${'}'.repeat(400)}`],
  ['aliases', '101 aliases', aliases(101)],
  [
    'aliases',
    'fragments that multiply',
    `{ ...f0 } ${times(40, (k) => `fragment f${k} on Query { ...f${k + 1} ...f${k + 1} }`)} fragment f40 on Query { a: __typename }`,
  ],
  ['depth', '21 levels', `${'{ a '.repeat(21)}${'}'.repeat(21)}`],
  [
    'depth',
    'levels in fragments',
    `{ pets { ...f0 } } ${times(60, (k) => `fragment f${k} on Pet { a { ...f${k + 1} } }`)}`,
  ],
  [
    'cost',
    'lists of the schema in lists',
    `{ __schema { ${times(40, (k) => `a${k}: types { name fields { name type { name fields { name } } } }`)} } }`,
  ],
  [
    'cost',
    'lists of the same pets',
    `{ ${times(60, (k) => `a${k}: pets(limit: 100) { id name categoryId status }`)} }`,
  ],
  [
    'cost',
    'lists with variable limits',
    `query ($n: Int) { ${times(60, (k) => `a${k}: pets(limit: $n) { id name categoryId status }`)} }`,
  ],
  ['repeats', 'one field 101 times', `{ ${'pets { id } '.repeat(101)} }`],
  ['repeats', 'one field without selections 101 times', `{ pets { ${'id '.repeat(101)} } }`],
  ['repeats', 'one unknown field 990 times', `{ ${'f '.repeat(990)} }`],
  [
    'repeats',
    'one field 101 times, 51 times each',
    `{ ${times(2, () => `__schema { ${'types { name } '.repeat(51)} }`)} }`,
  ],
  [
    'comparisons',
    'one field 900 times in inline fragments',
    `{ ${times(9, () => `... { ${'__typename '.repeat(100)} }`)} }`,
  ],
  ['nameLength', 'an alias of 256 characters', `{ ${'x'.repeat(256)}: __typename }`],
  ['nameLength', 'an unknown field of 60,000 characters', `{ ${'x'.repeat(60_000)} }`],
  ['nameLength', 'a variable of 256 characters', `query ($${'x'.repeat(256)}: Int) { __typename }`],
  ['cost', 'ids in variables', `query ($i: [ID!]!) { ${times(11, (k) => `p${k}: petsById(ids: $i) { id }`)} }`],
];

const WITHIN: [name: string, document: string][] = [
  ['100 aliases', aliases(100)],
  ['one field 100 times', `{ ${'pets { id } '.repeat(100)} }`],
  ['one field without selections 100 times', `{ pets { ${'id '.repeat(100)} } }`],
  ['an alias of 255 characters', `{ ${'x'.repeat(255)}: __typename }`],
  ['80 fragments', `{ pets { ${times(80, (k) => `...f${k}`)} } } ${times(80, (k) => `fragment f${k} on Pet { id }`)}`],
  ['75 pets', `{ ${times(75, (k) => `p${k}: pet(id: "${k}") { id name }`)} }`],
  ['800 ids', `{ ${times(8, (k) => `p${k}: petsById(ids: [${times(100, (id) => `"${id + 1}"`)}]) { id }`)} }`],
  ['four whole lists', `{ ${times(4, (k) => `l${k}: pets(limit: 100) { id name categoryId status }`)} }`],
  ['the introspection of GraphiQL', getIntrospectionQuery({ inputValueDeprecation: true, oneOf: true })],
];

/** Within the limits, and as costly to validate as a document can be. */
const THICKETS: [name: string, document: string][] = [
  ['one field hundreds of times', `{ ${'pets { id id x } '.repeat(150)} }`],
  ['chains of fields', `{ ${`${'a { '.repeat(13)}a ${'} '.repeat(13)}`.repeat(20)} }`],
  [
    'fragments of themselves',
    `{ pets { ...f0 } } ${times(18, (k) => `fragment f${k} on Pet { ${times(20, (j) => `...f${j % 18}`)} }`)}`,
  ],
  [
    'operations over a thicket of fragments',
    `${'{...f} '.repeat(60)} fragment f on Query { ${times(30, (k) => `a${k} { ...g0 ...g1 }`)} } ${thicket(8, 2)}`,
  ],
  ['lists in lists', `{ pets(limit: ${'['.repeat(480)}${']'.repeat(480)}) { id } }`],
  ['types in types', `query ($a: ${'['.repeat(480)}Int${']'.repeat(480)}) { pets { id } }`],
  ['nested introspection', `{ __schema { types { ${'fields { type { '.repeat(9)} name ${'} } '.repeat(9)} } } }`],
  ['190 unknown fields', `{ ${times(190, (k) => `x${k}`)} }`],
];

describe.each(TRANSPORTS)('by %s', (transport) => {
  test.each(OVER)('rejects by %s: %s', async (limit, _name, document) => {
    const before = gateway.petApi.log.length;
    const { data, errors } = await sendBy(transport, gateway)(document);
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED', limit, max: expect.any(Number) } }]);
    expect(gateway.petApi.log).toHaveLength(before);
  });

  test.each(WITHIN)('does not limit %s', async (_name, document) => {
    expect(codesOf(await sendBy(transport, gateway)(document, { apiKey: null }))).not.toContain('LIMIT_EXCEEDED');
  });

  test.each(THICKETS)('rejects soon and with few errors: %s', async (_name, document) => {
    const startedMs = performance.now();
    const answer = await sendBy(transport, gateway)(document);
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(answer.errors?.length).toBeLessThanOrEqual(21);
    for (const code of codesOf(answer))
      expect(code).toMatch(/^(?:GRAPHQL_VALIDATION_FAILED|LIMIT_EXCEEDED|BAD_USER_INPUT)$/);
  });

  test.each<[keyof GatewayOptions, number, string, string]>([
    ['maxTokens', 6, '{ pets { id } }', '{ pets { id name } }'],
    ['maxDepth', 2, '{ pets { id } }', '{ rateLimit { windows { used } } }'],
    ['maxAliases', 1, '{ a: pets { id } }', '{ a: pets { b: id } }'],
    ['maxAliases', 2, '{ a: pets { b: id } }', '{ a: pets { ...two } } fragment two on Pet { b: id c: id }'],
    ['maxCost', 21, '{ pets { id } }', '{ pets { id name } }'],
    [
      'maxUpstreamCalls',
      3,
      '{ petsById(ids: ["1", "2"]) { id } }',
      '{ petsById(ids: ["101", "102", "103", "104"]) { id } }',
    ],
  ])('%s of %d allows as much and no more', async (name, max, good, bad) => {
    await using own = await startGateway({ gateway: { [name]: max, maxAgeMs: 0 } });
    const send = sendBy(transport, own);
    expect((await send(good)).errors).toBeUndefined();
    const before = own.petApi.log.length;
    const { data, errors } = await send(bad);
    expect(data).toBeUndefined();
    // The error has the name without "max".
    const limit = name.charAt(3).toLowerCase() + name.slice(4);
    expect(errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED', limit, max } }]);
    expect(own.petApi.log).toHaveLength(before);
  });

  test('bounds and shortens the errors of variables', async () => {
    const send = sendBy(transport, gateway);
    const query = 'mutation ($input: CreatePetInput!) { __typename createPet(input: $input) { pet { id } } }';
    const many = Object.fromEntries(Array.from({ length: 4_000 }, (_, k) => [`k${k}`, 0]));
    for (const input of [many, { ['x'.repeat(60_000)]: 0, y: 1 }]) {
      const { errors = [] } = await send(query, { variables: { input } });
      expect(errors.length).toBeLessThanOrEqual(6);
      for (const { message } of errors) expect(message.length).toBeLessThanOrEqual(2_001);
    }
  });

  test('reports a missing key once per list of ids', async () => {
    const answer = await sendBy(transport, gateway)(`{ __typename petsById(ids: [${'"1" '.repeat(100)}]) { id } }`, {
      apiKey: null,
    });
    expect([answer.data, codesOf(answer)]).toEqual([{ __typename: 'Query', petsById: null }, ['UNAUTHENTICATED']]);
  });
});

/** All that graphql-js can ask for, and as deep as its own rule allows. */
const WHOLE_SCHEMA = {
  schemaDescription: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  inputValueDeprecation: true,
  oneOf: true,
  experimentalDirectiveDeprecation: true,
};

describe('tools read the schema', () => {
  test.each([
    ['the usual query', getIntrospectionQuery()],
    ['all options', getIntrospectionQuery(WHOLE_SCHEMA)],
    ['types of 15 levels', getIntrospectionQuery({ ...WHOLE_SCHEMA, typeDepth: 15 })],
  ])('with %s, under the least limits that the README names', async (_name, query) => {
    const [, bytes, tokens, cost] =
      /keep `--max-body-bytes` at ([\d,]+), `--max-tokens` at ([\d,]+) and `--max-cost` at ([\d,]+)/.exec(README) ?? [];
    const numberOf = (text = '') => Number(text.replace(',', ''));
    const limits = { maxBodyBytes: numberOf(bytes), maxTokens: numberOf(tokens), maxCost: numberOf(cost) };
    await using own = await startGateway({ gateway: { ...limits, maxDepth: 1, maxAliases: 0, maxUpstreamCalls: 0 } });
    const { data, errors } = await own.query(query, { operationName: 'IntrospectionQuery' });
    expect([errors, data?.['__schema'].queryType.name]).toEqual([undefined, 'Query']);
    const nested = await own.query(
      `{ __schema { types { ${'fields { type { '.repeat(4)} name ${'} } '.repeat(4)} } } }`,
    );
    expect(codesOf(nested)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
  });

  test('and no data is deeper beside or below it', async () => {
    await using own = await startGateway({ gateway: { maxDepth: 1 } });
    for (const query of ['{ __typename pets { id } }', '{ __type(name: "Pet") { name } pets { id } }']) {
      expect((await own.query(query)).errors).toMatchObject([{ extensions: { limit: 'depth', max: 1 } }]);
    }
  });
});

test('what the cache holds counts for no upstream call', async () => {
  await using own = await startGateway({ gateway: { maxUpstreamCalls: 2, maxAgeMs: 60_000 } });
  await own.query('{ pets { id } }');
  const before = own.petApi.log.length;
  const ids = times(10, (k) => `"${k + 1}"`);
  expect((await own.query(`{ petsById(ids: [${ids}]) { id } }`)).errors).toBeUndefined();
  expect(own.petApi.log).toHaveLength(before);
});

test('creates count as upstream calls, through fragments and aliases', async () => {
  await using own = await startGateway({ gateway: { maxUpstreamCalls: 2 } });
  const create = 'createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } }';
  const answer = await own.query(`mutation { a: ${create} ...F } fragment F on Mutation { b: ${create} c: ${create} }`);
  expect(answer.errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'upstreamCalls' } }]);
  expect(own.petApi.log).toHaveLength(0);
});

test('what is wrong in many places is said once', async () => {
  const { errors } = await gateway.query('{ __typename @a @a pets { nope id @b } sold: pets { nope @a id @b } }');
  expect(errors?.map(({ message }) => message)).toEqual([
    'Unknown directive "@a".',
    'Cannot query field "nope" on type "Pet". Did you mean "name"?',
    'Unknown directive "@b".',
  ]);
});

test('a document of many kilobytes gets no suggestions, and errors far down no place', async () => {
  const firstError = async (query: string) => (await gateway.query(query)).errors?.[0] as Record<string, any>;
  expect((await firstError('{ petz { id } }'))['message']).toContain('Did you mean "pet"');
  expect((await firstError(`{ petz { id } } # ${'x'.repeat(10_000)}`))['message']).not.toContain('Did you mean');
  expect((await firstError(`${'\n'.repeat(400)}{ pets(limit: 500) { id } }`))['locations']).toHaveLength(1);
  expect((await firstError(`${'\n'.repeat(600)}{ pets(limit: 500) { id } }`))['locations']).toBeUndefined();
});

describe('the length of a result', () => {
  const TOO_LONG = {
    data: null,
    errors: [{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'resultBytes', max: 4_194_304 } }],
  };
  const shown = (count: number) => times(count, (k) => `a${k}: pet(id: "1") { name }`);
  const startWith = (name: string) =>
    startGateway({
      gateway: { maxAgeMs: 600_000 },
      petApi: { pets: [{ id: '1', name, categoryId: '3' }] },
    });

  test('includes its errors', async () => {
    await using own = await startWith('x'.repeat(60_500));
    expect((await own.query(`{ ${shown(69)} }`)).errors).toBeUndefined();
    own.petApi.fault = fails(500);
    const failing = `${'y'.repeat(255)}: petsById(ids: [${times(100, (k) => `"${k + 2}"`)}]) { id }`;
    expect((await own.query(`{ ${failing} }`)).errors).toHaveLength(100);
    expect(await own.query(`{ ${shown(69)} ${failing} }`)).toMatchObject(TOO_LONG);
  });

  test('is in bytes', async () => {
    await using own = await startWith('\u{72ac}'.repeat(20_000));
    expect((await own.query(`{ ${shown(69)} }`)).errors).toBeUndefined();
    expect(await own.query(`{ ${shown(75)} }`)).toMatchObject(TOO_LONG);
  });
});

/** Sends this many spaces, without saying how many there are. */
function spaces(bytes: number) {
  let left = bytes;
  const body = new ReadableStream({
    pull(controller) {
      left -= 65_536;
      if (left < 0) controller.close();
      else controller.enqueue(new Uint8Array(65_536).fill(32));
    },
  });
  return { sent: () => bytes - left, init: { body, duplex: 'half' as const } };
}

test.each([
  ['HTTP', fetch],
  ['fetch', (request: Request) => gateway.gateway.fetch(request)],
])('by %s, a body over the limit is LIMIT_EXCEEDED with HTTP 413, and is not read to its end', async (_name, send) => {
  const post = (init: object) =>
    send(new Request(gateway.endpoint, { method: 'POST', headers: { 'content-type': 'application/json' }, ...init }));
  for (const bytes of [65_537, 50_000_000]) {
    const response = await post({ body: `{"query":"${' '.repeat(bytes - 12)}"}` });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({
      errors: [{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'bodyBytes', max: 65_536 } }],
    });
  }
  expect((await post({ body: '{"query":"{ __typename }"}'.padEnd(65_536) })).status).toBe(200);
  const large = spaces(16_777_216);
  expect((await post(large.init)).status).toBe(413);
  // In process nobody reads the rest.
  expect(large.sent()).toBeLessThanOrEqual(send === fetch ? Infinity : 1_000_000);
});
