import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryAnswer, TestGateway, TestGatewayOptions } from '../support/start-gateway.ts';

const KEY = 'demo-free';
const ALL = '{ pets { id } }';

let gateway: TestGateway;
/** How far petql's clock is ahead of the machine's. */
let aheadMs: number;

const clock = { now: () => systemClock.now() + aheadMs, elapsed: () => systemClock.elapsed() + aheadMs };

async function restart(sandbox: TestGatewayOptions['sandbox'] = {}, options: Partial<GatewayOptions> = {}) {
  await gateway[Symbol.asyncDispose]();
  await start(sandbox, options);
}

async function start(sandbox: TestGatewayOptions['sandbox'] = {}, options: Partial<GatewayOptions> = {}) {
  gateway = await startGateway({ sandbox, gateway: { clock, maxWaitMs: 500, ...options } });
}

beforeEach(async () => {
  aheadMs = 0;
  await start();
});
afterEach(() => gateway[Symbol.asyncDispose]());

const ask = (query: string, cacheControl: string | null = null) =>
  gateway.query(query, { headers: { 'cache-control': cacheControl } });
const usage = ({ extensions }: QueryAnswer) => extensions?.['petql'] as Record<string, any>;
const calls = () => gateway.sandbox.calls.length;

describe('without a word of the request', () => {
  test('an answer younger than maxAge is served again, and one that is older is asked for anew', async () => {
    expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 1, servedWithoutCall: 0 });
    aheadMs = 800;
    const again = await ask(ALL);
    expect(usage(again)).toMatchObject({ upstreamCalls: 0, servedWithoutCall: 1 });
    expect(usage(again)['oldestAgeMs']).toBeGreaterThanOrEqual(800);
    expect(usage(again)).not.toHaveProperty('staleReason');
    aheadMs = 2_000;
    expect(usage(await ask(ALL))).toMatchObject({ upstreamCalls: 1 });
    expect(calls()).toBe(2);
  });

  test('the response tells the age of its oldest answer, and is for whoever asked alone', async () => {
    await ask(ALL);
    aheadMs = 900;
    const { headers } = await ask(`{ pets { id } sold: pets(status: SOLD) { id } }`);
    expect(headers.get('age')).toMatch(/^[01]$/);
    expect(headers.get('cache-control')).toMatch(/^private\b/);
    expect(headers.get('vary')).toContain('Authorization');
  });

  test('introspection has no age', async () => {
    const { headers, extensions } = await ask('{ __typename }');
    expect(headers.get('age')).toBeNull();
    expect(extensions?.['petql']).toEqual({ upstreamCalls: 0, servedWithoutCall: 0 });
  });
});

