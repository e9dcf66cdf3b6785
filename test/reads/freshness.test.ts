import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { FORBIDS, RESETS, fails, slow, tooMany } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryAnswer, TestGateway, TestGatewayOptions } from '../support/start-gateway.ts';

const KEY = 'demo-free';
const ALL = '{ pets { id } }';

/** Early in a minute, so that it does not end unless a test moves the clock that far. */
const START_MS = Math.floor(Date.now() / 60_000) * 60_000 + 5_000;

let gateway: TestGateway;
/** How far a test has moved the clock. */
let aheadMs: number;

/** petql's and the pet API's. It stands still, so a busy machine makes nothing older. */
const clock = { now: () => START_MS + aheadMs, elapsed: () => aheadMs };

async function restart(petApi: TestGatewayOptions['petApi'] = {}, options: Partial<GatewayOptions> = {}) {
  await gateway[Symbol.asyncDispose]();
  await start(petApi, options);
}

async function start(petApi: TestGatewayOptions['petApi'] = {}, options: Partial<GatewayOptions> = {}) {
  gateway = await startGateway({ petApi: { now: clock.now, ...petApi }, gateway: { clock, ...options } });
}

beforeEach(async () => {
  aheadMs = 0;
  await start();
});
afterEach(() => gateway[Symbol.asyncDispose]());

const ask = (query: string, cacheControl: string | null = null) =>
  gateway.query(query, { headers: { 'cache-control': cacheControl } });
const usage = ({ extensions }: QueryAnswer) => extensions?.['petql'] as Record<string, any>;
const calls = () => gateway.petApi.log.length;

describe('without Cache-Control', () => {
  test('an answer is served again up to maxAge, and an older one is refreshed', async () => {
    expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 1, savedCalls: 0 });
    aheadMs = 800;
    const again = await ask(ALL);
    expect(usage(again)).toMatchObject({ upstreamCalls: 0, savedCalls: 1 });
    expect(usage(again)['oldestAgeMs']).toBeGreaterThanOrEqual(800);
    expect(usage(again)).not.toHaveProperty('staleReason');
    aheadMs = 2_000;
    expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 1 });
    expect(calls()).toBe(2);
  });

  test('a response tells the age of its oldest answer, and is private', async () => {
    await ask(ALL);
    aheadMs = 900;
    const { headers, extensions } = await ask(`{ pets { id } sold: pets(status: SOLD) { id } }`);
    expect(headers.get('age')).toMatch(/^[01]$/);
    expect(extensions?.['petql']).toMatchObject({ upstreamCalls: 1, oldestAgeMs: 900 });
    expect(headers.get('cache-control')).toMatch(/^private\b/);
    expect(headers.get('vary')).toContain('Authorization');
  });

  test('introspection has no age', async () => {
    const { headers, extensions } = await ask('{ __typename }');
    expect(headers.get('age')).toBeNull();
    expect(extensions?.['petql']).toEqual({ upstreamCalls: 0, savedCalls: 0 });
  });
});

test('a list that is read every two seconds spends an eighth of the day, and is then served stale', async () => {
  let extensions: Record<string, any> | undefined;
  for (let times = 0; times < 200; times += 1) {
    aheadMs += 2_000;
    const answer = await gateway.gateway.execute({ document: ALL, apiKey: KEY });
    expect(answer.errors).toBeUndefined();
    ({ extensions } = answer);
  }
  expect(extensions?.['petql']).toMatchObject({ staleReason: 'SAVING_QUOTA', upstreamCalls: 0 });
  expect(calls()).toBeGreaterThan(100);
  expect(calls()).toBeLessThan(135);
});

test('one operation may use all that is left for refreshes', async () => {
  await restart({ keys: { [KEY]: { perMinute: 60, perDay: 100 } } }, { plan: '60/100' });
  const lists =
    '{ pets { id } a: pets(status: AVAILABLE) { id } b: pets(status: PENDING) { id } c: pets(status: SOLD) { id } }';
  await ask(lists);
  // Of twelve calls, four are left.
  while (calls() < 8) await ask(ALL, 'no-cache');
  aheadMs = 2_000;
  expect(usage(await ask(lists))).toMatchObject({ upstreamCalls: 4 });
  aheadMs = 4_000;
  expect(usage(await ask(lists))).toMatchObject({ upstreamCalls: 0, staleReason: 'SAVING_QUOTA' });
});

