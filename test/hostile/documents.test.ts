import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { collectGarbage } from '../support/collect-garbage.ts';
import { graphqlRequest, startEmbedded } from '../support/start-embedded.ts';
import type { EmbeddedGateway } from '../support/start-embedded.ts';

let gateway: EmbeddedGateway;

beforeAll(async () => {
  gateway = await startEmbedded();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, k) => one(k)).join(' ');
const fragments = (count: number, spreads: (index: number) => string) =>
  `{ pets { ...f0 } } ${times(count, (k) => `fragment f${k} on Pet { ${spreads(k)} }`)}`;
/** Fragments in layers, each of which spreads all of the layers below it; the lowest spread one that there is not. */
const thicket = (layers: number, wide: number) =>
  times(layers * wide, (k) => {
    const layer = Math.floor(k / wide);
    const lower = times((layers - layer - 1) * wide, (j) => `...g${(layer + 1) * wide + j}`);
    return `fragment g${k} on Pet { ${lower || '...none'} }`;
  });

/** Each of a few kilobytes, and within the limit of tokens; what it costs where nobody looks is said behind it. */
const BOMBS: Record<string, [document: string, limit: string]> = {
  // Seconds: each error looks for its line from the text's start.
  'more lines than anybody reads': [`{ ${'\n'.repeat(120_000)} ${times(150, (k) => `x${k}`)} }`, 'tokens'],
  'lines before what is no GraphQL': [`{ ${'\n'.repeat(120_000)} \u0000 }`, 'tokens'],
  // The stack, which is an error that nobody foresees.
  'lists that never end': [`{ pets(limit: ${'['.repeat(4_900)}`, 'depth'],
  'lists in lists': [`{ pets(limit: ${'['.repeat(2_400)}${']'.repeat(2_400)}) { id } }`, 'depth'],
  'objects in objects': [`{ pets(limit: ${'{a:'.repeat(1_200)}1${'}'.repeat(1_200)}) { id } }`, 'depth'],
  'types in types': [`query ($a: ${'['.repeat(2_000)}Int${']'.repeat(2_000)}) { pets { id } }`, 'depth'],
  'selections in selections': [`${'{ a'.repeat(2_400)}${'}'.repeat(2_400)}`, 'depth'],
  'fragments without names in each other': [`{ ${'... {'.repeat(1_600)} pets { id } ${'}'.repeat(1_600)} }`, 'depth'],
  'a chain of fragments': [`${fragments(600, (k) => `...f${k + 1}`)} fragment f600 on Pet { id }`, 'depth'],
  'a ring of fragments': [fragments(600, (k) => `...f${(k + 1) % 600}`), 'depth'],
  'rings of fragments': [fragments(400, (k) => `...f${(k + 1) % 400} ...f${(k * 7) % 400}`), 'depth'],
  // Half a second: each is compared with each.
  'one field a thousand times': [`{ pets { ${'id '.repeat(1_490)} } }`, 'repeats'],
  'fields that differ under one name': [
    `{ pets { id } } fragment f on Pet { ${times(50, () => 'a: id a: name')} a: id }`,
    'repeats',
  ],
  'one field in a thousand places at once': [`{ ${'pets { id id id id id } '.repeat(30)} }`, 'repeats'],
  // A tenth of a second for each request, and nobody needs a key: its lists make fifty thousand fields of 750.
  'lists of the schema in lists': [
    `{ __schema { ${times(150, (k) => `a${k}: types { name fields { name type { name fields { name } } } }`)} } }`,
    'introspection',
  ],
  // Half as long, and megabytes of an answer for no call.
  'listings of the same animals': [
    `{ ${times(200, (k) => `a${k}: pets(limit: 100) { id name categoryId status }`)} }`,
    'listedFields',
  ],
  'types that variables name': [
    `query ($n: String!) { ${times(150, (k) => `a${k}: __type(name: $n) { fields { name } }`)} }`,
    'introspection',
  ],
  // Two seconds: their product, and no field of it is ever found.
  'operations over places over a thicket of fragments': [
    `${'{...f} '.repeat(400)} fragment f on Query { ${times(190, (k) => `a${k} { ...g0 ...g1 }`)} } ${thicket(18, 2)}`,
    'selections',
  ],
  'operations with the same hundreds of fields': [
    `${times(600, (k) => `query q${k} { __typename ...f }`)} fragment f on Query { ${times(50, (k) => `a${k}: pets(limit: 1) { id }`)} }`,
    'selections',
  ],
  // A tenth of a second and more: each field of a place is compared with each, and places are below one another.
  'a hundred chains of fields': [`{ ${`${'a { '.repeat(13)}a ${'} '.repeat(13)}`.repeat(100)} }`, 'comparisons'],
  'chains that differ at their ends': [
    `{ ${times(100, (k) => `${'a { '.repeat(13)}a(x: ${k}) ${'} '.repeat(13)}`)} }`,
    'comparisons',
  ],
  'chains that are valid': [
    `{ __schema { types { ${`${'ofType { '.repeat(12)}name ${'} '.repeat(12)}`.repeat(100)} } } }`,
    'comparisons',
  ],
  'hundreds of fragments at one place': [
    `{ pets { ${times(400, (k) => `...f${k}`)} } } ${times(400, (k) => `fragment f${k} on Pet { x${k} }`)}`,
    'comparisons',
  ],
  'a fragment that nothing uses': [`{ pets { id } } fragment f on Query { ${'pets { id } '.repeat(500)} }`, 'repeats'],
};