describe('Cache-Control of the request', () => {
  test('no-cache calls each time', async () => {
    for (let times = 0; times < 3; times += 1) await ask(ALL, 'no-cache');
    expect(calls()).toBe(3);
  });

  test('no-cache does not share a call that was under way, and others share its own', async () => {
    await ask('{ pet(id: "1") { id } }');
    gateway.sandbox.setFault(() => ({ delayMs: 200 }));
    const early = ask(ALL);
    await expect.poll(calls).toBe(2);
    const strict = ask(ALL, 'no-cache');
    await expect.poll(calls).toBe(3);
    const late = ask(ALL);
    await Promise.all([early, strict, late]);
    expect(calls()).toBe(3);
  });

  test('max-age takes what is as young, and nothing older even where the service fails', async () => {
    await ask(ALL);
    aheadMs = 20_000;
    const old = await ask(ALL, 'max-age=30');
    expect(usage(old)).toMatchObject({ upstreamCalls: 0 });
    expect(old.headers.get('age')).toBe('20');
    gateway.sandbox.setFault(() => ({ status: 500 }));
    expect((await ask(ALL, 'max-age=10')).errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
    expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
  });

  test('max-stale says how old an answer may be where there is no younger one', async () => {
    await ask(ALL);
    aheadMs = 700_000;
    gateway.sandbox.setFault(() => ({ status: 500 }));
    expect((await ask(ALL)).errors).toHaveLength(1);
    expect((await ask(ALL, 'max-stale=600')).errors).toHaveLength(1);
    const old = await ask(ALL, 'max-stale=800');
    expect(old.errors).toBeUndefined();
    expect(usage(old)).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
    expect(old.headers.get('age')).toBe('700');
  });

  test('only-if-cached never calls: NOT_CACHED, with 504 where nothing else ran', async () => {
    const nothing = await ask(ALL, 'only-if-cached');
    expect(nothing).toMatchObject({
      status: 504,
      data: { pets: null },
      errors: [{ extensions: { code: 'NOT_CACHED' } }],
    });
    expect(await ask(`{ pets { id } __typename }`, 'only-if-cached')).toMatchObject({ status: 200 });
    expect(calls()).toBe(0);
    await ask(ALL);
    aheadMs = 60_000;
    const old = await ask(ALL, 'only-if-cached');
    expect(old).toMatchObject({ status: 200 });
    expect(usage(old)).toMatchObject({ staleReason: 'ONLY_IF_CACHED', upstreamCalls: 0 });
    aheadMs = 601_000;
    expect((await ask(ALL, 'only-if-cached')).status).toBe(504);
    expect(calls()).toBe(1);
  });

  test("does not count where the key is the server's, unless that is allowed", async () => {
    await restart({}, { petApiKey: KEY });
    await ask(ALL);
    await ask(ALL, 'no-cache');
    expect(calls()).toBe(1);
    await restart({}, { petApiKey: KEY, heedCacheControl: true });
    await ask(ALL);
    await ask(ALL, 'no-cache');
    expect(calls()).toBe(2);
  });
});

describe('an answer is better than an error', () => {
  const SMALL = { keys: { [KEY]: { name: 'small', perMinute: 1, perDay: 500 } } };

  test('when the minute is used up', async () => {
    // Early in a minute by the clock of both, so that it does not end meanwhile.
    aheadMs = 65_000 - (Date.now() % 60_000);
    await restart({ ...SMALL, clock });
    const { data } = await ask(ALL);
    aheadMs += 1_500;
    const old = await ask(ALL);
    expect(old).toMatchObject({ data });
    expect(old.errors).toBeUndefined();
    expect(usage(old)).toMatchObject({ staleReason: 'PLAN_USED_UP', upstreamCalls: 0 });
    expect((await ask('{ pet(id: "404404") { id } }')).errors).toMatchObject([
      { extensions: { code: 'RATE_LIMITED' } },
    ]);
    expect(calls()).toBe(1);
  });

  test('when the gate is closed after a 429', async () => {
    await ask(ALL);
    aheadMs = 1_500;
    gateway.sandbox.setFault(() => ({ status: 429, headers: { 'retry-after': '30' } }));
    expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'GATE_CLOSED' });
    expect(usage(await ask(ALL))).toMatchObject({ staleReason: 'GATE_CLOSED', upstreamCalls: 0 });
    expect(calls()).toBe(2);
  });

  test.each([
    ['fails', { status: 503 }],
    ['answers what is no answer', { body: '<html>' }],
    ['cuts the connection', { reset: true }],
    ['is too slow', { delayMs: 400 }],
  ])('when the service %s', async (_what, fault) => {
    await restart({}, { upstreamTimeoutMs: 200 });
    const { data } = await ask(ALL);
    aheadMs = 1_500;
    gateway.sandbox.setFault(() => fault);
    const old = await ask(ALL);
    expect(old).toMatchObject({ data });
    expect(usage(old)).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
  });

  test('but not one that is older than maxStale', async () => {
    await ask(ALL);
    aheadMs = 601_000;
    gateway.sandbox.setFault(() => ({ status: 503 }));
    expect((await ask(ALL)).errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
  });

  test.each([
    ['does not take', 401, 'UNAUTHENTICATED'],
    ['forbids everything to', 403, 'FORBIDDEN'],
  ])('but not for a key that the service %s any more', async (_what, status, code) => {
    await ask(ALL);
    aheadMs = 1_500;
    gateway.sandbox.setFault(() => ({ status }));
    expect((await ask(ALL)).errors).toMatchObject([{ extensions: { code } }]);
    expect((await ask(ALL, 'only-if-cached')).errors?.[0]?.extensions.code).not.toBeUndefined();
  });
});

test('what waits for the plan is given up at its deadline, and what is known is served for it', async () => {
  await ask(ALL);
  aheadMs = 1_500;
  gateway.sandbox.setFault(() => ({ delayMs: 300 }));
  // A creation opens the minute and takes its time: whoever cannot wait for it gets what was known.
  const first = ask('{ pet(id: "404404") { id } }');
  await expect.poll(calls).toBe(2);
  const hasty = await gateway.query(ALL, { headers: { prefer: 'wait=0' } });
  expect(hasty.errors).toBeUndefined();
  await first;
});