test('refreshes that are not sent use nothing of what refreshes may use', async () => {
  await restart({ keys: { [KEY]: { perMinute: 60, perDay: 100 } } }, { plan: '60/100', maxStaleMs: 3_600_000 });
  await ask(ALL);
  gateway.petApi.fault = { connection: 'refused' };
  // Refreshes may use twelve calls at once.
  for (let refresh = 0; refresh < 20; refresh += 1) {
    aheadMs += 31_000;
    expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 0, staleReason: 'UPSTREAM_FAILED' });
  }
  gateway.petApi.fault = undefined;
  // A tenth of the outage.
  aheadMs += 63_000;
  expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 1 });
});

test('the last calls that others leave of a day are for first reads', async () => {
  await restart({ keys: { [KEY]: { perMinute: 60, perDay: 100 } } }, { plan: '60/100' });
  for (let minute = 0; minute < 2; minute += 1) {
    gateway.petApi.countOthers(KEY, 48, clock.now());
    aheadMs += 60_000;
  }
  await ask(ALL);
  aheadMs += 2_000;
  expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'SAVING_QUOTA', upstreamCalls: 0 });
  expect(usage(await ask('{ pet(id: "201") { id } }'))).toMatchObject({ upstreamCalls: 1 });
});

describe('Cache-Control of the request', () => {
  test('no-cache calls each time', async () => {
    for (let times = 0; times < 3; times += 1) await ask(ALL, 'no-cache');
    expect(calls()).toBe(3);
    await ask(ALL);
    await ask(ALL, 'no-cache');
    expect(calls()).toBe(4);
  });

  test('no-cache does not share a call that was under way, and others share its own', async () => {
    await ask('{ pet(id: "1") { id } }');
    gateway.petApi.fault = slow(200);
    const early = ask(ALL);
    await expect.poll(calls).toBe(2);
    aheadMs += 1;
    const strict = ask(ALL, 'no-cache');
    await expect.poll(calls).toBe(3);
    const late = ask(ALL);
    await Promise.all([early, strict, late]);
    expect(calls()).toBe(3);
  });

  test.each<[cacheControl: string, calls: number]>([
    ['max-age=30', 0],
    ['max-age="30"', 0],
    ['max-age = " 30 "', 0],
    ['private, something-else=1, MAX-AGE=30', 0],
    ['max-age=30, max-stale=60', 0],
    ['max-age=10', 1],
    ['max-age=0', 1],
    ['max-age=soon', 1],
    ['max-age=-5', 1],
    ['max-stale', 1],
    ['no-store', 1],
    ['No-Cache, max-age=60', 1],
    // As long as a header may be: a careless pattern takes an hour for it.
    [`a=${' '.repeat(15_000)}x"x`, 1],
  ])('%s on an answer of 20 s makes %d calls', async (cacheControl, made) => {
    await ask(ALL);
    aheadMs = 20_000;
    expect(usage(await ask(ALL, cacheControl))).toMatchObject({ upstreamCalls: made });
  });

  test('max-age takes nothing older, even where the upstream fails', async () => {
    await ask(ALL);
    aheadMs = 20_000;
    const old = await ask(ALL, 'max-age=30');
    expect(usage(old)).toMatchObject({ upstreamCalls: 0 });
    expect(old.headers.get('age')).toBe('20');
    gateway.petApi.fault = fails(500);
    expect((await ask(ALL, 'max-age=10')).errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
    expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
  });

  test('max-stale says how old an answer may be where the upstream fails', async () => {
    await ask(ALL);
    aheadMs = 700_000;
    gateway.petApi.fault = fails(500);
    expect((await ask(ALL)).errors).toHaveLength(1);
    expect((await ask(ALL, 'max-stale=600')).errors).toHaveLength(1);
    const old = await ask(ALL, 'max-stale=800');
    expect(old.errors).toBeUndefined();
    expect(usage(old)).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
    expect(old.headers.get('age')).toBe('700');
  });

  test('no-cache with Pragma beside it is of a browser, and shares calls; what an app says counts', async () => {
    const askWith = (pragma: string, cacheControl = 'no-cache') =>
      gateway.query(ALL, { headers: { 'cache-control': cacheControl, pragma } });
    await Promise.all([askWith('no-cache'), askWith('No-Cache', 'NO-CACHE')]);
    for (let renders = 0; renders < 10; renders += 1) await askWith('no-cache');
    expect(calls()).toBe(1);

    await ask(ALL, 'no-cache');
    await askWith('something');
    await askWith('no-cache', 'no-cache, max-age=5');
    aheadMs += 500;
    await askWith('no-cache', 'max-age=0');
    expect(calls()).toBe(5);
  });

  test('only-if-cached never calls: NOT_CACHED, with 504 where nothing else ran', async () => {
    const nothing = await ask(ALL, 'only-if-cached');
    expect(nothing).toMatchObject({ status: 504, errors: [{ extensions: { code: 'NOT_CACHED' } }] });
    // Only a 2xx may have data (GraphQL over HTTP, "Status Codes").
    expect(nothing).not.toHaveProperty('data');
    expect(await ask(`{ pets { id } __typename }`, 'only-if-cached')).toMatchObject({ status: 200 });
    expect(calls()).toBe(0);
    await ask(ALL);
    aheadMs = 60_000;
    const old = await ask(ALL, 'only-if-cached');
    expect(old).toMatchObject({ status: 200 });
    expect(usage(old)).toMatchObject({ staleReason: 'ONLY_IF_CACHED', upstreamCalls: 0 });
    aheadMs = 601_000;
    for (const asked of ['only-if-cached', 'only-if-cached, max-age=60'])
      expect((await ask(ALL, asked)).status).toBe(504);
    expect(calls()).toBe(1);
  });

  test.each([
    [false, 1],
    [true, 2],
  ])("with the server's key makes calls only where that is allowed: %s", async (allowed, made) => {
    await restart({}, { petApiKey: KEY, allowClientCacheControl: allowed });
    await ask(ALL);
    await ask(ALL, 'no-cache');
    expect(calls()).toBe(made);
  });
});

describe('a stale answer is better than an error', () => {
  const SMALL = { keys: { [KEY]: { perMinute: 1, perDay: 500 } } };

  test('while the minute is exhausted', async () => {
    await restart(SMALL);
    const { data } = await ask(ALL);
    aheadMs = 1_500;
    const old = await ask(ALL);
    expect(old).toMatchObject({ data });
    expect(old.errors).toBeUndefined();
    expect(usage(old)).toMatchObject({ staleReason: 'QUOTA_EXHAUSTED', upstreamCalls: 0 });
    expect((await ask('{ pet(id: "404404") { id } }')).errors).toMatchObject([
      { extensions: { code: 'RATE_LIMITED' } },
    ]);
    expect(calls()).toBe(1);
  });

  test('while the key is paused after a 429', async () => {
    await ask(ALL);
    aheadMs = 1_500;
    gateway.petApi.fault = tooMany(30);
    expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'PAUSED' });
    expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'PAUSED', upstreamCalls: 0 });
    expect(calls()).toBe(2);
  });

  test.each<[string, Fault]>([
    ['fails', fails()],
    ['sends HTML', { body: '<html>' }],
    ['cuts the connection', RESETS],
    ['is too slow', slow(1_000)],
  ])('while the upstream %s', async (_what, fault) => {
    await restart({}, { upstreamTimeoutMs: 250 });
    const { data } = await ask(ALL);
    aheadMs = 1_500;
    gateway.petApi.fault = fault;
    const old = await ask(ALL);
    expect(old).toMatchObject({ data });
    expect(usage(old)).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
  });

  test('but not one over maxStale', async () => {
    await ask(ALL);
    aheadMs = 601_000;
    gateway.petApi.fault = fails();
    expect((await ask(ALL)).errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
  });

  test.each([
    ['rejects', 401, 'UNAUTHENTICATED'],
    ['forbids', 403, 'FORBIDDEN'],
  ])('but not for a key that the upstream %s', async (_what, status, code) => {
    await ask(ALL);
    aheadMs = 1_500;
    gateway.petApi.fault = { status };
    expect((await ask(ALL)).errors).toMatchObject([{ extensions: { code } }]);
    expect((await ask(ALL, 'only-if-cached')).errors?.[0]?.extensions.code).not.toBeUndefined();
  });
});

