import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fails, on } from '../support/pet-api/fault.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { chooseSeed } from '../support/seed.ts';
import { startEmbedded, startGateway } from '../support/start-gateway.ts';
import { TRANSPORTS, codesOf, sendBy } from '../support/transports.ts';
import type { Reply, Send, Sent } from '../support/transports.ts';
import { until } from '../support/until.ts';

const CREATE = 'createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } }';
const LIST = '{ pets { id } }';

const dryRunOf = ({ extensions }: { extensions?: Reply['extensions'] }) => extensions?.['petql'].dryRun;
const dry = (send: Send, query: string, sent: Sent = {}) => send(query, { ...sent, dryRun: true });

describe.each(TRANSPORTS)('a dry run by %s', (transport) => {
  test.each<[upstreamCalls: number, what: string, query: string]>([
    [2, 'a list, with the one of all that may save it', '{ pets(status: SOLD) { id } }'],
    [1, 'the same list twice', '{ a: pets(limit: 1) { id } b: pets(limit: 2) { id } }'],
    [2, 'a pet, with the same', '{ pet(id: "1") { id } }'],
    [3, 'two pets, with the list that may save both', '{ petsById(ids: ["1", "2", "1"]) { id } }'],
    [2, 'all and a pet in it', '{ pets { id } pet(id: "1") { id } }'],
    [0, 'skipped fields', '{ pets @skip(if: true) { id } rateLimit { plan } }'],
    [0, 'introspection', '{ __schema { queryType { name } } }'],
    [2, 'two creates', `mutation { a: ${CREATE} b: ${CREATE} }`],
  ])('counts %d calls for %s, and makes none', async (upstreamCalls, _what, query) => {
    await using gateway = await startGateway();
    const answer = await dry(sendBy(transport, gateway), query);
    expect(dryRunOf(answer)).toMatchObject({ upstreamCalls, fits: true, waitMs: 0 });
    expect(gateway.petApi.log).toHaveLength(0);
  });

  test('counts writes among the calls, and says how many they are', async () => {
    await using gateway = await startGateway();
    const send = sendBy(transport, gateway);
    expect(dryRunOf(await dry(send, `mutation { a: ${CREATE} b: ${CREATE} }`))).toMatchObject({
      upstreamCalls: 2,
      writes: 2,
    });
    expect(dryRunOf(await dry(send, LIST))).toMatchObject({ upstreamCalls: 1, writes: 0 });
  });

  // GraphiQL rejects a result whose data is null without an error.
  test('has the shape of the operation, with null for each pet', async () => {
    await using gateway = await startGateway();
    const send = sendBy(transport, gateway);
    const query = '{ pets { id } pet(id: "1") { id } petsById(ids: ["1", "2"]) { id } __typename }';
    const { data, errors } = await dry(send, query);
    expect(errors).toBeUndefined();
    expect(data).toEqual({ pets: null, pet: null, petsById: [null, null], __typename: 'Query' });
    expect((await dry(send, `mutation { ${CREATE} }`)).data).toEqual({ createPet: { pet: null } });
    expect(gateway.petApi.log).toHaveLength(0);
  });

  test('knows the cache, unless the request does not take it', async () => {
    await using gateway = await startGateway({ gateway: { maxAgeMs: 60_000 } });
    const send = sendBy(transport, gateway);
    await send(LIST);
    expect(dryRunOf(await dry(send, LIST))).toMatchObject({ upstreamCalls: 0, fits: true });
    expect(dryRunOf(await dry(send, LIST, { cacheControl: 'no-cache' }))).toMatchObject({ upstreamCalls: 1 });
  });

  test('says when calls fit that do not fit now', async () => {
    const keys = { 'demo-free': { name: '', perMinute: 2, perDay: 50 } };
    await using gateway = await startGateway({ petApi: { keys } });
    const send = sendBy(transport, gateway);
    await send(LIST);
    const two = dryRunOf(await dry(send, '{ a: pets(status: SOLD) { id } b: pets(status: PENDING) { id } }'));
    expect(two).toMatchObject({ upstreamCalls: 2, fits: false, window: 'MINUTE', waitMs: expect.any(Number) });
    expect(two.waitMs).toBeLessThanOrEqual(62_000);
    expect(Date.parse(two.fitsAt)).toBeGreaterThan(Date.now());
    // Three windows: one call now, two in the next minute, one in the minute after it.
    const many = `mutation { a: ${CREATE} b: ${CREATE} c: ${CREATE} d: ${CREATE} }`;
    expect(dryRunOf(await dry(send, many)).waitMs - two.waitMs).toBeGreaterThan(50_000);
    expect(gateway.petApi.log).toHaveLength(1);
  });

  test('has the errors that the operation has whatever the store holds', async () => {
    await using gateway = await startGateway({ gateway: { maxUpstreamCalls: 4 } });
    const send = sendBy(transport, gateway);
    expect(codesOf(await dry(send, '{ pet(id: "x") { id } pets { id } }'))).toEqual(['BAD_USER_INPUT']);
    expect(codesOf(await dry(send, LIST, { apiKey: null }))).toEqual(['UNAUTHENTICATED']);
    expect(codesOf(await dry(send, '{ nothing }'))).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    const ids = '{ petsById(ids: ["1", "2", "3", "4", "5"]) { id } }';
    expect(codesOf(await dry(send, ids))).toEqual(['LIMIT_EXCEEDED']);
    expect(gateway.petApi.log).toHaveLength(0);
  });
});

