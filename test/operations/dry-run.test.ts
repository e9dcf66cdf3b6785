import { describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryOptions, TestGateway } from '../support/start-gateway.ts';

const DRY = { 'petql-dry-run': '1' };
const CREATE = 'createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } }';

async function price(gateway: TestGateway, query: string, options: QueryOptions = {}) {
  const { data, extensions } = await gateway.query(query, { ...options, headers: { ...DRY, ...options.headers } });
  expect(data).toBeNull();
  return extensions?.['petql'].dryRun;
}

describe('a dry run', () => {
  test.each<[string, string, number]>([
    ['a listing, with that of all which may save it with what others want', '{ pets(status: SOLD) { id } }', 2],
    ['the same listing twice', '{ a: pets(limit: 1) { id } b: pets(limit: 2) { id } }', 1],
    ['an animal, with the same', '{ pet(id: "1") { id } }', 2],
    ['two animals, with the listing that may save both', '{ petsById(ids: ["1", "2", "1"]) { id } }', 3],
    ['all and an animal in it', '{ pets { id } pet(id: "1") { id } }', 2],
    ['what is skipped', '{ pets @skip(if: true) { id } rateLimit { plan } }', 0],
    ['introspection', '{ __schema { queryType { name } } }', 0],
    ['two creations', `mutation { a: ${CREATE} b: ${CREATE} }`, 2],
  ])('prices %s where nothing is known, and does nothing', async (_name, query, upstreamCalls) => {
    await using gateway = await startGateway();
    expect(await price(gateway, query)).toMatchObject({ upstreamCalls, fits: true, waitMs: 0 });
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('knows what memory answers, unless the request does not take that', async () => {
    await using gateway = await startGateway({ gateway: { maxAgeMs: 60_000 } });
    const query = '{ pets { id } }';
    await gateway.query(query);
    expect(await price(gateway, query)).toMatchObject({ upstreamCalls: 0, fits: true });
    const headers = { 'cache-control': 'no-cache' };
    expect(await price(gateway, query, { headers })).toMatchObject({ upstreamCalls: 1 });
  });

  test('says when calls fit that do not fit now', async () => {
    const keys = { 'demo-free': { name: '', perMinute: 2, perDay: 50 } };
    await using gateway = await startGateway({ sandbox: { keys } });
    await gateway.query('{ pets { id } }');
    const { fitsAt, ...rest } = await price(
      gateway,
      '{ a: pets(status: SOLD) { id } b: pets(status: PENDING) { id } }',
    );
    expect(rest).toMatchObject({ upstreamCalls: 2, fits: false, window: 'MINUTE', waitMs: expect.any(Number) });
    expect(rest.waitMs).toBeLessThanOrEqual(62_000);
    expect(Date.parse(fitsAt)).toBeGreaterThan(Date.now());
    // Three windows: the one call that is left, two in the next minute, and one in the minute after it.
    const many = await price(gateway, `mutation { a: ${CREATE} b: ${CREATE} c: ${CREATE} d: ${CREATE} }`);
    expect(many.waitMs - rest.waitMs).toBeGreaterThan(50_000);
    expect(gateway.sandbox.calls).toHaveLength(1);
  });

  test('has the errors that the operation would have whatever the store holds', async () => {
    await using gateway = await startGateway();
    const ask = (query: string, headers: Record<string, string | null> = {}) =>
      gateway.query(query, { headers: { ...DRY, ...headers } });
    const { errors } = await ask('{ pet(id: "x") { id } pets { id } }');
    expect(errors).toMatchObject([{ path: ['pet'], extensions: { code: 'BAD_USER_INPUT' } }]);
    expect(await ask('{ pets { id } }', { authorization: null })).toMatchObject({ status: 401 });
    expect((await ask('{ nothing }')).errors).toMatchObject([{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('is what any value of the header but 0 asks for', async () => {
    await using gateway = await startGateway();
    for (const value of ['true', 'yes', '']) {
      await gateway.query(`mutation { ${CREATE} }`, { headers: { 'petql-dry-run': value } });
    }
    expect(gateway.sandbox.calls).toHaveLength(0);
    await gateway.query(`mutation { ${CREATE} }`, { headers: { 'petql-dry-run': '0' } });
    expect(gateway.sandbox.calls).toHaveLength(1);
  });
});

describe('an operation that can cost more calls than one may', () => {
  const ids = (count: number) => ({ ids: Array.from({ length: count }, (_, index) => String(index + 1)) });
  const query = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';

  test('is LIMIT_EXCEEDED before anything is sent, and one that just may is answered', async () => {
    await using gateway = await startGateway({ gateway: { maxUpstreamCalls: 4 } });
    const { data, errors } = await gateway.query(query, { variables: ids(4) });
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([
      {
        message: expect.stringContaining('got 5'),
        extensions: { code: 'LIMIT_EXCEEDED', limit: 'upstreamCalls', most: 4 },
      },
    ]);
    expect((await gateway.query(query, { variables: ids(4), headers: DRY })).errors).toMatchObject(errors as object);
    expect(gateway.sandbox.calls).toHaveLength(0);
    expect((await gateway.query(query, { variables: ids(3) })).errors).toBeUndefined();
  });

  test('is answered where memory saves the calls', async () => {
    await using gateway = await startGateway({ gateway: { maxUpstreamCalls: 2, maxAgeMs: 60_000 } });
    await gateway.query('{ pets { id } }');
    const calls = gateway.sandbox.calls.length;
    const answer = await gateway.query(query, { variables: ids(10) });
    expect(answer.errors).toBeUndefined();
    expect(gateway.sandbox.calls).toHaveLength(calls);
  });

  test('counts creations, through fragments and aliases', async () => {
    await using gateway = await startGateway({ gateway: { maxUpstreamCalls: 2 } });
    const fragment = `fragment F on Mutation { b: ${CREATE} c: ${CREATE} }`;
    const { errors } = await gateway.query(`mutation { a: ${CREATE} ...F } ${fragment}`);
    expect(errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'upstreamCalls' } }]);
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('may be anything from the 101 calls of a hundred ids on, as it is set by itself', async () => {
    await using gateway = await startGateway();
    const { errors } = await gateway.query(query, {
      variables: ids(100),
      headers: { authorization: 'Bearer demo-pro' },
    });
    expect(errors).toBeUndefined();
  });
});
