import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const BUDGET = '{ rateLimit { plan queued closedUntil windows { window limit used remaining resetAt } } }';
const SMALL = { keys: { 'demo-free': { name: 'small', perMinute: 3, perDay: 50 } } };

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway({ gateway: { maxWaitMs: 500 } });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

async function small(): Promise<void> {
  await gateway[Symbol.asyncDispose]();
  gateway = await startGateway({ sandbox: SMALL, gateway: { maxWaitMs: 500 } });
}

describe('rateLimit', () => {
  test('is the plan that is assumed, and costs no call', async () => {
    const { data } = await gateway.query(BUDGET);
    expect(data?.['rateLimit']).toEqual({
      plan: 'Free',
      queued: 0,
      closedUntil: null,
      windows: [
        { window: 'MINUTE', limit: 60, used: 0, remaining: 60, resetAt: null },
        // One in a hundred is kept back.
        { window: 'DAY', limit: 1_000, used: 0, remaining: 990, resetAt: null },
      ],
    });
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test("is what the service's headers tell once there were any, in the same operation too", async () => {
    const headers = { authorization: 'Bearer demo-pro' };
    await gateway.query('{ a: pets(status: SOLD) { id } b: pets { id } }', { headers });
    const { data } = await gateway.query(BUDGET, { headers });
    expect(data?.['rateLimit']).toMatchObject({
      plan: 'Pro',
      windows: [
        { window: 'MINUTE', limit: 300, used: 2, remaining: 298, resetAt: expect.stringMatching(/^\d{4}-.*Z$/) },
        { window: 'DAY', limit: 10_000 },
      ],
    });
    expect(gateway.sandbox.calls).toHaveLength(2);
  });

  test('of a plan without a limit is the largest number that GraphQL has for it', async () => {
    const told = { 'x-ratelimit-limit': '30000000000', 'x-ratelimit-remaining': '29999999999' };
    gateway.sandbox.setFault(() => ({ headers: told }));
    await gateway.query('{ pets { id } }');
    const { data } = await gateway.query(BUDGET);
    const most = 2 ** 31 - 1;
    expect(data?.['rateLimit'].windows).toContainEqual(
      expect.objectContaining({ window: 'MINUTE', limit: most, remaining: most }),
    );
  });

  test('needs a key', async () => {
    expect(await gateway.query(BUDGET, { headers: { authorization: null } })).toMatchObject({
      status: 401,
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });
});

test('after a 429 no second call is made before its time, however much of the window is left', async () => {
  await gateway.query('{ pets { id } }');
  gateway.sandbox.setFault(() => ({ status: 429, headers: { 'retry-after': '20' } }));
  const { extensions } = await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
  expect(extensions?.['petql'].upstreamCalls).toBe(1);
  expect(gateway.sandbox.calls).toHaveLength(2);
});

describe('the headers of a response', () => {
  test("tell of the tightest window under the service's own names", async () => {
    const { headers } = await gateway.query('{ pets { id } }');
    expect(headers.get('x-ratelimit-limit')).toBe('60');
    expect(headers.get('x-ratelimit-remaining')).toBe('59');
    const resetMs = Number(headers.get('x-ratelimit-reset')) * 1000;
    expect(resetMs).toBeGreaterThan(Date.now() - 2_000);
    expect(resetMs).toBeLessThanOrEqual(Date.now() + 63_000);
  });

  test('say when to come back where nothing could be answered, and only there', async () => {
    await small();
    await gateway.query('{ a: pets { id } b: pets(status: SOLD) { id } c: pets(status: PENDING) { id } }');
    const nothing = await gateway.query('{ pet(id: "404404") { id } }');
    expect(nothing).toMatchObject({
      status: 200,
      data: { pet: null },
      errors: [{ extensions: { code: 'RATE_LIMITED', window: 'MINUTE', retryAt: expect.any(String) } }],
    });
    const { retryAfterMs } = nothing.errors?.[0]?.extensions ?? ({} as any);
    expect(nothing.headers.get('retry-after')).toBe(String(Math.ceil(retryAfterMs / 1000)));
    const something = await gateway.query('{ pet(id: "404404") { id } __typename }');
    expect(something.headers.get('retry-after')).toBeNull();
    expect(something.headers.get('x-ratelimit-remaining')).toBe('0');
  });
});

describe('a request past the plan', () => {
  test('is never sent: the service counts its limit and refuses nobody', async () => {
    await small();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => gateway.query(creation(index))));
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(3);
    expect(gateway.sandbox.calls.map(({ status }) => status)).toEqual([201, 201, 201]);
  });

  test('that may not wait is served where nothing keeps it, a creation too', async () => {
    const hasty = { headers: { prefer: 'wait=0' } };
    for (const query of ['{ pet(id: "1") { id } }', creation(1), '{ pets { id } }']) {
      expect((await gateway.query(query, hasty)).errors).toBeUndefined();
    }
  });

  test('waits no longer than it says it would', async () => {
    const slow = { delayMs: 400 };
    gateway.sandbox.setFault(() => slow);
    const first = gateway.query('{ pet(id: "1") { id } }');
    const hasty = await gateway.query('{ pet(id: "2") { id } }', { headers: { prefer: 'respond-async, wait=0' } });
    expect(hasty.errors?.[0]?.extensions.code).toBe('RATE_LIMITED');
    expect((await first).errors).toBeUndefined();
    expect(gateway.sandbox.calls).toHaveLength(1);
  });
});

test('a key that nobody knows costs one call, however many ask with it at once', async () => {
  const headers = { authorization: 'Bearer stray' };
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => gateway.query(`{ pet(id: "${index + 1}") { id } }`, { headers })),
  );
  expect(new Set(answers.map(({ errors }) => errors?.[0]?.extensions.code))).toEqual(new Set(['UNAUTHENTICATED']));
  expect(gateway.sandbox.calls).toHaveLength(1);
});

test.each([
  ['reads', (index: number) => `{ pet(id: "${index}") { id } }`, 1],
  ['writes', creation, 10],
])('%s whose client is gone are dropped before any call', async (_what, operation, queued) => {
  gateway.sandbox.setFault(() => ({ delayMs: 300 }));
  const first = gateway.query(creation(0));
  const abort = new AbortController();
  const gone = Array.from({ length: 10 }, (_, index) =>
    fetch(gateway.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
      body: JSON.stringify({ query: operation(index + 1) }),
      signal: abort.signal,
    }).catch(() => 'gone'),
  );
  // They wait behind the probe, the reads for one call together; once all of them do, they go.
  await expect.poll(async () => (await gateway.query(BUDGET)).data?.['rateLimit'].queued).toBe(queued);
  abort.abort();
  expect(new Set(await Promise.all(gone))).toEqual(new Set(['gone']));
  await first;
  await expect.poll(async () => (await gateway.query(BUDGET)).data?.['rateLimit'].queued).toBe(0);
  expect(gateway.sandbox.calls).toHaveLength(1);
});

function creation(number: number): string {
  return `mutation { createPet(input: { name: "Pet ${number}", categoryId: 1 }) { pet { id } } }`;
}
