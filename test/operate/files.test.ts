import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { askDayUsed, post } from '../support/client.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import type { PetqlProcess, RunOptions } from '../support/run-petql.ts';
import { createTestPetApi, startEmbedded } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import { until } from '../support/until.ts';

const KEY = 'demo-pro';
const petApiUrl = 'http://127.0.0.1:9/v1';

let root: string;
/** A good state file, of some pages. */
let good: Buffer;
let folder: string;
let file: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'petql-files-'));
  const stateFile = join(root, 'good.db');
  const gateway = await startEmbedded({ stateFile, plan: 'business' });
  for (let index = 0; index < 60; index += 1) {
    const document = `mutation { createPet(input: { name: "Pet", categoryId: 1, idempotencyKey: "${index}" }) { pet { id } } }`;
    expect((await gateway.execute({ document, apiKey: 'demo-business' })).errors).toBeUndefined();
  }
  await gateway.execute({ document: '{ pets { id } }', apiKey: KEY });
  await gateway.close();
  good = await readFile(stateFile);
});
afterAll(() => rm(root, { recursive: true }));
beforeEach(async () => {
  folder = await mkdtemp(join(root, 'test-'));
  file = join(folder, 'state.db');
  await writeFile(file, good);
});

/** The program that uses the file: the sandbox alone opens its file as it does under the gateway, and starts faster. */
const PROGRAM = { '--state-file': ['--pet-api-url', petApiUrl], '--sandbox-file': ['sandbox'] };

/** The one line on standard error of a start that fails. */
async function failedStart(flag: keyof typeof PROGRAM, path: string, options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runPetql([...PROGRAM[flag], '--port', '0', flag, path], options);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^petql: --(state|sandbox)-file [^\n]+\n$/);
  return stderr;
}

test.each<[string, () => Promise<string> | string, RegExp]>([
  ['is cut short', () => spoilt(good.subarray(0, good.length / 2)), /malformed/],
  ['is damaged', () => spoilt(Buffer.from(good).fill(7, 8_192, 12_000)), /damaged/],
  ['is something else', () => spoilt(Buffer.from('{ "notes": "none" }'.repeat(300))), /not a database/],
  // The user_version (SQLite's file format, section 1.3). An older petql would misread it.
  [
    'is of a newer petql',
    () => spoilt(Buffer.concat([good.subarray(0, 60), UINT32_999, good.subarray(64)])),
    /newer format/,
  ],
  ['is a folder', () => folder, /Name a new file/],
  ['is a pipe', makePipe, /Name a new file/],
  ['is a device', () => '/dev/null', /Name a new file/],
])('a state file stops the start with one line, and is unchanged, where it %s', async (_name, make, line) => {
  const stateFile = await make();
  const read = () => (stateFile === file ? readFile(file) : undefined);
  const before = await read();
  const message = failureOf(() => createGateway({ petApiUrl, stateFile }));
  expect(message).toMatch(/^createGateway: stateFile: [^\n]+$/);
  expect(message).toMatch(line);
  expect(await read()).toEqual(before);
});

const UINT32_999 = Buffer.from([0, 0, 3, 231]);

async function spoilt(bytes: Buffer): Promise<string> {
  await writeFile(file, bytes);
  return file;
}

function failureOf(start: () => unknown): string {
  try {
    start();
  } catch (error) {
    return (error as Error).message;
  }
  return 'it started';
}

/** Root may write everywhere, unless it gives that up. */
const WITHOUT_RIGHTS = process.getuid?.() === 0 ? ['setpriv', '--inh-caps=-all', '--bounding-set=-all'] : [];
/** As on a full disk: no file of the process grows (EFBIG). */
const ON_FULL_DISK = ['prlimit', '--fsize=1:unlimited'];

test('petql does not start with a state file that cannot be written', async () => {
  await chmod(file, 0o444);
  expect(await failedStart('--state-file', file, { under: WITHOUT_RIGHTS })).toMatch(/permission denied/);
});

test('petql does not start with a sandbox file that is a pipe', async () => {
  expect(await failedStart('--sandbox-file', makePipe())).toMatch(/Name a new file/);
});

