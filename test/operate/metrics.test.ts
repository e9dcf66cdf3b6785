import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { RESETS, fails, on, slow, tooMany } from '../support/pet-api/fault.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';

/** Samples by their name and labels: `name{a="b"}`. */
async function scrape({ adminOrigin }: TestGateway): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`${adminOrigin}/metrics`);
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const lines = (await answer.text()).split('\n').filter((line) => line && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

const ask = (gateway: TestGateway, key: string, query: string) =>
  gateway.query(query, { headers: { authorization: `Bearer ${key}` } });

test('the series agree with a load of all kinds', async () => {
  const keys = {
    'demo-free': { perMinute: 60, perDay: 1_000 },
    tiny: { perMinute: 1, perDay: 9 },
  };
  await using gateway = await startGateway({
    gateway: { admin: true, maxAgeMs: 10_000, maxWaitMs: 300 },
    petApi: { keys },
  });
  const queries = Array.from({ length: 120 }, (_, index) => `{ pets(limit: ${1 + (index % 100)}) { id } }`);
  await Promise.all(queries.map((query) => ask(gateway, 'demo-free', query)));
  await ask(gateway, 'demo-free', 'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }');
  await ask(gateway, 'demo-free', '{ pet(id: "404404") { id } }');
  await ask(gateway, 'stray', '{ pets { id } }');
  await ask(gateway, 'demo-free', '{ nothing }');
  await ask(gateway, 'demo-free', '{ pets');
  await fetch(gateway.endpoint, { method: 'POST', body: 'no JSON' });
  // One call is all that it has; what it knows is then all that it gets.
  await ask(gateway, 'tiny', '{ pets { id } }');
  await ask(gateway, 'tiny', '{ pets(status: SOLD) { id } }');
  const stale = {
    headers: { authorization: 'Bearer demo-free', 'cache-control': 'only-if-cached, max-age=0, max-stale' },
  };
  await gateway.query('{ pet(id: "404404") { id } }', stale);
  gateway.petApi.fault = RESETS;
  await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
  gateway.petApi.fault = tooMany(20);
  await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });

  const samples = await scrape(gateway);
  const value = (name: string) => samples.get(name);
  const sum = (name: string) =>
    [...samples].reduce((total, [key, count]) => (key.startsWith(name) ? total + count : total), 0);

  expect(value('petql_operations_total{type="query",outcome="OK"}')).toBe(123);
  expect(value('petql_operations_total{type="mutation",outcome="OK"}')).toBe(1);
  expect(value('petql_operations_total{type="query",outcome="UNAUTHENTICATED"}')).toBe(1);
  expect(value('petql_operations_total{type="query",outcome="GRAPHQL_VALIDATION_FAILED"}')).toBe(1);
  expect(value('petql_operations_total{type="none",outcome="GRAPHQL_PARSE_FAILED"}')).toBe(1);
  expect(value('petql_operations_total{type="none",outcome="BAD_USER_INPUT"}')).toBe(1);
  expect(value('petql_operations_total{type="query",outcome="RATE_LIMITED"}')).toBe(2);
  expect(value('petql_operations_total{type="query",outcome="DOWNSTREAM_SERVICE_ERROR"}')).toBe(1);
  expect(sum('petql_operation_duration_seconds_count')).toBe(sum('petql_operations_total'));
  expect(sum('petql_upstream_calls_total')).toBe(gateway.petApi.log.length);
  expect(value('petql_upstream_calls_total{operation="createPet",status="2xx",reason="ok"}')).toBe(1);
  expect(value('petql_upstream_calls_total{operation="listPets",status="401",reason="unauthenticated"}')).toBe(1);
  expect(value('petql_upstream_calls_total{operation="listPets",status="429",reason="rate-limited"}')).toBe(1);
  expect(value('petql_upstream_calls_total{operation="listPets",status="none",reason="broken"}')).toBe(1);
  expect(sum('petql_upstream_call_duration_seconds_count')).toBe(gateway.petApi.log.length);
  expect(sum('petql_wait_seconds_count')).toBe(gateway.petApi.log.length);
  expect(sum('petql_saved_calls_total')).toBeGreaterThanOrEqual(119);
  expect(value('petql_stale_operations_total{reason="ONLY_IF_CACHED"}')).toBe(1);
  expect(value('petql_response_age_seconds_count')).toBeGreaterThan(120);
  expect(value('petql_queued_calls')).toBe(0);
  expect(value('petql_paused_keys')).toBe(1);
  expect(value('petql_callers{plan="Free"}')).toBeGreaterThanOrEqual(1);
  expect(value('petql_callers{plan="custom"}')).toBe(1);
  expect(value('petql_quota_limit_calls{plan="custom",window="MINUTE"}')).toBe(1);
  expect(value('petql_quota_remaining_calls{plan="custom",window="MINUTE"}')).toBe(0);
  expect(value('petql_quota_used_share_max{plan="custom",window="MINUTE"}')).toBe(1);
  expect(value('petql_quota_used_share_max{plan="Free",window="DAY"}')).toBeGreaterThan(0);
  expect(value('petql_replicas')).toBe(1);
  expect(value('petql_get_route_available')).toBe(1);
  expect(samples.has('petql_redis_up')).toBe(false);
  for (const name of ['process_cpu_seconds_total', 'nodejs_heap_size_used_bytes', 'nodejs_eventloop_lag_seconds']) {
    expect(samples.has(name)).toBe(true);
  }
});

