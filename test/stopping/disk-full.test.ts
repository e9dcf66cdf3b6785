import { execFileSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { askDayUsed } from '../prove/ask-day-used.ts';
import { whyUnusable } from '../../src/store/unusable-file.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';
import { until } from '../support/until.ts';

const KEY = 'demo-pro';
/** One that nobody asks with once there is room again. */
const EARLIER_KEY = 'demo-enterprise';
const TIMEOUT_MS = 60_000;

let folder: string;
const running: PetqlProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-full-'));
});
afterEach(async () => {
  for (const petql of running.splice(0)) await kill(petql);
  await rm(folder, { recursive: true });
});

async function start(...args: string[]): Promise<PetqlProcess> {
  const petql = await startPetql(['--port', '0', '--plan', 'pro', ...args]);
  running.push(petql);
  return petql;
}

async function kill(petql: PetqlProcess): Promise<void> {
  petql.kill('SIGKILL');
  await petql.exited;
}

/** As on a disk that is full: no file of the process grows, and whoever tries is told so (EFBIG). */
const ON_FULL_DISK = { under: ['prlimit', '--fsize=1:unlimited'] };

function fillDisk({ pid }: PetqlProcess): void {
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=1:unlimited']);
}

function freeDisk({ pid }: PetqlProcess): void {
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:unlimited']);
}

