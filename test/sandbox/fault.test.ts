import { afterEach, describe, expect, test, vi } from 'vitest';
import { rawGet } from './raw-exchange.ts';
import { startTestSandbox } from './start-test-sandbox.ts';

const ADA = '{"name":"Ada","categoryId":1}';

describe('delayMs', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test('keeps the call standing after it was counted and carried out', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await using sandbox = await startTestSandbox({ seeds: [] });
    sandbox.setFault(({ method }) => (method === 'POST' ? { delayMs: 10_000 } : undefined));
    const events: string[] = [];
    const creation = (async () => {
      events.push(`created with ${(await sandbox.call('POST /pets', { body: ADA })).status}`);
    })();
    await vi.waitUntil(() => sandbox.calls.length === 1, { interval: 0 });
    const listed = await sandbox.call('GET /pets');
    events.push(`listed ${listed.body.length}, ${listed.headers.get('x-ratelimit-remaining')} left`);
    vi.advanceTimersByTime(9_999);
    events.push(`listed ${(await sandbox.call('GET /pets')).body.length}`);
    vi.advanceTimersByTime(1);
    await creation;
    expect(events).toEqual(['listed 1, 58 left', 'listed 1', 'created with 201']);
  });
});

test('refused leaves the operation undone, and the call is counted all the same', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  sandbox.setFault(() => ({ refused: true }));
  const answer = await sandbox.call('POST /pets', { body: ADA });
  expect(answer.status).toBe(500);
  expect(answer.body).toEqual({ code: 'internal_error', message: expect.any(String), status: 500 });
  expect(answer.headers.get('x-ratelimit-remaining')).toBe('59');
  sandbox.setFault(undefined);
  expect((await sandbox.call('GET /pets')).body).toEqual([]);
});

test('status stands in for the true one, and what was to be done is done', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  sandbox.setFault(() => ({ status: 503 }));
  expect(await sandbox.call('POST /pets', { body: ADA })).toMatchObject({ status: 503, body: { id: 1, name: 'Ada' } });
  sandbox.setFault(undefined);
  expect((await sandbox.call('GET /pets')).body).toHaveLength(1);
});

test.for([
  ['text', '<h1>Bad gateway</h1>', Buffer.from('<h1>Bad gateway</h1>')],
  ['half a JSON', '[{"id":1', Buffer.from('[{"id":1')],
  ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), Buffer.from([0x22, 0xff, 0x22])],
  ['nothing', '', Buffer.alloc(0)],
] as const)('body stands in for the true one: %s', async ([, body, sent]) => {
  await using sandbox = await startTestSandbox();
  sandbox.setFault(() => ({ body }));
  const answer = await rawGet(`${sandbox.url}/pets`);
  expect(answer.body).toEqual(sent);
  expect(answer.head).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer.head).toContain(`content-length: ${sent.length}`);
});

test('headers are set, and with null left out', async () => {
  await using sandbox = await startTestSandbox();
  sandbox.setFault(() => ({
    headers: { 'x-ratelimit-limit': 'many', 'content-type': 'text/html', link: '</pets>; rel="next"', date: null },
  }));
  const { headers } = await sandbox.call('GET /pets');
  expect(headers.get('x-ratelimit-limit')).toBe('many');
  expect(headers.get('content-type')).toBe('text/html');
  expect(headers.get('link')).toBe('</pets>; rel="next"');
  expect(headers.has('date')).toBe(false);
  expect(headers.get('x-ratelimit-remaining')).toBe('59');
});

test.for(['content-type', 'content-length', 'x-ratelimit-reset', 'deprecation'])(
  'the header %s can be left out',
  async (name) => {
    await using sandbox = await startTestSandbox();
    expect((await sandbox.call('GET /pets/1')).headers.has(name)).toBe(true);
    sandbox.setFault(() => ({ headers: { [name]: null } }));
    const answer = await sandbox.call('GET /pets/1');
    expect(answer.headers.has(name)).toBe(false);
    expect(answer.body.id).toBe(1);
  },
);

test.for([0, 1, 100])('cutAfterBytes closes the connection after %s bytes of the body', async (bytes) => {
  await using sandbox = await startTestSandbox();
  const whole = await rawGet(`${sandbox.url}/pets`);
  sandbox.setFault(() => ({ cutAfterBytes: bytes }));
  const cut = await rawGet(`${sandbox.url}/pets`);
  expect(cut.body).toEqual(whole.body.subarray(0, bytes));
  expect(cut.head).toContain(`content-length: ${whole.body.length}`);
  await expect(sandbox.call('GET /pets')).rejects.toThrow('terminated');
});

test('reset resets the connection instead of an answer, after the operation was carried out', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  sandbox.setFault(() => ({ reset: true }));
  expect(await rawGet(`${sandbox.url}/pets`)).toEqual({ head: '', body: Buffer.alloc(0), reset: true });
  await expect(sandbox.call('POST /pets', { body: ADA })).rejects.toThrow('fetch failed');
  sandbox.setFault(undefined);
  expect((await rawGet(`${sandbox.url}/pets`)).reset).toBe(false);
  expect((await sandbox.call('GET /pets')).body).toHaveLength(1);
});

test('reset with refused leaves the operation undone', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  sandbox.setFault(() => ({ reset: true, refused: true }));
  await expect(sandbox.call('POST /pets', { body: ADA })).rejects.toThrow('fetch failed');
  sandbox.setFault(undefined);
  expect((await sandbox.call('GET /pets')).body).toEqual([]);
});

test('parts of a fault go together: another status, body and headers', async () => {
  await using sandbox = await startTestSandbox();
  sandbox.setFault(() => ({ status: 429, body: '"slow down"', headers: { 'retry-after': '7' }, refused: true }));
  const { status, headers, body } = await sandbox.call('GET /pets');
  expect([status, headers.get('retry-after'), body]).toEqual([429, '7', 'slow down']);
});

test('a fault is chosen by the call, and none is undefined', async () => {
  await using sandbox = await startTestSandbox();
  sandbox.setFault(({ store, method, path, key, body }) =>
    [store, method, path, key, body].join(' ') === 'staging POST /pets?a=b demo-pro {}' ? { status: 418 } : undefined,
  );
  const call = { key: 'demo-pro', staging: true, body: '{}' };
  expect((await sandbox.call('POST /pets?a=b', call)).status).toBe(418);
  expect((await sandbox.call('POST /pets?a=b', { ...call, staging: false })).status).toBe(400);
  expect((await sandbox.call('POST /pets?a=b', { ...call, key: 'demo-free' })).status).toBe(400);
});
