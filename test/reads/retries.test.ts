import { expect, test as oneTest } from 'vitest';
import { FORBIDS, RESETS, fails, slow } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

/** Retries pause in real time, so the tests pause together. */
const test = oneTest.concurrent;

const FAILS: Fault = { status: 503, body: '' };

/** Whose plan has room for the calls that earn retries. */
const KEY = 'demo-business';

/** A gateway that has made enough calls of the key for this many retries. */
async function withRoom(retries: number, options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    ...options,
    gateway: { maxAgeMs: 0, maxStaleMs: 0, admin: true, ...options.gateway },
  });
  await earn(gateway, retries);
  expect(gateway.petApi.log).toHaveLength(retries * 10);
  gateway.petApi.log.length = 0;
  return gateway;
}

async function earn({ gateway }: TestGateway, retries: number): Promise<void> {
  const operation = { document: '{ pets { id } }', apiKey: KEY, cacheControl: 'no-cache' };
  for (let call = 0; call < retries * 10; call += 1) await gateway.execute(operation);
}

/** Sends one operation with the key. */
function ask({ query }: TestGateway, document: string, headers: Record<string, string> = {}) {
  return query(document, { headers: { authorization: `Bearer ${KEY}`, ...headers } });
}

/** The first `count` calls with the key fail. */
function failFirst({ petApi }: TestGateway, count: number, fault: Fault = FAILS): void {
  let failed = 0;
  petApi.fault = ({ key }) => (key === KEY && (failed += 1) <= count ? fault : undefined);
}

const callsIn = ({ petApi }: TestGateway) => petApi.log.filter(({ key }) => key === KEY).map(({ path }) => path);

async function retriesCounted({ adminOrigin }: TestGateway): Promise<number> {
  const text = await (await fetch(`${adminOrigin}/metrics`)).text();
  const samples = [...text.matchAll(/^petql_upstream_retries_total\{.*\} (\d+)$/gm)];
  return samples.reduce((sum, [, count]) => sum + Number(count), 0);
}

test.each<[string, Fault]>([
  ['a 500', fails(500)],
  ['a 503', FAILS],
  ['a reset connection', RESETS],
  ['a body that is cut', { cutAfterBytes: 10 }],
  ['a timeout', slow(500)],
  ['a 408', fails(408)],
  ['a 421', fails(421)],
  ['a 425', fails(425)],
])('a read after %s is retried twice at most, and each retry is counted', async (_what, fault) => {
  await using gateway = await withRoom(3, { gateway: { upstreamTimeoutMs: 350, plan: 'business' } });
  failFirst(gateway, 2, fault);
  const good = await ask(gateway, '{ pet(id: "240") { id } rateLimit { windows { window used } } }');
  expect(good).toMatchObject({ data: { pet: { id: '240' } }, extensions: { petql: { upstreamCalls: 3 } } });
  expect(callsIn(gateway)).toEqual(['/pets/240', '/pets/240', '/pets/240']);
  const { data } = await ask(gateway, '{ rateLimit { windows { window used } } }');
  expect(data?.['rateLimit'].windows).toContainEqual({ window: 'DAY', used: 33 });
  expect(await retriesCounted(gateway)).toBe(2);

  // A third retry would have room.
  await earn(gateway, 2);
  gateway.petApi.log.length = 0;
  failFirst(gateway, 3, fault);
  const bad = await ask(gateway, '{ pets { id } }');
  expect(bad.errors?.[0]?.extensions.code).toMatch(/^(?:DOWNSTREAM_SERVICE_ERROR|GATEWAY_TIMEOUT)$/);
  expect(bad.extensions?.['petql'].upstreamCalls).toBe(3);
  expect(callsIn(gateway)).toHaveLength(3);
});

