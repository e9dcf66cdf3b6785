import { expect, test } from 'vitest';
import { START_MS, startTestSandbox } from './start-test-sandbox.ts';

test('every call is in the log with its time, its store, its key, its body and how it was answered, in their order', async () => {
  await using sandbox = await startTestSandbox();
  await sandbox.call('GET /pets?status=sold&limit=3');
  sandbox.clock.nowMs += 1_500;
  await sandbox.call('POST /pets', { key: 'demo-pro', staging: true, body: '{"name":"猫","categoryId":1}' });
  await sandbox.call('POST /pets', { body: '{}' });
  await sandbox.call('GET /pets/404404', { key: 'no-such-key' });
  await sandbox.call('DELETE /orders', { key: null });
  await fetch(new URL('/elsewhere?x=1', sandbox.url), { headers: { authorization: 'Bearer demo-free' } });

  const first = { atMs: START_MS, store: 'production', key: 'demo-free', body: '' };
  const later = { ...first, atMs: START_MS + 1_500 };
  expect(sandbox.calls).toEqual([
    { ...first, method: 'GET', path: '/pets?status=sold&limit=3', status: 200 },
    {
      ...later,
      store: 'staging',
      method: 'POST',
      path: '/pets',
      key: 'demo-pro',
      body: '{"name":"猫","categoryId":1}',
      status: 201,
    },
    { ...later, method: 'POST', path: '/pets', body: '{}', status: 400 },
    { ...later, method: 'GET', path: '/pets/404404', key: 'no-such-key', status: 401 },
    { ...later, method: 'DELETE', path: '/orders', key: undefined, status: 401 },
    { ...later, method: 'GET', path: '/elsewhere?x=1', status: 404 },
  ]);
});

test('the log has refused calls, too, and the true status where a fault made another of it', async () => {
  const keys = { 'demo-free': { name: 'small', perMinute: 2, perDay: 10 } };
  await using sandbox = await startTestSandbox({ keys });
  sandbox.setFault(() => ({ status: 599 }));
  for (const status of [599, 599, 599]) expect((await sandbox.call('GET /pets')).status).toBe(status);
  expect(sandbox.calls.map(({ status }) => status)).toEqual([200, 200, 429]);
});

test('the log has a call whose connection was reset', async () => {
  await using sandbox = await startTestSandbox();
  sandbox.setFault(() => ({ reset: true }));
  await expect(sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' })).rejects.toThrow('fetch failed');
  expect(sandbox.calls.map(({ method, status }) => [method, status])).toEqual([['POST', 201]]);
});

test('a body that comes without a valid key is a 401, however large, and nothing of it is kept', async () => {
  await using sandbox = await startTestSandbox();
  for (const [key, length] of [
    [null, 20],
    ['no-such-key', 20],
    [null, 3_000_000],
  ] as const) {
    expect((await sandbox.call('POST /pets', { key, body: ' '.repeat(length) })).status).toBe(401);
  }
  expect(sandbox.calls.map(({ body, status }) => `${status} ${body}`)).toEqual(['401 ', '401 ', '401 ']);
});