describe('freshAt beside a stale reason is when the data can be fresh:', () => {
  test.each<[reason: string, plan: { perMinute: number; perDay: number }, fault: Fault | undefined]>([
    ['QUOTA_EXHAUSTED', { perMinute: 1, perDay: 500 }, undefined],
    ['SAVING_QUOTA', { perMinute: 60, perDay: 200 }, undefined],
    ['PAUSED', { perMinute: 60, perDay: 1_000 }, tooMany(30)],
    ['UPSTREAM_FAILED', { perMinute: 60, perDay: 1_000 }, fails(503, { headers: { 'retry-after': '20' } })],
  ])('%s', async (reason, plan, fault) => {
    await restart({ keys: { [KEY]: plan } }, { plan: `${plan.perMinute}/${plan.perDay}` });
    let stale = usage(await ask(ALL));
    gateway.petApi.fault = fault;
    for (let asked = 0; asked < 30 && !stale['staleReason']; asked += 1) {
      aheadMs += 1_500;
      stale = usage(await ask(ALL));
    }
    expect(stale).toMatchObject({ staleReason: reason, freshAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) });

    gateway.petApi.fault = undefined;
    const freshAtMs = Date.parse(stale['freshAt']) - START_MS;
    expect(freshAtMs).toBeGreaterThanOrEqual(aheadMs + 1_000);
    aheadMs = freshAtMs - 900;
    expect(usage(await ask(ALL))['staleReason']).toBe(reason);
    aheadMs = freshAtMs + 1;
    const first = usage(await ask(ALL));
    expect(first).toMatchObject({ upstreamCalls: 1 });
    // Nobody who has stale data waits for the try of a failing call.
    const fresh = reason === 'UPSTREAM_FAILED' ? usage(await ask(ALL)) : first;
    expect(fresh['oldestAgeMs']).toBe(0);
    expect(fresh).not.toHaveProperty('freshAt');
  });

  test('ONLY_IF_CACHED has none', async () => {
    await ask(ALL);
    aheadMs = 5_000;
    const stale = usage(await ask(ALL, 'only-if-cached'));
    expect(stale).toMatchObject({ staleReason: 'ONLY_IF_CACHED' });
    expect(stale).not.toHaveProperty('freshAt');
  });
});

