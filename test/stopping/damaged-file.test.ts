import { execFileSync } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStateFile } from '../../src/store/state-file.ts';
import { runPetql } from '../support/run-petql.ts';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-damaged-'));
  file = join(folder, 'state.db');
  const state = openStateFile(file, () => 0);
  const names = Array.from({ length: 200 }, (_, index) => `name ${index}`);
  state.setAll(names.map((name) => [name, name.repeat(20)]));
  state.close();
});
afterEach(() => rm(folder, { recursive: true }));

test.each<[string, (bytes: Buffer) => Buffer, RegExp]>([
  ['is cut short', (bytes) => bytes.subarray(0, 20_000), /it is damaged; move it away to begin anew/],
  ['is spoilt in its midst', (bytes) => bytes.fill(7, 8_192, 12_000), /it is damaged; move it away to begin anew/],
  ['is something else', () => Buffer.from('{ "notes": "none" }'.repeat(300)), /it is something else; name another, or/],
])('a state file that %s stops the start with one clear line, and is left as it is', async (_name, spoil, line) => {
  const bytes = spoil(await readFile(file));
  await writeFile(file, bytes);
  const { code, stdout, stderr } = await runPetql(['--port', '0', '--sandbox', '--state-file', file]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^petql: --state-file \(STATE_FILE\): cannot use [^\n]+\n$/);
  expect(stderr).toMatch(line);
  expect(await readFile(file)).toEqual(bytes);
});

test.each<[string, string, () => Promise<string>]>([
  ['--state-file', 'a folder', makeFolder],
  ['--state-file', 'a pipe', makePipe],
  ['--state-file', 'a device', () => Promise.resolve('/dev/null')],
  ['--sandbox-file', 'a folder', makeFolder],
  ['--sandbox-file', 'a pipe', makePipe],
])('a %s that is %s stops the start with a line that says so', async (flag, _name, make) => {
  const path = await make();
  const { code, stdout, stderr } = await runPetql(['--port', '0', '--sandbox', flag, path]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^petql: --(state|sandbox)-file \([^\n]+: it is no plain file; name another\n$/);
});

async function makeFolder(): Promise<string> {
  await mkdir(join(folder, 'folder'));
  return join(folder, 'folder');
}

function makePipe(): Promise<string> {
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  return Promise.resolve(join(folder, 'pipe'));
}

test('a state file that cannot be written stops the start with one clear line', async () => {
  await chmod(file, 0o444);
  expect(await lineOfAnybody('--state-file', file)).toMatch(/it cannot be written; give it and its folder to[^\n]+\n$/);
});

// SQLite says "attempt to write a readonly database" of it, and whoever looked at the file saw that it can be written.
test.each(['--state-file', '--sandbox-file'])(
  'a %s that may be written, in a folder that may not, stops the start with a line that says so',
  async (flag) => {
    const shut = join(folder, 'shut');
    await mkdir(shut);
    await copyFile(file, join(shut, 'there.db'));
    await chmod(shut, 0o555);
    expect(await lineOfAnybody(flag, join(shut, 'there.db'))).toMatch(
      /: its folder may not be written, and SQLite makes files beside it; give the folder to[^\n]+\n$/,
    );
  },
);

/** What is said to a user without rights, whose start it stops. */
async function lineOfAnybody(flag: string, path: string): Promise<string> {
  // Root may write everywhere, unless it gives that up.
  const under = process.getuid?.() === 0 ? ['setpriv', '--inh-caps=-all', '--bounding-set=-all'] : [];
  const { code, stdout, stderr } = await runPetql(['--port', '0', '--sandbox', flag, path], { under });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^petql: --(state|sandbox)-file \([^\n]+\n$/);
  return stderr;
}

test('a damaged file is not held open, so that it can be put right', async () => {
  const bytes = await readFile(file);
  await writeFile(file, bytes.subarray(0, 20_000));
  expect(() => openStateFile(file, () => 0)).toThrow(/malformed/);
  await writeFile(file, bytes);
  const state = openStateFile(file, () => 0);
  expect(state.get('name 7')).toBe('name 7'.repeat(20));
  state.close();
});

// An older petql would misread it, and spend what the newer one has spent.
test('a state file of a newer petql stops the start with one clear line, and is left as it is', async () => {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA user_version = 999');
  database.close();
  const bytes = await readFile(file);
  const { code, stderr } = await runPetql(['--port', '0', '--sandbox', '--state-file', file]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^petql: --state-file [^\n]+it was written by a newer petql; use that one, or move[^\n]+\n$/);
  expect(await readFile(file)).toEqual(bytes);
});

test('a state file of before there were formats is taken as it is, and has one then', () => {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA user_version = 0');
  database.close();
  const state = openStateFile(file, () => 0);
  expect(state.get('name 7')).toBe('name 7'.repeat(20));
  state.close();
  const again = new DatabaseSync(file);
  expect(again.prepare('PRAGMA user_version').get()).toEqual({ user_version: 1 });
  again.close();
});