async function ask({ address }: PetqlProcess, query: string, key = KEY): Promise<any> {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, 'cache-control': 'no-cache' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

function create(petql: PetqlProcess, name: string, idempotencyKey?: string): Promise<any> {
  const key = idempotencyKey === undefined ? '' : `, idempotencyKey: "${idempotencyKey}"`;
  return ask(petql, `mutation { createPet(input: { name: "${name}", categoryId: 1${key} }) { pet { id name } } }`);
}

const codeOf = ({ errors }: any) => errors?.[0].extensions.code;

test(
  'with no room for the state file, nothing is sent that could not be kept, and what was spent is written once there is room',
  async () => {
    const sandbox = await startRecordedSandbox();
    const posts = () => sandbox.calls.filter(({ method }) => method === 'POST').length;
    const args = ['--pet-api-url', sandbox.url, '--state-file', join(folder, 'state.db')];
    const first = await start(...args);
    const kept = await create(first, 'Ada', 'ada');
    fillDisk(first);
    for (let call = 0; call < 5; call += 1) await ask(first, '{ pets(limit: 1) { id } }', EARLIER_KEY);
    expect(codeOf(await create(first, 'Balu', 'balu'))).toBe('IDEMPOTENCY_UNAVAILABLE');
    expect(posts()).toBe(1);
    // There is nothing to be kept of these.
    expect((await create(first, 'Cleo')).errors).toBeUndefined();
    expect((await ask(first, '{ pets(limit: 1) { id } }')).data.pets).toHaveLength(1);
    expect(await create(first, 'Ada', 'ada')).toMatchObject({ data: kept.data });
    expect(first.output.stderr.match(/the state file cannot be written/g)).toHaveLength(1);

    freeDisk(first);
    await until(async () => codeOf(await create(first, 'Balu', 'balu')) !== 'IDEMPOTENCY_UNAVAILABLE');
    first.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    const second = await start(...args);
    expect(await askDayUsed(second.address, KEY)).toBe(sandbox.calls.filter(({ key }) => key === KEY).length);
    expect(await askDayUsed(second.address, EARLIER_KEY)).toBe(5);
    expect(await create(second, 'Ada', 'ada')).toMatchObject({ data: kept.data });
    expect((await create(second, 'Balu', 'balu')).data.createPet.pet.name).toBe('Balu');
    expect(posts()).toBe(3);
    await sandbox.close();
  },
  TIMEOUT_MS,
);

test(
  'with no room for the sandbox, a creation is a 500 with an Error and the rate-limit headers, until there is room',
  async () => {
    const sandbox = await startPetql(['sandbox', '--port', '0', '--sandbox-file', join(folder, 'animals.db')]);
    running.push(sandbox);
    const call = (body?: string) =>
      fetch(`${sandbox.address}/pets`, {
        headers: { authorization: `Bearer ${KEY}` },
        ...(body === undefined ? {} : { method: 'POST', body }),
      });
    fillDisk(sandbox);
    for (const remaining of ['299', '298']) {
      const answer = await call('{"name":"Ada","categoryId":1}');
      expect([answer.status, answer.headers.get('content-type')]).toEqual([500, 'application/json']);
      expect(await answer.json()).toEqual({
        code: 'internal_error',
        message: expect.stringMatching(/^The store failed: .+\.$/),
        status: 500,
      });
      expect(answer.headers.get('x-ratelimit-limit')).toBe('300');
      expect(answer.headers.get('x-ratelimit-remaining')).toBe(remaining);
      expect(Number(answer.headers.get('x-ratelimit-reset'))).toBeGreaterThan(Date.now() / 1000 - 1);
    }
    expect((await call()).status).toBe(200);
    freeDisk(sandbox);
    expect((await call('{"name":"Ada","categoryId":1}')).status).toBe(201);
  },
  TIMEOUT_MS,
);

test(
  'petql that was stopped starts again on a full disk, with all that it knew',
  async () => {
    const sandbox = await startRecordedSandbox();
    const args = [
      '--port',
      '0',
      '--plan',
      'pro',
      '--pet-api-url',
      sandbox.url,
      '--state-file',
      join(folder, 'state.db'),
    ];
    const first = await start(...args);
    const kept = await create(first, 'Ada', 'ada');
    first.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    const second = await startPetql(args, ON_FULL_DISK);
    running.push(second);
    expect(await create(second, 'Ada', 'ada')).toMatchObject({ data: kept.data });
    expect(await askDayUsed(second.address, KEY)).toBe(1);
    expect((await ask(second, '{ pets(limit: 1) { id } }')).errors).toBeUndefined();
    freeDisk(second);
    second.kill('SIGTERM');
    expect(await second.exited).toBe(0);
    const third = await start(...args);
    expect(await askDayUsed(third.address, KEY)).toBe(2);
    await sandbox.close();
  },
  TIMEOUT_MS,
);

test.each([
  ['--state-file', 'STATE_FILE'],
  ['--sandbox-file', 'SANDBOX_FILE'],
])('with no room for a new %s, the start ends in one line that says so', async (flag, variable) => {
  const file = join(folder, 'new.db');
  const { code, stdout, stderr } = await runPetql(['--port', '0', flag, file], ON_FULL_DISK);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe(
    `petql: ${flag} (${variable}): cannot use ${file}: its disk fails, or gives it no more room; make some, or name another file\n`,
  );
});

test('a full disk is told as that', () => {
  const database = new DatabaseSync(':memory:');
  database.exec('PRAGMA max_page_count = 1');
  const write = () => database.exec('CREATE TABLE state (name TEXT)');
  let why = '';
  try {
    write();
  } catch (error) {
    why = whyUnusable('state.db', error, 'what was spent');
  }
  expect(why).toBe('there is no room on its disk; make some, or name another file');
  database.close();
});

test(
  'with no room for the sandbox, no creation is answered that is not there after kill -9',
  async () => {
    const args = ['--sandbox-file', join(folder, 'animals.db')];
    const first = await start(...args);
    const ids = (answer: any): string => answer.data.createPet.pet.id;
    const before = ids(await create(first, 'Ada'));
    fillDisk(first);
    expect(codeOf(await create(first, 'Balu'))).toBe('OUTCOME_UNKNOWN');
    expect((await ask(first, '{ pets(limit: 1) { name } }')).data.pets).toEqual([{ name: 'Ada' }]);
    freeDisk(first);
    const after = ids(await create(first, 'Cleo'));
    await kill(first);
    const second = await start(...args);
    const { data } = await ask(second, `{ petsById(ids: ["${before}", "${after}"]) { name } }`);
    expect(data.petsById).toEqual([{ name: 'Ada' }, { name: 'Cleo' }]);
    expect(Number(after)).toBe(Number(before) + 1);
    expect(second.output.stderr).toBe('');
  },
  TIMEOUT_MS,
);