describe('while the minute is exhausted and there is time to wait for the next one', () => {
  beforeEach(async () => {
    const keys = { [KEY]: { perMinute: 1, perDay: 500 } };
    await restart({ keys }, { maxWaitMs: 120_000, plan: '1/500' });
    await ask(ALL);
    aheadMs = 1_500;
  });

  test('a refresh does not wait: its read gets the stale answer', async () => {
    const old = await ask(ALL);
    expect(old.data?.['pets']).toHaveLength(20);
    expect(usage(old)).toMatchObject({ upstreamCalls: 0, staleReason: 'QUOTA_EXHAUSTED', oldestAgeMs: 1_500 });
  });

  test('RATE_LIMITED names the plan and the window', async () => {
    const messageFor = async (query: string, cacheControl: string) =>
      (await gateway.query(query, { headers: { 'cache-control': cacheControl, prefer: 'wait=0' } })).errors?.[0]
        ?.message;
    expect(await messageFor(ALL, 'no-cache')).toMatch(
      /^1\/500 plan: the quota of 1 calls per minute is exhausted; retry in \d+ s\.$/,
    );
    expect(await messageFor('{ pet(id: "999999") { id } }', 'max-age=0')).toMatch(/ is exhausted; retry in \d+ s\.$/);
  });

  test('a no-cache read that waits holds up no other read of the same list', async () => {
    const leaving = new AbortController();
    const operation = { document: ALL, apiKey: KEY, cacheControl: 'no-cache', signal: leaving.signal };
    const strict = gateway.gateway.execute(operation).catch(() => 'aborted');
    const queued = async () => (await ask('{ rateLimit { queued } }')).data?.['rateLimit'].queued;
    await expect.poll(queued, { interval: 10 }).toBe(1);
    expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 0, staleReason: 'QUOTA_EXHAUSTED' });
    leaving.abort();
    expect(await strict).toBe('aborted');
    expect(calls()).toBe(1);
  });
});

test('a read whose deadline comes before its call gets the stale answer', async () => {
  await ask(ALL);
  aheadMs = 1_500;
  gateway.petApi.fault = slow(200);
  const first = ask('{ pet(id: "404404") { id } }');
  await expect.poll(calls).toBe(2);
  const hasty = await gateway.query(ALL, { headers: { prefer: 'wait=0' } });
  expect(hasty.errors).toBeUndefined();
  await first;
});