// A header of 1,000 may tell Free's day or Business's minute, and one of 120 is in no published plan.
test.each([
  [100, 1_000, 'unknown'],
  [50, 1_000, 'unknown'],
  [100, 120, 'custom'],
  [50, 120, 'custom'],
])('with a share of %i, a limit of %i in a header counts as %s', async (planShare, limit, plan) => {
  await using gateway = await startGateway({ gateway: { admin: true, planShare } });
  gateway.petApi.fault = { headers: { 'x-ratelimit-limit': `${limit}`, 'x-ratelimit-remaining': `${limit - 1}` } };
  await gateway.query('{ pets(limit: 1) { id } }');
  expect((await scrape(gateway)).get(`petql_callers{plan="${plan}"}`)).toBe(1);
});

test('what alerts count starts at 0, since the first one of a series is no increase', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  const samples = await scrape(gateway);
  for (const operation of ['createPet', 'getPet', 'listPets']) {
    for (const labels of ['status="429",reason="rate-limited"', 'status="403",reason="forbidden"']) {
      expect(samples.get(`petql_upstream_calls_total{operation="${operation}",${labels}}`)).toBe(0);
    }
  }
  for (const outcome of ['OUTCOME_UNKNOWN', 'INTERNAL_SERVER_ERROR', 'RATE_LIMITED']) {
    expect(samples.get(`petql_operations_total{type="mutation",outcome="${outcome}"}`)).toBe(0);
  }
  expect(samples.get('petql_stale_operations_total{reason="QUOTA_EXHAUSTED"}')).toBe(0);
  expect(samples.get(`petql_build_info{version="${packageJson.version}"}`)).toBe(1);
});

test('a call that fails is counted while its operation is served cached data', async () => {
  await using gateway = await startGateway({ gateway: { admin: true, maxAgeMs: 0 } });
  await gateway.query('{ pets { id } }');
  gateway.petApi.fault = fails(500);
  const { errors } = await gateway.query('{ pets { id } }');
  expect(errors).toBeUndefined();
  const failed = 'petql_upstream_calls_total{operation="listPets",status="500",reason="failed"}';
  await expect.poll(async () => (await scrape(gateway)).get(failed)).toBeGreaterThan(0);
  expect((await scrape(gateway)).get('petql_operations_total{type="query",outcome="OK"}')).toBe(2);
});

test.skipIf(!redisIsHere)('updates in Redis are counted by their result, and take some time', async () => {
  const redis = await startRedis();
  try {
    await using gateway = await startGateway({ gateway: { admin: true, redisUrl: redis.url } });
    await gateway.query('{ pets { id } }');
    const count = async (result: string) =>
      (await scrape(gateway)).get(`petql_store_update_seconds_count{result="${result}"}`) ?? 0;
    expect(await count('won')).toBeGreaterThan(0);
    expect(await count('read')).toBeGreaterThan(0);
    expect(await count('failed')).toBe(0);
    await redis.kill();
    await expect.poll(() => count('failed')).toBeGreaterThan(0);
    const total = (await scrape(gateway)).get('petql_store_update_seconds_sum{result="won"}');
    expect(total).toBeGreaterThan(0);
  } finally {
    await redis.close();
  }
});

test.skipIf(!redisIsHere)('creates that Redis cannot have heard of leave it no work', async () => {
  const redis = await startRedis();
  try {
    await using gateway = await startGateway({ gateway: { admin: true, redisUrl: redis.url } });
    const failed = async () => (await scrape(gateway)).get('petql_store_update_seconds_count{result="failed"}') ?? 0;
    const create = (key: number) =>
      `mutation { createPet(input: { name: "Momo", categoryId: "3", idempotencyKey: "${key}" }) { pet { id } } }`;
    await gateway.query(create(0));
    await redis.kill();
    await expect.poll(failed).toBeGreaterThan(0);
    const refused = await Promise.all(Array.from({ length: 50 }, (_, index) => gateway.query(create(1 + index))));
    expect(new Set(refused.flatMap(codesOf))).toEqual(new Set(['IDEMPOTENCY_UNAVAILABLE']));
    const before = await failed();
    await setTimeout(1_000);
    // Heartbeats alone go on.
    expect((await failed()) - before).toBeLessThan(20);
  } finally {
    await redis.close();
  }
});

