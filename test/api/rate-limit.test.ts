import { describe, expect, test } from 'vitest';
import { slow, tooMany } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGatewayOptions } from '../support/start-gateway.ts';
import { TRANSPORTS, codesOf, headerOf, sendBy } from '../support/transports.ts';

const QUOTA = '{ rateLimit { plan queued pausedUntil windows { window limit used remaining resetAt } } }';
const SMALL: TestGatewayOptions['petApi'] = {
  keys: { 'demo-free': { perMinute: 3, perDay: 50 } },
};
const create = (number: number) =>
  `mutation { createPet(input: { name: "Pet ${number}", categoryId: 1 }) { pet { id } } }`;

const start = (petApi: TestGatewayOptions['petApi'] = {}, options: TestGatewayOptions['gateway'] = {}) =>
  startGateway({ petApi, gateway: { maxWaitMs: 2_000, ...options } });

describe.each(TRANSPORTS)('rateLimit by %s', (transport) => {
  test('costs no call, and shows no plan before a response has named it', async () => {
    await using gateway = await start();
    const send = sendBy(transport, gateway);
    const nothing = { plan: null, queued: 0, pausedUntil: null, windows: [] };
    expect((await send(QUOTA)).data?.['rateLimit']).toEqual(nothing);
    expect(gateway.petApi.log).toHaveLength(0);
    await send('{ a: pets(status: SOLD) { id } b: pets { id } }', { apiKey: 'demo-pro' });
    const { data } = await send(QUOTA, { apiKey: 'demo-pro' });
    expect(data?.['rateLimit']).toMatchObject({
      plan: 'Pro',
      windows: [
        { window: 'MINUTE', limit: 300, used: 2, remaining: 298, resetAt: expect.anything() },
        { window: 'DAY', limit: 10_000, used: 2, remaining: 9_998 },
      ],
    });
    expect(gateway.petApi.log).toHaveLength(2);
  });

  test('is read after the calls beside it, wherever it stands', async () => {
    await using gateway = await start();
    const query = '{ rateLimit { plan windows { window used } } pets { id } petsById(ids: ["101", "102"]) { id } }';
    const { data, extensions } = await sendBy(transport, gateway)(query);
    const used = extensions?.['petql'].upstreamCalls;
    expect(used).toBeGreaterThan(0);
    const windows = [
      { window: 'MINUTE', used },
      { window: 'DAY', used },
    ];
    expect(data?.['rateLimit']).toEqual({ plan: 'Free', windows });
  });

  test('needs a key', async () => {
    await using gateway = await start();
    expect(codesOf(await sendBy(transport, gateway)(QUOTA, { apiKey: null }))).toEqual(['UNAUTHENTICATED']);
  });

  test('shows a plan that is too large for an Int as the largest Int', async () => {
    await using gateway = await start();
    gateway.petApi.fault = { told: { limit: 30_000_000_000, remaining: 29_999_999_999 } };
    const send = sendBy(transport, gateway);
    await send('{ pets { id } }');
    const most = 2 ** 31 - 1;
    expect((await send(QUOTA)).data?.['rateLimit'].windows[0]).toMatchObject({ limit: most, remaining: most });
  });

  test('a call over the plan is never sent', async () => {
    await using gateway = await start(SMALL, { plan: '3/50' });
    const send = sendBy(transport, gateway);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => send(create(index))));
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(3);
    expect(gateway.petApi.log.map(({ status }) => status)).toEqual([201, 201, 201]);
    const answer = await send('{ pet(id: "404404") { id } }');
    expect(answer.data).toEqual({ pet: null });
    const { retryAfterMs, ...extensions } = answer.errors?.[0]?.extensions ?? ({} as Record<string, any>);
    expect(extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'MINUTE', retryAt: expect.any(String) });
    const retryAfter = String(Math.ceil(retryAfterMs / 1000));
    expect(headerOf(answer, 'retry-after', retryAfter)).toBe(retryAfter);
  });

  test('a wait of 0 is served where nothing has to wait, and RATE_LIMITED where something has to', async () => {
    await using gateway = await start();
    const send = sendBy(transport, gateway);
    for (const query of ['{ pet(id: "1") { id } }', create(1), '{ pets { id } }']) {
      expect((await send(query, { waitMs: 0 })).errors).toBeUndefined();
    }
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    gateway.petApi.fault = { held };
    // The first call of a key is alone, and no read can share it.
    const first = send(create(2), { apiKey: 'demo-pro' });
    await expect.poll(() => gateway.petApi.log.at(-1)?.key).toBe('demo-pro');
    const hasty = await send(create(3), { apiKey: 'demo-pro', waitMs: 0 });
    release();
    expect(codesOf(hasty)).toEqual(['RATE_LIMITED']);
    expect((await first).errors).toBeUndefined();
    expect(gateway.petApi.log).toHaveLength(4);
  });

  test('a rejected key costs one call, however many operations come at once', async () => {
    await using gateway = await start();
    const send = sendBy(transport, gateway);
    const queries = Array.from({ length: 50 }, (_, index) => `{ pet(id: "${index + 1}") { id } }`);
    const answers = await Promise.all(queries.map((query) => send(query, { apiKey: 'stray' })));
    expect(new Set(answers.flatMap(codesOf))).toEqual(new Set(['UNAUTHENTICATED']));
    expect(gateway.petApi.log).toHaveLength(1);
  });
});

