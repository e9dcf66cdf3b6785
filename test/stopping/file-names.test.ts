import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';

const before = process.cwd();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-names-'));
  process.chdir(folder);
});
afterEach(async () => {
  process.chdir(before);
  await rm(folder, { recursive: true });
});

// SQLite opens databases in memory under these names: what was spent was gone with the process, and nobody was told.
const NAMES = [':memory:', 'file::memory:', 'file:animals?mode=memory'];

test.each(NAMES)('a state file named %s is a file', async (stateFile) => {
  await createGateway({ petApiUrl: 'http://127.0.0.1:9/v1', stateFile }).close();
  expect(existsSync(join(folder, stateFile))).toBe(true);
});

test.each(NAMES)('a sandbox file named %s is a file', async (file) => {
  await (await startSandbox({ file })).close();
  expect(existsSync(join(folder, file))).toBe(true);
});