test.each(Object.entries(BOMBS))(
  '%s are past a limit before they are parsed or validated',
  async (_name, [query, limit]) => {
    const answer = await gateway.fetch(graphqlRequest({ query }));
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: 'LIMIT_EXCEEDED', limit } }] });
  },
);

test('fragments of themselves are told as that and nothing more, however they are entangled', async () => {
  const query = fragments(18, () => times(120, (k) => `...f${k % 18}`));
  const { errors } = (await (await gateway.fetch(graphqlRequest({ query }))).json()) as {
    errors: { message: string }[];
  };
  for (const { message } of errors) expect(message).toMatch(/^Cannot spread fragment|^Too many validation errors/);
});

test('more than a thousand ids in all lists of an operation are past a limit, whoever asks', async () => {
  const ids = Array.from({ length: 100 }, (_, k) => String(k));
  const lists = (count: number) =>
    `query ($i: [ID!]!) { __typename ${times(count, (k) => `p${k}: petsById(ids: $i) { id }`)} }`;
  const ask = async (count: number, headers?: Record<string, string>) => {
    const request = graphqlRequest({ query: lists(count), variables: { ids: 0, i: ids } }, headers);
    return (await (await gateway.fetch(request)).json()) as { errors?: { extensions: object }[] };
  };
  for (const headers of [
    { authorization: '' },
    { authorization: 'Bearer nobody' },
    undefined,
    { 'petql-dry-run': '1' },
  ]) {
    expect((await ask(11, headers)).errors).toMatchObject([
      { extensions: { code: 'LIMIT_EXCEEDED', limit: 'ids', most: 1_000 } },
    ]);
  }
  expect((await ask(10)).errors).toBeUndefined();
});

test.each(['toString', '__proto__', 'constructor'])(
  'so are those that a variable named %s has by default',
  async (name) => {
    const ids = Array.from({ length: 100 }, (_, k) => `"${k}"`).join(' ');
    const query = `query ($${name}: [ID!]! = [${ids}]) { ${times(11, (k) => `p${k}: petsById(ids: $${name}) { id }`)} }`;
    const answer = await gateway.fetch(graphqlRequest({ query, variables: {} }));
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'ids' } }] });
  },
);

test('ids count as often as they stand in the answer', async () => {
  const list = 'a: petsById(ids: $i) { id }';
  const query = `query ($i: [ID!] = [${'"1" '.repeat(100)}]) { ${times(40, () => list)} ${times(9, (k) => `p${k}: petsById(ids: $i) { id }`)} b: petsById(ids: "7") { id } }`;
  const answer = await gateway.fetch(graphqlRequest({ query: query.replace('[ID!] =', '[ID!]! =') }));
  expect(await answer.json()).toMatchObject({
    errors: [{ extensions: { limit: 'ids' }, message: expect.stringContaining('got 1001') }],
  });
});

test('of large variables one mistake is told, and shown in part; of small ones each', async () => {
  const query = 'mutation ($i: CreatePetInput!) { __typename createPet(input: $i) { pet { id } } }';
  const errorsOf = async (i: object) => {
    const answer = await gateway.fetch(graphqlRequest({ query, variables: { i } }));
    return ((await answer.json()) as { errors: { message: string }[] }).errors;
  };
  expect(await errorsOf({ name: 1, x: 2, y: 3 })).toHaveLength(4);
  const many = await errorsOf(Object.fromEntries(Array.from({ length: 4_990 }, (_, k) => [`k${k}`, 0])));
  const long = await errorsOf({ ['x'.repeat(200_000)]: 0, y: 1 });
  for (const errors of [many, long]) {
    expect(errors).toHaveLength(2);
    for (const { message } of errors) expect(message.length).toBeLessThanOrEqual(2_001);
  }
});

