import { expect, test as oneTest } from 'vitest';
import { FORBIDS, RESETS, fails, slow } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

/** Retries pause in real time, so the tests pause together. */
const test = oneTest.concurrent;

const FAILS: Fault = { status: 503, body: '' };

/** A gateway that has made enough calls for this many retries, with another key. */
async function withRoom(retries: number, options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, gateway: { maxAgeMs: 0, admin: true, ...options.gateway } });
  const document = '{ pets { id } }';
  for (let call = 0; call < retries * 10; call += 1) {
    await gateway.gateway.execute({ document, apiKey: 'demo-enterprise', cacheControl: 'no-cache' });
  }
  expect(gateway.petApi.log.length).toBeGreaterThanOrEqual(retries * 10);
  return gateway;
}

/** The first `count` calls with the Free demo key fail. */
function failFirst({ petApi }: TestGateway, count: number, fault: Fault = FAILS): void {
  let failed = 0;
  petApi.fault = ({ key }) => (key === 'demo-free' && (failed += 1) <= count ? fault : undefined);
}

const freeCalls = ({ petApi }: TestGateway) =>
  petApi.log.filter(({ key }) => key === 'demo-free').map(({ path }) => path);

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
])('a read after %s is retried twice at most, and each retry is counted', async (_what, fault) => {
  // A third retry of the second read would have room.
  await using gateway = await withRoom(5, { gateway: { upstreamTimeoutMs: 350 } });
  failFirst(gateway, 2, fault);
  const good = await gateway.query('{ pet(id: "7") { id } rateLimit { windows { window used } } }');
  expect(good).toMatchObject({ data: { pet: { id: '7' } }, extensions: { petql: { upstreamCalls: 3 } } });
  expect(freeCalls(gateway)).toEqual(['/pets/7', '/pets/7', '/pets/7']);
  const { data } = await gateway.query('{ rateLimit { windows { window used } } }');
  expect(data?.['rateLimit'].windows).toContainEqual({ window: 'DAY', used: 3 });
  expect(await retriesCounted(gateway)).toBe(2);

  failFirst(gateway, 3, fault);
  const bad = await gateway.query('{ pets { id } }');
  expect(bad.errors?.[0]?.extensions.code).toMatch(/^(?:DOWNSTREAM_SERVICE_ERROR|GATEWAY_TIMEOUT)$/);
  expect(bad.extensions?.['petql'].upstreamCalls).toBe(3);
  expect(freeCalls(gateway)).toHaveLength(6);
});

test.each<[string, Fault]>([
  ['a 400', { status: 400, body: '{"code":"bad_request","message":"No.","status":400}' }],
  ['a 403', FORBIDS],
  ['a 408', fails(408)],
  ['a 418', fails(418)],
  ['a 501', fails(501)],
  ['a redirect', fails(307)],
  ['a response that breaks the contract', { body: '{"id":"7"}' }],
  ['a response that is too large', { body: ' '.repeat(2_000_000) }],
])('a read after %s is not retried', async (_what, fault) => {
  await using gateway = await withRoom(1);
  failFirst(gateway, 1, fault);
  expect((await gateway.query('{ pet(id: "7") { id } }')).errors).toHaveLength(1);
  expect(freeCalls(gateway)).toEqual(['/pets/7']);
});

test('a create is never retried', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const { errors } = await gateway.query(
    'mutation { createPet(input: { name: "Momo", categoryId: 3 }) { pet { id } } }',
  );
  expect(errors?.[0]?.extensions.code).toBe('OUTCOME_UNKNOWN');
  expect(freeCalls(gateway)).toHaveLength(1);
});

test('retries are at most a tenth of the calls of all callers', async () => {
  await using gateway = await withRoom(3);
  gateway.petApi.fault = FAILS;
  const before = gateway.petApi.log.length;
  const keys = ['demo-free', 'demo-pro', 'demo-business', 'demo-enterprise'];
  const answers = await Promise.all(
    keys.flatMap((key) =>
      // Two for a key: one alone is a get, and a second one finds it under way.
      [201, 202].map((id) =>
        gateway.query(`{ pet(id: "${id}") { id } }`, { headers: { authorization: `Bearer ${key}` } }),
      ),
    ),
  );
  expect(answers.filter(({ errors }) => errors)).toHaveLength(8);
  const made = gateway.petApi.log.length - before;
  const retries = await retriesCounted(gateway);
  expect(retries).toBeGreaterThanOrEqual(3);
  expect(retries * 10).toBeLessThanOrEqual(30 + made - retries);
});

test('a stale answer is served at once, without a retry', async () => {
  await using gateway = await withRoom(2);
  await gateway.query('{ pets(limit: 1) { id } }');
  failFirst(gateway, 1);
  const stale = await gateway.query('{ pets(limit: 1) { id } }');
  expect(stale).toMatchObject({
    data: { pets: [{ id: '1' }] },
    extensions: { petql: { upstreamCalls: 1, staleReason: 'UPSTREAM_FAILED' } },
  });
  expect(await retriesCounted(gateway)).toBe(0);
});

test('no retry begins after the deadline', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const { errors } = await gateway.query('{ pet(id: "7") { id } }', { headers: { prefer: 'wait=0' } });
  expect(errors?.[0]?.extensions.code).toBe('DOWNSTREAM_SERVICE_ERROR');
  expect(freeCalls(gateway)).toHaveLength(1);
});

test('ids that a list was to save are retried with that list', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const { data, errors } = await gateway.query('{ petsById(ids: ["1", "2", "3", "4"]) { id } }');
  expect(errors).toBeUndefined();
  expect(data?.['petsById']).toHaveLength(4);
  expect(freeCalls(gateway)).toEqual(['/pets?limit=100', '/pets?limit=100']);
});

test('reads that come before a retry share it', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 1);
  const ask = () => gateway.gateway.execute({ document: '{ pet(id: "7") { id } }', apiKey: 'demo-free' });
  const first = ask();
  await until(() => freeCalls(gateway).length === 1);
  const rest = Array.from({ length: 10 }, ask);
  for (const { data } of await Promise.all([first, ...rest])) expect(data).toEqual({ pet: { id: '7' } });
  expect(freeCalls(gateway)).toEqual(['/pets/7', '/pets/7']);
});

test('a gateway that stops makes no retry', async () => {
  await using gateway = await withRoom(2);
  failFirst(gateway, 3);
  const answer = gateway.query('{ pet(id: "7") { id } }');
  await until(() => freeCalls(gateway).length === 1);
  await gateway.gateway.drain();
  expect((await answer).errors?.[0]?.extensions.code).toMatch(/^(?:DOWNSTREAM_SERVICE_ERROR|RATE_LIMITED)$/);
  expect(freeCalls(gateway)).toHaveLength(1);
});