test('a 403 fails its own read, and neither others nor the cache', async () => {
  await ask(ALL);
  aheadMs = 1_500;
  gateway.petApi.fault = ({ path }) => (path === '/pets/700' ? FORBIDS : slow(100));
  const list = ask('{ pets(status: SOLD, limit: 1) { id } }');
  await expect.poll(() => gateway.petApi.log.at(-1)?.path).toContain('sold');
  expect((await ask('{ pet(id: "700") { id } }')).errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  expect((await list).errors).toBeUndefined();
  expect((await ask(ALL, 'only-if-cached')).data?.['pets']).toHaveLength(20);
});

test('a slow response replaces no newer one', async () => {
  await ask(ALL);
  gateway.petApi.fault = slow(300);
  void ask(ALL, 'no-cache');
  await expect.poll(calls).toBe(2);
  gateway.petApi.fault = undefined;
  aheadMs = 100;
  expect(usage(await ask(ALL, 'no-cache'))).toMatchObject({ upstreamCalls: 1, oldestAgeMs: 0 });

  await expect.poll(() => gateway.petApi.log[1]?.answeredAtMs).toBeDefined();
  // Another call after it, so that petql has read the slow response.
  await ask('{ pet(id: "404404") { id } }');
  expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 0, oldestAgeMs: 0 });
});

describe('Cache-Status', () => {
  const status = ({ headers }: { readonly headers: Headers }) => headers.get('cache-status');

  test('is a hit with the seconds that are left, also from the response cache, and a negative time where it is stale', async () => {
    await restart({}, { maxAgeMs: 60_000 });
    expect(status(await ask(ALL))).toBe('petql; fwd=miss; ttl=60');
    for (const query of [ALL, ALL, '{ pets(limit: 2) { id } }']) {
      aheadMs += 10_000;
      expect(status(await ask(query))).toBe(`petql; hit; ttl=${60 - aheadMs / 1_000}`);
    }
    aheadMs = 60_001;
    for (const query of [ALL, ALL, '{ pets(limit: 2) { id } }'])
      expect(status(await ask(query, 'only-if-cached'))).toBe('petql; hit; ttl=-1; detail=ONLY_IF_CACHED');
    aheadMs = 90_000;
    gateway.petApi.fault = fails(500);
    expect(status(await ask(ALL))).toBe('petql; fwd=stale; ttl=-30; detail=UPSTREAM_FAILED');
    expect(status(await ask(ALL))).toBe('petql; hit; ttl=-30; detail=UPSTREAM_FAILED');
  });

  test('says what kept the cache from serving, and which request shared a call', async () => {
    gateway.petApi.fault = slow(100);
    const both = await Promise.all([ask(ALL), ask(ALL)]);
    expect(new Set(both.map(status))).toEqual(new Set(['petql; fwd=miss; ttl=1', 'petql; fwd=miss; ttl=1; collapsed']));
    expect(status(await ask('{ sold: pets(status: SOLD) { id } pets { id } }'))).toBe('petql; fwd=miss; ttl=1');
    expect(status(await ask(ALL, 'no-cache'))).toBe('petql; fwd=request; ttl=1');
    aheadMs = 5_000;
    expect(status(await ask(ALL, 'max-age=10'))).toBe('petql; hit; ttl=0');
    await restart();
    expect(status(await ask('{ a: pet(id: "1") { id } b: pet(id: "2") { id } }'))).toMatch(
      /^petql; fwd=miss; ttl=1; collapsed$/,
    );
    expect(status(await ask('{ pet(id: "404404") { id } }', 'only-if-cached'))).toBe('petql; fwd=miss');
  });

  test.each<[string, string, Record<string, string>?]>([
    ['a create', 'mutation { createPet(input: { name: "a", categoryId: 1 }) { pet { id } } }'],
    ['introspection', '{ __schema { queryType { name } } }'],
    ['the quota', '{ rateLimit { plan } }'],
    ['a dry run', ALL, { 'petql-dry-run': '1' }],
    ['half a document', '{'],
    ['an invalid document', '{ cats }'],
    ['no key', ALL, { authorization: '' }],
    ['another Accept', ALL, { accept: 'text/plain' }],
  ])('bypasses the cache for %s', async (_name, query, headers = {}) => {
    expect(status(await gateway.query(query, { headers }))).toBe('petql; fwd=bypass');
  });

  test.each(['PUT', 'HEAD'])('bypasses the cache for %s', async (method) => {
    expect(status(await fetch(gateway.endpoint, { method }))).toBe('petql; fwd=bypass');
  });

  test('is of operations alone', async () => {
    const { origin } = new URL(gateway.endpoint);
    for (const url of [`${origin}/health/live`, `${origin}/nothing`]) expect(status(await fetch(url))).toBeNull();
    expect(status(await fetch(gateway.endpoint, { method: 'OPTIONS' }))).toBeNull();
    expect(status(await fetch(gateway.endpoint, { headers: { accept: 'text/html' } }))).toBeNull();
  });
});