describe.each(['--state-file', '--sandbox-file'] as const)('petql does not start where %s', (flag) => {
  test('is in a folder that cannot be written', async () => {
    const shut = join(folder, 'shut');
    await mkdir(shut);
    await copyFile(file, join(shut, 'there.db'));
    await chmod(shut, 0o555);
    expect(await failedStart(flag, join(shut, 'there.db'), { under: WITHOUT_RIGHTS })).toMatch(
      /readonly|unable to open/,
    );
  });

  test('is new on a full disk', async () => {
    expect(await failedStart(flag, join(folder, 'new.db'), { under: ON_FULL_DISK })).toMatch(/disk I\/O|is full/);
  });
});

function makePipe(): string {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

test('a state file is for one process, is free after a failed start, and opens with its own key secret alone', async () => {
  const options = { petApiUrl, stateFile: join(folder, 'new.db'), keySecret: 'the first key secret' };
  const gateway = createGateway(options);
  const elsewhere = await runPetql(['--port', '0', '--pet-api-url', petApiUrl, '--state-file', options.stateFile]);
  expect([elsewhere.code, elsewhere.stderr]).toEqual([
    1,
    expect.stringMatching(/--state-file .*: .*locked.*other process/),
  ]);
  await gateway.close();
  const other = createGateway({ ...options, keySecret: 'another key secret' });
  await expect(other.ready()).rejects.toThrow(/key secret/);
  expect(codesOf(await other.execute({ document: '{ pets { id } }', apiKey: KEY }))).toEqual(['INTERNAL_SERVER_ERROR']);
  await other.close();
  await createGateway(options).close();
});

test.each([
  ['is no JSON', () => '{'],
  ['has a count without a slot', (text: string) => text.replace('"counts":[', '"counts":[1,')],
  ['has its slots in no order', (text: string) => text.replace(/"slots":\[(\d+)/, '"slots":[$1,1')],
  ['has another total', (text: string) => text.replace(/"total":(\d+)/, '"total":1$1')],
])('a key whose account %s gets data, and the log says so once', async (_what, damage) => {
  {
    using database = new DatabaseSync(file);
    const accounts = database.prepare("SELECT name, text FROM documents WHERE name LIKE 'account:%'").all();
    for (const { name, text } of accounts) {
      const damaged = damage(String(text));
      expect(damaged).not.toBe(text);
      database.prepare('UPDATE documents SET text = ? WHERE name = ?').run(damaged, String(name));
    }
  }
  const warnings: string[] = [];
  const log = { info() {}, warn: (_details: object, message: string) => void warnings.push(message), error() {} };
  const gateway = await startEmbedded({ stateFile: file, plan: 'business', log });
  const document = '{ pets { id } }';
  const answers = [await gateway.execute({ document, apiKey: 'demo-business' })];
  answers.push(await gateway.execute({ document, apiKey: KEY }));
  await gateway.close();
  expect(answers.flatMap(codesOf)).toEqual([]);
  expect(warnings).toEqual(['a document in the store cannot be read']);
});

test('a made-up key that reads its quota is not stored', async () => {
  const gateway = createGateway({ petApiUrl, stateFile: file, plan: 'pro' });
  const operation = { document: '{ rateLimit { windows { limit } } }', apiKey: 'made-up' };
  const { data } = await gateway.execute(operation);
  expect(data?.['rateLimit']).toEqual({ windows: [{ limit: 300 }, { limit: 10_000 }] });
  await gateway.execute({ ...operation, dryRun: true });
  await gateway.close();
  using database = new DatabaseSync(file);
  const found = database.prepare("SELECT name FROM documents WHERE name LIKE 'account:%'").all();
  // Those of the keys that made the file.
  expect(found).toHaveLength(2);
});

test('a state file of an older format starts again', async () => {
  const path = join(folder, 'old.db');
  const database = new DatabaseSync(path);
  database.exec('CREATE TABLE state (name TEXT); PRAGMA user_version = 1');
  database.close();
  const gateway = createGateway({ petApiUrl, stateFile: path });
  await expect(gateway.close()).resolves.toBeUndefined();
});

describe('names that SQLite opens in memory', () => {
  const before = process.cwd();
  beforeEach(() => process.chdir(folder));
  afterEach(() => process.chdir(before));

  test.each([':memory:', 'file::memory:', 'file:pets?mode=memory'])('are files: %s', async (name) => {
    await createGateway({ petApiUrl, stateFile: name }).close();
    expect(existsSync(join(folder, name))).toBe(true);
    await rm(join(folder, name));
    await createSandbox({ file: name }).close();
    expect(existsSync(join(folder, name))).toBe(true);
  });
});

describe('a full disk', () => {
  const limitFiles = ({ pid }: PetqlProcess, bytes: string) =>
    execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
  const ask = ({ address }: PetqlProcess, query: string) =>
    post(address, query, { headers: { authorization: `Bearer ${KEY}`, 'cache-control': 'no-cache' } });
  const create = (petql: PetqlProcess, name: string, key?: string) =>
    ask(
      petql,
      `mutation { createPet(input: { name: "${name}", categoryId: 1${key ? `, idempotencyKey: "${key}"` : ''} }) { pet { id name } } }`,
    );

  async function start(args: readonly string[], options: RunOptions = {}): Promise<PetqlProcess> {
    const petql = await startPetql(['--port', '0', '--plan', 'pro', ...args], options);
    onTestFinished(async () => {
      petql.kill('SIGKILL');
      await petql.exited;
    });
    return petql;
  }

  test('keeps petql from sending what it could not store, and costs nothing once there is room', async () => {
    const petApi = createTestPetApi();
    const server = await petApi.listen();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const posts = () => petApi.log.filter(({ method }) => method === 'POST').length;
    const args = ['--pet-api-url', server.url, '--state-file', join(folder, 'new.db')];
    const first = await start(args);
    const { data } = await create(first, 'Ada', 'ada');
    limitFiles(first, '1');
    expect(codesOf(await create(first, 'Balu', 'balu'))).toEqual(['IDEMPOTENCY_UNAVAILABLE']);
    expect(posts()).toBe(1);
    // There is nothing to store of these.
    expect((await create(first, 'Cleo')).errors).toBeUndefined();
    expect((await ask(first, '{ pets(limit: 1) { id } }')).data?.['pets']).toHaveLength(1);
    expect((await create(first, 'Ada', 'ada')).data).toEqual(data);
    expect(first.output.stderr.match(/"level":"error"/g)).toHaveLength(1);
    limitFiles(first, 'unlimited');
    await until(async () => !codesOf(await create(first, 'Balu', 'balu')).includes('IDEMPOTENCY_UNAVAILABLE'));
    first.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    // It starts on a full disk too.
    const second = await start(args, { under: ON_FULL_DISK });
    expect(await askDayUsed(second.address, KEY)).toBe(petApi.log.length);
    expect((await create(second, 'Ada', 'ada')).data).toEqual(data);
    expect((await create(second, 'Balu', 'balu')).data?.['createPet'].pet.name).toBe('Balu');
    expect(posts()).toBe(3);
  });

  test('costs no count of a key, where there is room as petql ends', async () => {
    const petApi = createTestPetApi();
    const server = await petApi.listen();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const args = ['--pet-api-url', server.url, '--state-file', join(folder, 'new.db')];
    const first = await start(args);
    await create(first, 'Ada');
    limitFiles(first, '1');
    await create(first, 'Balu');
    limitFiles(first, 'unlimited');
    first.kill('SIGTERM');
    expect(await first.exited).toBe(0);
    expect(await askDayUsed((await start(args)).address, KEY)).toBe(2);
    expect(petApi.log).toHaveLength(2);
  });

  test('makes a create in the sandbox fail, and loses none that was answered, after kill -9 too', async () => {
    const args = ['--sandbox-file', join(folder, 'pets.db')];
    const first = await start(args);
    const id: string = (await create(first, 'Ada')).data?.['createPet'].pet.id;
    limitFiles(first, '1');
    expect(codesOf(await create(first, 'Balu'))).toEqual(['OUTCOME_UNKNOWN']);
    expect((await ask(first, '{ pets(limit: 1) { name } }')).data?.['pets']).toEqual([{ name: 'Ada' }]);
    limitFiles(first, 'unlimited');
    expect((await create(first, 'Cleo')).data?.['createPet'].pet.id).toBe(String(Number(id) + 1));
    first.kill('SIGKILL');
    await first.exited;
    const second = await start(args);
    const { data } = await ask(second, `{ petsById(ids: ["${id}", "${Number(id) + 1}"]) { name } }`);
    expect(data?.['petsById']).toEqual([{ name: 'Ada' }, { name: 'Cleo' }]);
  });
});