describe('values of variables', () => {
  const QUERY = 'mutation ($i: CreatePetInput!) { createPet(input: $i) { pet { id } } }';
  const PAST = [{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'variables', most: 5_000 } }];
  const range = (length: number) => Array.from({ length }, (_, k) => k);
  const WIDE: [name: string, variables: Record<string, unknown>][] = [
    ['names of an object', { i: Object.fromEntries(range(5_000).map((k) => [`k${k}`, 1])) }],
    ['places of a list', { i: range(5_000) }],
    ['variables that nothing uses', Object.fromEntries(range(5_001).map((k) => [`k${k}`, 1]))],
    ['lists in lists', { i: range(100).map(() => range(50)) }],
  ];

  test.each(WIDE)('past five thousand are refused before anything looks at them: %s', async (_name, variables) => {
    for (const query of [QUERY, '{ __typename }']) {
      const answer = await gateway.fetch(graphqlRequest({ query, variables }, { authorization: '' }));
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ errors: PAST });
      expect((await gateway.execute({ document: query, variables })).errors).toMatchObject(PAST);
    }
  });

  test('may be five thousand', async () => {
    const variables = { unused: range(4_999) };
    const answer = await gateway.fetch(graphqlRequest({ query: '{ __typename }', variables }));
    expect(await answer.json()).toMatchObject({ data: { __typename: 'Query' } });
  });
});

test('whoever has no key is told so once for a list, however many animals are asked for', async () => {
  const query = `{ __typename petsById(ids: [${'"1" '.repeat(100)}]) { id } }`;
  const answer = await gateway.fetch(graphqlRequest({ query }, { authorization: '' }));
  expect(await answer.json()).toMatchObject({
    data: { __typename: 'Query', petsById: null },
    errors: [{ path: ['petsById'], extensions: { code: 'UNAUTHENTICATED' } }],
  });
});

test('errors of a text that is longer than anybody reads do not say where they are', async () => {
  const locations = async (lines: number) => {
    const query = `${'\n'.repeat(lines)}{ pets(limit: 500) { id } x }`;
    const answer = await gateway.fetch(graphqlRequest({ query }));
    return ((await answer.json()) as { errors: { locations?: object }[] }).errors[0]?.locations;
  };
  expect(await locations(400)).toEqual([{ line: 401, column: 27 }]);
  expect(await locations(600)).toBeUndefined();
});

test('a document with a thousand mistakes is told of twenty', async () => {
  const query = `{ ${times(190, (k) => `x${k}`)} }`;
  const { errors } = (await (await gateway.fetch(graphqlRequest({ query }))).json()) as { errors: unknown[] };
  expect(errors).toHaveLength(21);
});

test('nobody is helped with names in a document of many kilobytes', async () => {
  const messageOf = async (query: string) => {
    const answer = await gateway.fetch(graphqlRequest({ query }));
    return ((await answer.json()) as { errors: { message: string }[] }).errors[0]?.message;
  };
  expect(await messageOf('{ petz { id } }')).toContain('Did you mean "pet"');
  expect(await messageOf(`{ petz { id } } # ${'x'.repeat(10_000)}`)).toBe('Cannot query field "petz" on type "Query".');
});

test.each([
  [
    'a hundred components that each ask for it',
    `{ pets { ${times(100, (k) => `...f${k}`)} } } ${times(100, (k) => `fragment f${k} on Pet { id }`)}`,
  ],
  ['lists and objects as deep as they may be', `query ($a: ${'['.repeat(20)}Int${']'.repeat(20)}) { __typename }`],
  ['brackets in a text and in comments', `{ pet(id: "${'['.repeat(100)}") { id } # ${'['.repeat(100)}\n }`],
  ['brackets beside each other', `{ ${times(100, (k) => `a${k}: petsById(ids: [["1"]]) { id }`)} }`],
])('within the limits are %s', async (_name, query) => {
  const answer = await gateway.fetch(graphqlRequest({ query }));
  expect(await answer.text()).not.toContain('LIMIT_EXCEEDED');
});

test('a thousand documents that nobody sends twice leave less than 150 MB', async () => {
  const heapMegabytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed / 1_000_000;
  };
  const before = heapMegabytes();
  for (let index = 0; index < 1_000; index += 1) {
    const query = `{ ${times(190, (k) => `p${k}: pet(id: "${index}${k}") { id x name }`)} }`;
    await (await gateway.fetch(graphqlRequest({ query }))).text();
  }
  expect(heapMegabytes() - before).toBeLessThan(150);
}, 60_000);
