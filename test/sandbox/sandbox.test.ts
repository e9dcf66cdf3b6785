import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startPetql } from '../support/run-petql.ts';
import { START_MS, startTestSandbox } from './start-test-sandbox.ts';

const ADA = '{"name":"Ada","categoryId":1}';

test('onCall gets every call in order: its time, environment, key, body and true status', async () => {
  await using sandbox = await startTestSandbox({ keys: { 'demo-free': { name: 'small', perMinute: 1, perDay: 1 } } });
  sandbox.setFault(() => ({ status: 599 }));
  await sandbox.call('GET /pets?status=sold&limit=3');
  sandbox.setFault(undefined);
  sandbox.clock.nowMs += 1_500;
  await sandbox.call('POST /pets', { staging: true, body: ADA });
  await sandbox.call('GET /pets/1');
  // A large body without a valid key gets its response, and is not kept.
  await sandbox.call('POST /pets', { key: 'no-such-key', body: ' '.repeat(3_000_000) });
  const first = { atMs: START_MS, store: 'production', key: 'demo-free', body: '' };
  const later = { ...first, atMs: START_MS + 1_500 };
  expect(sandbox.calls).toEqual([
    { ...first, method: 'GET', path: '/pets?status=sold&limit=3', status: 200 },
    { ...later, store: 'staging', method: 'POST', path: '/pets', body: ADA, status: 201 },
    { ...later, method: 'GET', path: '/pets/1', status: 429 },
    { ...later, method: 'POST', path: '/pets', key: 'no-such-key', status: 401 },
  ]);
});

describe('a fault', () => {
  test('changes status, headers and body, and the call has run and counts', async () => {
    await using sandbox = await startTestSandbox({ seeds: [] });
    const headers = { 'retry-after': '7', 'content-type': 'text/html', date: null, 'x-ratelimit-reset': null };
    sandbox.setFault(({ method }) => (method === 'POST' ? { status: 503, body: '"slow"', headers } : undefined));
    const answer = await sandbox.call('POST /pets', { body: ADA });
    expect([answer.status, answer.body]).toEqual([503, 'slow']);
    expect([answer.headers.get('retry-after'), answer.headers.get('content-type')]).toEqual(['7', 'text/html']);
    expect([answer.headers.has('date'), answer.headers.has('x-ratelimit-reset')]).toEqual([false, false]);
    const listed = await sandbox.call('GET /pets');
    expect([listed.body.length, listed.headers.get('x-ratelimit-remaining')]).toEqual([1, '58']);
  });

  test('with refused leaves the operation undone, and the call counts', async () => {
    await using sandbox = await startTestSandbox({ seeds: [] });
    sandbox.setFault(() => ({ refused: true }));
    const { status, body } = await sandbox.call('POST /pets', { body: ADA });
    expect([status, body.code]).toEqual([500, 'internal_error']);
    sandbox.setFault(undefined);
    const listed = await sandbox.call('GET /pets');
    expect([listed.body, listed.headers.get('x-ratelimit-remaining')]).toEqual([[], '58']);
  });

  test.for([
    [{ reset: true }, 'fetch failed'],
    [{ cutAfterBytes: 1 }, 'terminated'],
  ] as const)('%j breaks the connection after the operation has run', async ([fault, error]) => {
    await using sandbox = await startTestSandbox({ seeds: [] });
    sandbox.setFault(() => fault);
    await expect(sandbox.call('POST /pets', { body: ADA })).rejects.toThrow(error);
    sandbox.setFault(undefined);
    expect((await sandbox.call('GET /pets')).body).toHaveLength(1);
  });

  test('delays the response, not the operation', async () => {
    await using sandbox = await startTestSandbox({ seeds: [] });
    sandbox.setFault(({ method }) => (method === 'POST' ? { delayMs: 200 } : undefined));
    const startedAtMs = performance.now();
    const created = sandbox.call('POST /pets', { body: ADA });
    while (sandbox.calls.length === 0) await new Promise(setImmediate);
    expect((await sandbox.call('GET /pets')).body).toHaveLength(1);
    expect((await created).status).toBe(201);
    expect(performance.now() - startedAtMs).toBeGreaterThan(190);
  });
});

test('created pets outlive kill -9 in --sandbox-file, in both environments, and no id comes twice', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'petql-sandbox-'));
  const start = () => startPetql(['sandbox', '--port', '0', '--sandbox-file', join(folder, 'pets.sqlite')]);
  const first = await start();
  const created = new Map<string, unknown>();
  // One at a time on each of eight connections, so that the kill falls between creates and into some.
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    const base = writer % 2 === 0 ? '/v1' : '/staging/v1';
    for (let turn = 0; created.size < 50; turn += 1) {
      const pet = await create(first.address, base, `${writer} ${turn}`).catch(() => undefined);
      if (!pet) return;
      created.set(`${base}/pets/${pet.id}`, pet);
    }
    first.kill('SIGKILL');
  });
  await Promise.all(writers);
  expect(await first.exited).toBe('SIGKILL');
  const second = await start();
  for (const [path, pet] of created) {
    const response = await fetch(new URL(path, second.address), {
      headers: { authorization: 'Bearer demo-enterprise' },
    });
    expect([path, await response.json()]).toEqual([path, pet]);
  }
  for (const base of ['/v1', '/staging/v1']) {
    expect([...created.keys()]).not.toContain(`${base}/pets/${(await create(second.address, base, 'after')).id}`);
  }
  second.kill('SIGKILL');
  await second.exited;
  await rm(folder, { recursive: true });
});

async function create(origin: string, base: string, name: string): Promise<{ id: number }> {
  const response = await fetch(new URL(`${base}/pets`, origin), {
    method: 'POST',
    headers: { authorization: 'Bearer demo-enterprise' },
    body: JSON.stringify({ name, categoryId: 1, status: 'available' }),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: number };
}