test.each<[string, Fault]>([
  ['a 400', { status: 400, body: '{"code":"bad_request","message":"No.","status":400}' }],
  ['a 403', FORBIDS],
  ['a 418', fails(418)],
  ['a 501', fails(501)],
  ['a redirect', fails(307)],
  ['a response that breaks the contract', { body: '{"id":"7"}' }],
  ['a response that is too large', { body: ' '.repeat(2_000_000) }],
])('a read after %s is not retried', async (_what, fault) => {
  await using gateway = await withRoom(1);
  failFirst(gateway, 1, fault);
  expect((await ask(gateway, '{ pet(id: "240") { id } }')).errors).toHaveLength(1);
  expect(callsIn(gateway)).toEqual(['/pets/240']);
});

test('a create is never retried', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const { errors } = await ask(
    gateway,
    'mutation { createPet(input: { name: "Momo", categoryId: 3 }) { pet { id } } }',
  );
  expect(errors?.[0]?.extensions.code).toBe('OUTCOME_UNKNOWN');
  expect(callsIn(gateway)).toHaveLength(1);
});

test('retries are at most a tenth of the calls of their key, and none of what another key has earned', async () => {
  await using gateway = await withRoom(3);
  gateway.petApi.fault = FAILS;
  const fail = (key: string) =>
    [201, 202].map((id) =>
      // Two for a key: one alone is a get, and a second one finds it under way.
      gateway.query(`{ pet(id: "${id}") { id } }`, { headers: { authorization: `Bearer ${key}` } }),
    );
  for (const key of ['demo-free', 'demo-pro', 'demo-enterprise']) await Promise.all(fail(key));
  expect(await retriesCounted(gateway)).toBe(0);
  await Promise.all(fail(KEY));
  const retries = await retriesCounted(gateway);
  expect(retries).toBeGreaterThanOrEqual(2);
  expect(retries * 10).toBeLessThanOrEqual(30 + callsIn(gateway).length - retries);
});

test('a stale answer is served at once, without a retry', async () => {
  await using gateway = await withRoom(2, { gateway: { maxStaleMs: 600_000 } });
  await ask(gateway, '{ pets(limit: 1) { id } }');
  failFirst(gateway, 1);
  const stale = await ask(gateway, '{ pets(limit: 1) { id } }');
  expect(stale).toMatchObject({
    data: { pets: [{ id: '1' }] },
    extensions: { petql: { upstreamCalls: 1, staleReason: 'UPSTREAM_FAILED' } },
  });
  expect(await retriesCounted(gateway)).toBe(0);
});

test('no retry begins after the deadline', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const { errors } = await ask(gateway, '{ pet(id: "240") { id } }', { prefer: 'wait=0' });
  expect(errors?.[0]?.extensions.code).toBe('DOWNSTREAM_SERVICE_ERROR');
  expect(callsIn(gateway)).toHaveLength(1);
});

test('ids that a list was to save are retried with that list', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const { data, errors } = await ask(gateway, '{ petsById(ids: ["1", "2", "3", "4"]) { id } }');
  expect(errors).toBeUndefined();
  expect(data?.['petsById']).toHaveLength(4);
  expect(callsIn(gateway)).toEqual(['/pets?limit=100', '/pets?limit=100']);
});

test('reads that come before a retry share it', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const execute = () => gateway.gateway.execute({ document: '{ pet(id: "240") { id } }', apiKey: KEY });
  const first = execute();
  await until(() => callsIn(gateway).length === 1);
  const rest = Array.from({ length: 10 }, execute);
  for (const { data } of await Promise.all([first, ...rest])) expect(data).toEqual({ pet: { id: '240' } });
  expect(callsIn(gateway)).toEqual(['/pets/240', '/pets/240']);
});

test('a gateway that stops makes no retry', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 3);
  const answer = ask(gateway, '{ pet(id: "240") { id } }');
  await until(() => callsIn(gateway).length === 1);
  await gateway.gateway.drain();
  expect((await answer).errors?.[0]?.extensions.code).toMatch(/^(?:DOWNSTREAM_SERVICE_ERROR|RATE_LIMITED)$/);
  expect(callsIn(gateway)).toHaveLength(1);
});