test('waiting calls are counted', async () => {
  const keys = { 'demo-free': { perMinute: 1, perDay: 50 } };
  await using gateway = await startGateway({ gateway: { admin: true, maxWaitMs: 120_000 }, petApi: { keys } });
  await gateway.query('{ pets { id } }');
  const abort = new AbortController();
  const waiting = fetch(gateway.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
    body: JSON.stringify({ query: '{ a: pets(status: SOLD) { id } b: pets(status: PENDING) { id } }' }),
    signal: abort.signal,
  }).catch(() => undefined);
  await expect.poll(async () => (await scrape(gateway)).get('petql_queued_calls')).toBeGreaterThan(0);
  abort.abort();
  await waiting;
  await expect.poll(async () => (await scrape(gateway)).get('petql_queued_calls')).toBe(0);
});

test('saved calls are counted by reason', async () => {
  const keys = { 'demo-free': { perMinute: 60, perDay: 1_000 } };
  await using gateway = await startGateway({
    gateway: { admin: true, maxWaitMs: 300 },
    petApi: { keys: { ...keys, tiny: { perMinute: 1, perDay: 9 } } },
  });
  const list = '{ pets { id } }';
  const older = (key: string, only = '') => ({
    headers: { authorization: `Bearer ${key}`, 'cache-control': `${only}max-age=0, max-stale` },
  });
  await Promise.all([ask(gateway, 'demo-free', list), ask(gateway, 'demo-free', list)]);
  await ask(gateway, 'demo-free', '{ a: pets(limit: 1) { id } b: pets(limit: 2) { id } }');
  await gateway.query(list, older('demo-free', 'only-if-cached, '));
  await ask(gateway, 'tiny', list);
  await gateway.query(list, older('tiny'));

  const samples = await scrape(gateway);
  const reasons = [...samples].filter(([name]) => name.startsWith('petql_saved_calls_total'));
  expect(Object.fromEntries(reasons)).toEqual({
    'petql_saved_calls_total{reason="SHARED_CALL"}': 1,
    'petql_saved_calls_total{reason="FRESH"}': 1,
    'petql_saved_calls_total{reason="ONLY_IF_CACHED"}': 1,
    'petql_saved_calls_total{reason="QUOTA_EXHAUSTED"}': 1,
  });
});

test('each operation is counted and logged once, even if it never ran', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  const ids: (string | null)[] = [];
  for (const body of [
    { query: '{ pets(limit: 1) { id } }' },
    // From the response cache.
    { query: '{ pets(limit: 1) { id } }' },
    { query: '{ pets { id } }', variables: [1] },
    { query: 1 },
    { query: '{ nothing }' },
    { documentId: 'unknown' },
  ]) {
    const answer = await fetch(gateway.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
      body: JSON.stringify(body),
    });
    ids.push(answer.headers.get('x-request-id'));
    await answer.arrayBuffer();
  }
  const operations = [...(await scrape(gateway))].filter(
    ([name, value]) => name.startsWith('petql_operations_total') && value > 0,
  );
  expect(Object.fromEntries(operations)).toEqual({
    'petql_operations_total{type="query",outcome="OK"}': 2,
    'petql_operations_total{type="query",outcome="GRAPHQL_VALIDATION_FAILED"}': 1,
    'petql_operations_total{type="none",outcome="BAD_USER_INPUT"}': 2,
    'petql_operations_total{type="none",outcome="PERSISTED_DOCUMENT_NOT_FOUND"}': 1,
  });
  const logged = gateway.logLines.filter(({ msg }) => msg === 'operation');
  expect(logged.map(({ outcome }) => outcome)).toEqual([
    'OK',
    'OK',
    'BAD_USER_INPUT',
    'BAD_USER_INPUT',
    'GRAPHQL_VALIDATION_FAILED',
    'PERSISTED_DOCUMENT_NOT_FOUND',
  ]);
  expect(logged.map(({ id }) => id)).toEqual(ids);
});

