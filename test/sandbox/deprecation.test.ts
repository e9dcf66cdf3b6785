import { expect, test } from 'vitest';
import { startTestSandbox } from './start-test-sandbox.ts';

const SUNSET_MS = Date.UTC(2030, 11, 5);

test('getPet says since when it is deprecated (RFC 9745) and when it goes (RFC 8594), whatever it finds', async () => {
  await using sandbox = await startTestSandbox();
  for (const [path, status] of [
    ['/pets/1', 200],
    ['/pets/404404', 404],
    ['/pets/one', 400],
  ] as const) {
    const answer = await sandbox.call(`GET ${path}`);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('deprecation')).toBe(`@${Date.UTC(2025, 11, 5) / 1000}`);
    expect(answer.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
  }
});

test('the other operations are not deprecated', async () => {
  await using sandbox = await startTestSandbox();
  for (const request of ['GET /pets', 'POST /pets']) {
    const { headers } = await sandbox.call(request);
    expect([headers.get('deprecation'), headers.get('sunset')]).toEqual([null, null]);
  }
});

test("getPet answers until the last millisecond before its sunset by the sandbox's clock, and is gone from then on", async () => {
  await using sandbox = await startTestSandbox();
  sandbox.clock.nowMs = SUNSET_MS - 1;
  expect((await sandbox.call('GET /pets/1')).body).toMatchObject({ id: 1 });
  for (const nowMs of [SUNSET_MS, SUNSET_MS + 31_536_000_000]) {
    sandbox.clock.nowMs = nowMs;
    for (const path of ['/pets/1', '/pets/404404', '/pets/one']) {
      const answer = await sandbox.call(`GET ${path}`);
      expect(answer.status).toBe(410);
      expect(answer.body).toEqual({ code: 'gone', message: expect.stringContaining('GET /pets'), status: 410 });
    }
  }
});

test('the other operations outlive the sunset', async () => {
  await using sandbox = await startTestSandbox();
  sandbox.clock.nowMs = SUNSET_MS;
  expect((await sandbox.call('GET /pets')).status).toBe(200);
  expect((await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' })).status).toBe(201);
});
