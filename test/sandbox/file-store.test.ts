import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Int64 } from '../../src/int64.ts';
import { startTestSandbox } from './start-test-sandbox.ts';

let folder: string;
let file: string;
const running = new Set<ChildProcess>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-sandbox-'));
  file = join(folder, 'animals.sqlite');
});

afterEach(async () => {
  for (const program of running) await kill(program);
  await rm(folder, { recursive: true });
});

test('every creation that was answered outlives kill -9, in both stores, and no id is given twice', async () => {
  const first = await runSandbox();
  const answered = new Map<string, unknown>();
  // One at a time on each of eight connections, so that the kill falls between, and into, creations.
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    const base = writer % 2 === 0 ? '/v1' : '/staging/v1';
    for (let turn = 0; answered.size < 100; turn += 1) {
      const added = await create(first.origin + base, `${writer} ${turn}`).catch(() => undefined);
      if (!added) return;
      answered.set(`${base}/pets/${added.id}`, added);
    }
    await kill(first.program);
  });
  await Promise.all(writers);
  expect(first.program.signalCode).toBe('SIGKILL');
  expect(answered.size).toBeGreaterThanOrEqual(100);

  const second = await runSandbox();
  for (const [path, animal] of answered) {
    const response = await fetch(second.origin + path, { headers: { authorization: 'Bearer demo-enterprise' } });
    expect([path, await response.json()]).toEqual([path, animal]);
  }
  for (const base of ['/v1', '/staging/v1']) {
    const { id } = await create(second.origin + base, 'after');
    expect([...answered.keys()]).not.toContain(`${base}/pets/${id}`);
  }
});

test('a store that is opened again has its animals and gets no new ones to start with', async () => {
  const listings: unknown[] = [];
  for (const name of ['Ada', 'Balu', 'Cleo']) {
    await using sandbox = await startTestSandbox({
      file,
      seeds: [{ name: 'Seed', categoryId: '1' as Int64, status: 'sold' }],
    });
    const { status } = await sandbox.call('POST /pets', { body: JSON.stringify({ name, categoryId: 1 }) });
    expect(status).toBe(201);
    listings.push((await sandbox.call('GET /pets')).body.map((animal: any) => `${animal.id} ${animal.name}`));
  }
  expect(listings.at(-1)).toEqual(['1 Seed', '2 Ada', '3 Balu', '4 Cleo']);
});

test('a store in memory is gone with its sandbox', async () => {
  for (let round = 0; round < 2; round += 1) {
    await using sandbox = await startTestSandbox({ seeds: [] });
    expect((await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' })).body.id).toBe(1);
  }
});

async function runSandbox(): Promise<{ program: ChildProcess; origin: string }> {
  const program = spawn(process.execPath, ['src/main.ts', 'sandbox', '--port', '0', '--sandbox-file', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(program);
  for await (const line of createInterface({ input: program.stdout })) {
    const url = /^Sandbox\s+(\S+)\/v1\s/.exec(line)?.[1];
    if (url !== undefined) return { program, origin: url };
  }
  throw new Error(`expected the sandbox to say where it listens; it ended with ${program.exitCode}`);
}

async function create(base: string, name: string): Promise<{ id: number }> {
  const response = await fetch(`${base}/pets`, {
    method: 'POST',
    headers: { authorization: 'Bearer demo-enterprise' },
    body: JSON.stringify({ name, categoryId: 1, status: 'available' }),
  });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: number };
}

async function kill(program: ChildProcess): Promise<void> {
  running.delete(program);
  if (program.exitCode !== null || program.signalCode !== null) return;
  const exit = once(program, 'exit');
  program.kill('SIGKILL');
  await exit;
}