test('RateLimit and RateLimit-Policy show both windows (draft-ietf-httpapi-ratelimit-headers)', async () => {
  await using gateway = await start();
  const none = (await gateway.query('{ __typename }')).headers;
  for (const name of ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit']) expect(none.get(name)).toBeNull();
  // The second response is cached.
  for (const query of ['{ pets { id } }', '{ pets { id } }']) {
    const { headers } = await gateway.query(query);
    expect(headers.get('ratelimit-policy')).toBe('"minute";q=60;w=60, "day";q=1000;w=86400');
    const [, minuteS, dayS] = /^"minute";r=59;t=(\d+), "day";r=999;t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? [];
    expect(Number(minuteS)).toBeLessThanOrEqual(60);
    expect(Number(dayS)).toBeLessThanOrEqual(86_400);
  }
});

test('the headers of each response count all calls before it, also within a millisecond', async () => {
  await using gateway = await start({}, { clock: { now: () => 1_800_000_000_000, elapsed: () => 0 } });
  const remaining = async (query: string) => (await gateway.query(query)).headers.get('x-ratelimit-remaining');
  const list = '{ pets(status: SOLD) { id } }';
  expect(await remaining(list)).toBe('59');
  expect(await remaining(list)).toBe('59');

  gateway.petApi.fault = { ...slow(500), told: { limit: 60, remaining: 20 } };
  const creating = remaining(create(1));
  await expect.poll(() => gateway.petApi.log.length).toBe(2);
  expect(await remaining(list)).toBe('58');
  expect(await creating).toBe('20');
  expect(await remaining(list)).toBe('20');
});

test('the headers of a response are those of the tightest window', async () => {
  await using gateway = await start(SMALL, { plan: '3/50' });
  const { headers } = await gateway.query('{ a: pets { id } b: pets(status: SOLD) { id } }');
  expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['3', '1']);
  const resetMs = Number(headers.get('x-ratelimit-reset')) * 1000;
  expect(resetMs).toBeGreaterThan(Date.now() - 2_000);
  expect(resetMs).toBeLessThanOrEqual(Date.now() + 63_000);
  await gateway.query(create(1));
  const something = await gateway.query('{ pet(id: "404404") { id } __typename }');
  expect(something.headers.get('retry-after')).toBeNull();
  expect(something.headers.get('x-ratelimit-remaining')).toBe('0');
});

test('after a 429 no call is made before its time, whatever remains of the window', async () => {
  await using gateway = await start();
  await gateway.query('{ pets { id } }');
  gateway.petApi.fault = tooMany(20);
  const { extensions } = await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
  expect(extensions?.['petql'].upstreamCalls).toBe(1);
  expect(codesOf(await gateway.query(create(1)))).toEqual(['RATE_LIMITED']);
  expect(gateway.petApi.log).toHaveLength(2);
});

test('a rejected key is tried again after 10 s, and then less and less often', async () => {
  let aheadMs = 0;
  const clock = { now: () => Date.now() + aheadMs, elapsed: () => aheadMs };
  await using gateway = await startGateway({ gateway: { clock } });
  const callsAfter = async (ms: number) => {
    aheadMs += ms;
    await gateway.query('{ pets { id } }', { headers: { authorization: 'Bearer stray' } });
    return gateway.petApi.log.length;
  };
  expect([await callsAfter(0), await callsAfter(9_000), await callsAfter(1_100)]).toEqual([1, 1, 2]);
  expect([await callsAfter(11_000), await callsAfter(9_100)]).toEqual([2, 3]);
});

test.each<[string, (index: number) => string, number]>([
  ['reads', (index) => `{ pet(id: "${index}") { id } }`, 1],
  ['writes', create, 10],
])('queued %s of clients that left are dropped before any call', async (_what, operation, queued) => {
  await using gateway = await startGateway({ gateway: { maxWaitMs: 120_000 } });
  gateway.petApi.fault = tooMany(60);
  await gateway.query(create(0), { headers: { prefer: 'wait=0' } });
  const leaving = new AbortController();
  const left = Array.from({ length: 10 }, (_, index) =>
    fetch(gateway.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
      body: JSON.stringify({ query: operation(index + 1) }),
      signal: leaving.signal,
    }).catch(() => 'left'),
  );
  const inQueue = async () => (await gateway.query(QUOTA)).data?.['rateLimit'].queued;
  // The key is paused. The reads wait for one call together.
  await expect.poll(inQueue, { interval: 10 }).toBe(queued);
  leaving.abort();
  expect(new Set(await Promise.all(left))).toEqual(new Set(['left']));
  await expect.poll(inQueue, { interval: 10 }).toBe(0);
  expect(gateway.petApi.log).toHaveLength(1);
});