test('no client or upstream can add many series', async () => {
  await using gateway = await startGateway({ gateway: { admin: true, maxWaitMs: 50 } });
  const load = async (round: number) => {
    for (let index = 0; index < 30; index += 1) {
      // The lists that petql asks for work, so that their series do not depend on when it asks.
      gateway.petApi.fault = on('get', fails(430 + round * 30 + index));
      const headers = { authorization: `Bearer stranger-${round}-${index}`, 'user-agent': `agent ${round} ${index}` };
      await gateway.query(`query Name${round}_${index} { pet(id: "${index}") { id } }`, { headers });
    }
    return [...(await scrape(gateway)).keys()].filter((name) => name.startsWith('petql_'));
  };
  // The first rounds meet each class of statuses, and the lists that petql asks for.
  for (const round of [0, 1, 2]) await load(round);
  const some = await load(3);
  expect(await load(4)).toEqual(some);
});

test('an operation whose client leaves is counted as aborted', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  const leaving = new AbortController();
  gateway.petApi.fault = () => {
    leaving.abort();
    return slow(50);
  };
  const init = { method: 'POST', headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' } };
  const body = '{"query":"{ pets { id } }"}';
  await expect(fetch(gateway.endpoint, { ...init, body, signal: leaving.signal })).rejects.toThrow('abort');
  const operations = async () =>
    [...(await scrape(gateway))].filter(([name, value]) => name.startsWith('petql_operations') && value > 0);
  await expect.poll(operations).toEqual([['petql_operations_total{type="query",outcome="ABORTED"}', 1]]);
});

test('a client that leaves while its operation waits for the quota leaves no warning', async () => {
  await using gateway = await startGateway({
    gateway: { admin: true, plan: '1/1000', maxWaitMs: 100_000 },
    petApi: { keys: { 'demo-free': { perMinute: 1, perDay: 1_000 } } },
  });
  await gateway.query('{ pets { id } }');
  const leaving = new AbortController();
  const init = { method: 'POST', headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' } };
  const body = '{"query":"{ pet(id: 350) { id } }"}';
  const left = fetch(gateway.endpoint, { ...init, body, signal: leaving.signal });
  await expect.poll(async () => (await scrape(gateway)).get('petql_queued_calls')).toBe(1);
  leaving.abort();
  await expect(left).rejects.toThrow('abort');
  const aborted = 'petql_operations_total{type="query",outcome="ABORTED"}';
  await expect.poll(async () => (await scrape(gateway)).get(aborted)).toBe(1);
  expect(gateway.logLines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});

test('--admin-port opens a second listener on loopback, and a port in use is named', async () => {
  const petql = await startPetql(['--port', '0', '--admin-port', '0']);
  try {
    const [, admin = ''] = /^Admin +(http:\/\/127\.0\.0\.1:\d+)\/metrics/m.exec(petql.output.stdout) ?? [];
    expect(await (await fetch(`${admin}/metrics`)).text()).toContain('petql_operations_total');
    const second = await runPetql(['--port', '0', '--admin-port', new URL(admin).port]);
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('--admin-port (ADMIN_PORT)')]);
  } finally {
    petql.kill('SIGTERM');
  }
  expect(await petql.exited).toBe(0);
});

test('without the option there is no admin handler, and the public listener has no metrics', async () => {
  await using gateway = await startGateway();
  expect(gateway.gateway.admin).toBeUndefined();
  for (const path of ['/metrics', '/quota']) {
    expect((await fetch(new URL(path, gateway.endpoint))).status).toBe(404);
  }
});

test('each operation is one log line with the id of its response', async () => {
  await using gateway = await startGateway();
  const { headers } = await gateway.query('query Some { pets { id } }');
  await gateway.query('{ nothing }');
  expect(gateway.logLines.filter(({ msg }) => msg === 'operation')).toMatchObject([
    {
      level: 20,
      id: headers.get('x-request-id'),
      operation: 'Some',
      type: 'query',
      outcome: 'OK',
      upstreamCalls: 1,
      tookMs: expect.any(Number),
    },
    { outcome: 'GRAPHQL_VALIDATION_FAILED', upstreamCalls: 0 },
  ]);
});

test.each([
  ['mobile-7:42/a', true],
  ['x'.repeat(129), false],
  ['two words', false],
  ['a", "admin": "yes', false],
])("the client's X-Request-Id %s is petql's too where it is sane", async (id, isSane) => {
  await using gateway = await startGateway();
  const { headers } = await gateway.query('{ pets { id } }', { headers: { 'x-request-id': id } });
  expect(headers.get('x-request-id') === id).toBe(isSane);
  expect(gateway.logLines.at(-1)).toMatchObject({ msg: 'operation', id: headers.get('x-request-id') });
});