test('any value of the header but 0 asks for a dry run', async () => {
  await using gateway = await startGateway();
  for (const value of ['true', 'yes', '', '0']) {
    expect(gateway.petApi.log).toHaveLength(0);
    await gateway.query(`mutation { ${CREATE} }`, { headers: { 'petql-dry-run': value } });
  }
  expect(gateway.petApi.log).toHaveLength(1);
});

/** Most of them are in no first list of a large store, so that the list that tries to save their calls is in vain. */
const id = fc.constantFrom('1', '101', '180', '200', '240', '404404');
const field = fc.oneof(
  fc.constantFrom('pets { id }', 'pets(status: SOLD) { id }', 'pets(status: PENDING, limit: 3) { name }'),
  id.map((one) => `pet(id: "${one}") { id }`),
  fc.uniqueArray(id, { maxLength: 5 }).map((ids) => `petsById(ids: ${JSON.stringify(ids)}) { id }`),
  fc.constantFrom('pet(id: $id) { id }', 'rateLimit { plan }', 'pets(limit: 1000) { id }'),
);
const selection = fc
  .tuple(field, fc.constantFrom('', '@skip(if: $no) ', '@include(if: $no) '))
  .map(([text, directive]) => (directive ? text.replace('{', `${directive}{`) : text));
const document = fc.array(selection, { minLength: 1, maxLength: 6 }).map((fields) => {
  const [first, ...rest] = fields.map((text, index) => `f${index}: ${text}`);
  const fragment = `fragment F on Query { ${[first, ...rest].join(' ')} z: pet(id: $id) @skip(if: $no) { id } }`;
  return `query ($id: ID! = "150", $no: Boolean = false) { ...F f0: ${first?.slice(4)} } ${fragment}`;
});
const scenario = fc.record({
  document,
  warmUps: fc.array(document, { maxLength: 2 }),
  isSmall: fc.boolean(),
  isWithdrawn: fc.boolean(),
  maxAgeMs: fc.constantFrom(0, 60_000),
  cacheControl: fc.constantFrom(undefined, 'no-cache', 'max-age=60', 'only-if-cached'),
  id,
  no: fc.boolean(),
});

test('an operation costs no more than the dry run before it said', async () => {
  const apiKey = 'demo-enterprise';
  const property = fc.asyncProperty(scenario, async (one) => {
    const { document: query, warmUps, isSmall, isWithdrawn, maxAgeMs, cacheControl, ...variables } = one;
    await using gateway = await startEmbedded({ maxAgeMs }, isSmall ? { pets: petSeeds(30) } : {});
    // A 404 before any call has worked is checked by a list, and called for again.
    await gateway.execute({ document: '{ pet(id: "7") { id } }', apiKey });
    if (isWithdrawn) {
      gateway.petApi.fault = on('get', fails(410));
      // Gets close once those of two pets that a list has shown have no route; a small store needs none.
      await gateway.execute({ document: '{ pets { id } }', apiKey, cacheControl: 'no-cache' });
      await gateway.execute({ document: '{ pet(id: "404405") { id } }', apiKey, cacheControl: 'no-cache' });
      await until(() => isSmall || gateway.logLines.some(({ operation }) => operation === 'getPet'));
    }
    for (const warmUp of warmUps) await gateway.execute({ document: warmUp, apiKey });
    const before = gateway.petApi.log.length;
    const operation = { document: query, variables, apiKey, cacheControl };
    const { upstreamCalls, fits } = dryRunOf(await gateway.execute({ ...operation, dryRun: true }));
    expect([gateway.petApi.log.length, fits]).toEqual([before, true]);
    const { extensions } = await gateway.execute(operation);
    const made = gateway.petApi.log.length - before;
    expect((extensions as any).petql.upstreamCalls).toBe(made);
    expect(made).toBeLessThanOrEqual(upstreamCalls);
  });
  await fc.assert(property, { numRuns: 25, seed: chooseSeed() });
});
