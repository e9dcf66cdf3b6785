import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { STORIES, STORY_NAMES } from '../../src/program/sandbox/stories.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import { START_MS, startTestSandbox } from './start-test-sandbox.ts';

const ADA = '{"name":"Ada","categoryId":1}';

test('the log of calls has every call in order: its time, key, body and status', async () => {
  await using sandbox = await startTestSandbox({ keys: { 'demo-free': { perMinute: 2, perDay: 2 } } });
  await sandbox.call('GET /pets?status=sold&limit=3');
  sandbox.clock.nowMs += 1_500;
  await sandbox.call('POST /pets', { body: ADA });
  await sandbox.call('GET /pets/1');
  // A large body without a valid key gets its response, and is not kept.
  await sandbox.call('POST /pets', { key: 'no-such-key', body: ' '.repeat(3_000_000) });
  const first = { atMs: START_MS, key: 'demo-free', body: '' };
  const later = { ...first, atMs: START_MS + 1_500 };
  expect(sandbox.calls).toEqual([
    { ...first, method: 'GET', path: '/pets?status=sold&limit=3', status: 200 },
    { ...later, method: 'POST', path: '/pets', body: ADA, status: 201 },
    { ...later, method: 'GET', path: '/pets/1', status: 429 },
    { ...later, method: 'POST', path: '/pets', key: 'no-such-key', status: 401 },
  ]);
});

test('a --sandbox-file of a version without a column of now gets it, and keeps its pets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'petql-sandbox-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'pets.sqlite');
  const before = new DatabaseSync(file);
  before.exec('CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT NOT NULL, categoryId INTEGER NOT NULL) STRICT');
  before.exec("INSERT INTO pet VALUES (7, 'Ada', 1)");
  before.close();
  await using sandbox = await startTestSandbox({ file });
  const created = await sandbox.call('POST /pets', { body: '{"name":"Balu","categoryId":2,"status":"sold"}' });
  expect(created.body).toEqual({ id: 8, name: 'Balu', categoryId: 2, status: 'sold' });
  const { body } = await sandbox.call('GET /pets');
  expect(body).toEqual([{ id: 7, name: 'Ada', categoryId: 1 }, created.body]);
});

test('created pets outlive kill -9 in --sandbox-file, and no id comes twice', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'petql-sandbox-'));
  const start = () => startPetql(['sandbox', '--port', '0', '--sandbox-file', join(folder, 'pets.sqlite')]);
  const first = await start();
  const created = new Map<string, unknown>();
  // One at a time on each of four connections, so that the kill falls between creates and into some.
  const writers = [1, 2, 3, 4].map(async (writer) => {
    for (let turn = 0; created.size < 20; turn += 1) {
      const pet = await create(first.address, `${writer} ${turn}`).catch(() => undefined);
      if (!pet) return;
      created.set(`/v1/pets/${pet.id}`, pet);
    }
    first.kill('SIGKILL');
  });
  await Promise.all(writers);
  expect(await first.exited).toBe('SIGKILL');
  const second = await start();
  const headers = { authorization: 'Bearer demo-enterprise' };
  for (const [path, pet] of created) {
    const response = await fetch(new URL(path, second.address), { headers });
    expect([path, await response.json()]).toEqual([path, pet]);
  }
  expect([...created.keys()]).not.toContain(`/v1/pets/${(await create(second.address, 'after')).id}`);
  second.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

test('petql sandbox --story gives every key that story, and says which ones there are', async () => {
  const petql = await startPetql(['sandbox', '--port', '0', '--story', 'flaky']);
  expect(petql.output.stdout).toContain('Any key    every third call fails with 500');
  const headers = { authorization: 'Bearer any-key-of-mine' };
  const statuses: number[] = [];
  for (let turn = 0; turn < 3; turn += 1) statuses.push((await fetch(`${petql.address}/pets`, { headers })).status);
  expect(statuses).toEqual([200, 200, 500]);
  petql.kill('SIGKILL');

  const { code, stderr } = await runPetql(['sandbox', '--story', 'flakey']);
  expect([code, stderr]).toEqual([1, `petql: --story must be one of ${STORY_NAMES.join(', ')}, got "flakey"\n`]);
});

test('petql over a sandbox, and the sandbox alone, name each story with its key', async () => {
  for (const command of [[], ['sandbox']]) {
    const petql = await startPetql([...command, '--port', '0']);
    for (const [name, { about }] of Object.entries(STORIES)) {
      expect(petql.output.stdout).toMatch(new RegExp(`^ +demo-${name} +${about}$`, 'm'));
    }
    petql.kill('SIGKILL');
  }
});

async function create(origin: string, name: string): Promise<{ id: number }> {
  const response = await fetch(new URL('/v1/pets', origin), {
    method: 'POST',
    headers: { authorization: 'Bearer demo-enterprise' },
    body: JSON.stringify({ name, categoryId: 1, status: 'available' }),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: number };
}
