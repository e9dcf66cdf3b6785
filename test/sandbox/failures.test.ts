import { describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/program/sandbox/sandbox.ts';
import { START_MS, startTestSandbox } from './start-test-sandbox.ts';

const ADA = '{"name":"Ada","categoryId":1}';
const KEY = { authorization: 'Bearer demo-free' };
/** Ways to call the sandbox. They respond alike. */
const WAYS: Record<string, (sandbox: Sandbox) => Promise<(path: string, init?: RequestInit) => Promise<Response>>> = {
  'the fetch of the sandbox': async (sandbox) => (path, init) =>
    sandbox.fetch(`https://pets.example/v1${path}`, { headers: KEY, ...init }),
  HTTP: async (sandbox) => {
    const url = await sandbox.listen();
    return (path, init) => fetch(url + path, { headers: KEY, ...init });
  },
};

describe.each(Object.entries(WAYS))('by %s', (_name, open) => {
  test('the next calls fail, as often as was said and of the method that was said', async () => {
    await using sandbox = createSandbox({ pets: [] });
    const call = await open(sandbox);
    const statusOf = async (path: string, init?: RequestInit) => (await call(path, init)).status;
    const create = { method: 'POST', body: ADA };

    sandbox.fail({ status: 500 });
    sandbox.fail({ status: 503, times: 2, method: 'POST' });
    expect([await statusOf('/pets'), await statusOf('/pets')]).toEqual([500, 200]);
    const created = [await statusOf('/pets', create), await statusOf('/pets', create), await statusOf('/pets', create)];
    expect(created).toEqual([503, 503, 201]);
    expect(await (await call('/pets')).json()).toHaveLength(1);
    expect(sandbox.calls.map(({ status }) => status)).toEqual([500, 200, 503, 503, 201, 200]);
  });

  test('calls fail until it recovers', async () => {
    await using sandbox = createSandbox();
    const call = await open(sandbox);
    sandbox.fail({ status: 500, times: Infinity });
    for (let turn = 0; turn < 20; turn += 1) expect((await call('/pets')).status).toBe(500);
    sandbox.recover();
    expect((await call('/pets')).status).toBe(200);
  });

  test('a lost response breaks the connection, and the call is carried out', async () => {
    await using sandbox = createSandbox({ pets: [] });
    const call = await open(sandbox);
    sandbox.fail({ isLost: true });
    await expect(call('/pets', { method: 'POST', body: ADA })).rejects.toThrow('fetch failed');
    expect(await (await call('/pets')).json()).toEqual([{ id: 1, name: 'Ada', categoryId: 1, status: 'available' }]);
    expect(sandbox.calls[0]).toMatchObject({ method: 'POST', body: ADA, status: 201 });
  });

  test('a late response can be aborted', async () => {
    await using sandbox = createSandbox();
    const call = await open(sandbox);
    sandbox.fail({ delayMs: 60_000, times: 2 });
    for (const init of [{ signal: AbortSignal.timeout(20) }, { signal: AbortSignal.abort() }]) {
      await expect(call('/pets', init)).rejects.toThrow('abort');
    }
  });
});

describe('a failure of', () => {
  const told = ['date', 'retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'] as const;
  const now = START_MS / 1_000;
  const date = new Date(START_MS).toUTCString();
  const minute = Date.UTC(2026, 0, 5, 10, 31) / 1_000;

  test.each([
    ['429 with a time', { status: 429, retryAfter: 20 }, 'rate_limited', ['20', '60', '0', now + 20]],
    ['429', { status: 429 }, 'rate_limited', ['1', '60', '0', now + 1]],
    ['401', { status: 401 }, 'unauthorized', [null, '0', '0', now]],
    ['403', { status: 403 }, 'rejected', [null, '60', '59', minute]],
    ['403 with a time, a ban', { status: 403, retryAfter: 60 }, 'key_banned', ['60', '60', '0', now + 60]],
    ['500', { status: 500 }, 'internal_error', [null, '60', '59', minute]],
    ['503, before the API counts', { status: 503, retryAfter: 7 }, 'unavailable', ['7', null, null, null]],
  ] as const)('%s has the headers that such an API would send', async (_name, failure, code, headers) => {
    await using sandbox = await startTestSandbox();
    sandbox.fail(failure);
    const answer = await sandbox.call('GET /pets');
    expect(answer.body).toEqual({ code, message: expect.any(String), status: failure.status });
    const texts = headers.map((value) => (value === null ? null : String(value)));
    expect(told.map((name) => answer.headers.get(name))).toEqual([date, ...texts]);
  });

  test('a status that is no error is a RangeError', () => {
    const { fail } = createSandbox();
    for (const status of [200, 399, 600, NaN]) {
      expect(() => fail({ status })).toThrow(`status must be from 400 to 599, got ${status}.`);
    }
  });
});

test('a gateway over its options calls it in this process, and another one after that is closed', async () => {
  await using sandbox = createSandbox({
    keys: { 'own-key': { perMinute: 5, perDay: 9 } },
    pets: [{ name: 'Momo' }, { id: 2n ** 60n, name: 'Old', categoryId: '7', status: 'sold' }],
  });
  for (const turn of [1, 2]) {
    const gateway = createGateway({ ...sandbox.gatewayOptions, petApiKey: 'own-key' });
    const { data } = await gateway.execute({ document: '{ pets { id name categoryId status } }' });
    const old = { id: String(2n ** 60n), name: 'Old', categoryId: '7', status: 'SOLD' };
    expect(data).toEqual({ pets: [{ id: '1', name: 'Momo', categoryId: '1', status: null }, old] });
    const { data: quota } = await gateway.execute<any>({ document: '{ rateLimit { windows { limit used } } }' });
    expect(quota?.rateLimit.windows[0]).toEqual({ limit: 5, used: turn });
    await gateway.close();
  }
  expect(sandbox.calls.map(({ key }) => key)).toEqual(['own-key', 'own-key']);
});

test('a story of every key holds for any key, each with its own count of calls', async () => {
  await using sandbox = createSandbox({ story: 'flaky', keys: { pro: { perMinute: 300, perDay: 10_000 } } });
  const statuses: Record<string, number[]> = {};
  for (let turn = 0; turn < 4; turn += 1) {
    for (const key of ['mine', 'demo-paused', 'pro', '__proto__']) {
      const headers = { authorization: `Bearer ${key}` };
      const response = await sandbox.fetch('http://localhost/v1/pets', { headers });
      statuses[`of ${key}`] = [...(statuses[`of ${key}`] ?? []), response.status];
      const limit = response.headers.get('x-ratelimit-limit');
      expect([key, limit]).toEqual([key, key === 'pro' ? '300' : '60']);
    }
  }
  expect(new Set(Object.values(statuses).map(String))).toEqual(new Set(['200,200,500,200']));
  expect((await sandbox.fetch('http://localhost/v1/pets')).status).toBe(401);
});

test('it keeps as many calls as it was told', async () => {
  await using sandbox = createSandbox({ maxCalls: 2 });
  for (const limit of [1, 2, 3]) await sandbox.fetch(`http://localhost/v1/pets?limit=${limit}`, { headers: KEY });
  expect(sandbox.calls.map(({ path }) => path)).toEqual(['/pets?limit=2', '/pets?limit=3']);
});
