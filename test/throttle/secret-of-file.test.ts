import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStateFile } from '../../src/store/state-file.ts';
import type { OpenStateFile } from '../../src/store/state-file.ts';
import { createCallerNames } from '../../src/throttle/caller-names.ts';
import { secretOfFile } from '../../src/throttle/secret-of-file.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';

const ONE = 'the one secret of the test';
const OTHER = 'another secret of the test';

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-secret-'));
  path = join(folder, 'state.db');
});
afterEach(() => rm(folder, { recursive: true }));

function secretWith(given?: string): string {
  const file = openStateFile(path, Date.now);
  try {
    return secretOfFile(file, given);
  } finally {
    file.close();
  }
}

test('the secret given is the one, as long as it stays the same', () => {
  expect([secretWith(ONE), secretWith(ONE)]).toEqual([ONE, ONE]);
  expect(() => secretWith(OTHER)).toThrow(/kept with another key secret than the one given; .*Give that one, or name/);
  expect(() => secretWith()).toThrow(/kept with a key secret, and none is given; .*Give it, or name another file/);
  expect(secretWith(ONE)).toBe(ONE);
});

test('without one given, the file keeps its own, and none but that fits', () => {
  const own = secretWith();
  expect(secretWith()).toBe(own);
  expect(secretWith(own)).toBe(own);
  expect(() => secretWith(ONE)).toThrow(
    /Give that one, or none where none was given: it is in the file, or name another file/,
  );
  expect(secretWith()).toBe(own);
});

test('a file of an older version, which does not say what it was kept with, is kept with the secret given', () => {
  const file = openStateFile(path, Date.now);
  file.keySecret(() => OTHER);
  file.close();
  expect(secretWith(ONE)).toBe(ONE);
  expect(secretWith(ONE)).toBe(ONE);
  expect(() => secretWith()).toThrow(/kept with a key secret, and none is given/);
});

test('a file on a full disk is opened all the same', () => {
  const full = {
    get: () => undefined,
    setAll() {
      throw new Error('database or disk is full');
    },
  };
  expect(secretOfFile(full as unknown as OpenStateFile, ONE)).toBe(ONE);
});

test('a file that was long unused still knows what it was kept with, and tells nothing of it', async () => {
  secretWith(ONE);
  const file = openStateFile(path, () => Date.now() + 30 * 86_400_000);
  file.forget(86_400_000);
  expect(() => secretOfFile(file, OTHER)).toThrow(/another key secret/);
  file.close();
  const bytes = await readFile(path, 'latin1');
  expect(bytes).not.toContain(ONE);
  expect(bytes).not.toContain(createCallerNames(ONE)('a key'));
});

// All that is kept goes by names hashed with it: with another, every plan was spent once more, and animals were added twice.
test('petql does not start over a state file with another secret, and says what would be forgotten', async () => {
  const args = ['--port', '0', '--sandbox', '--state-file', path];
  const first = await startPetql(args, { env: { KEY_SECRET: ONE } });
  first.kill('SIGKILL');
  await first.exited;
  const { code, stdout, stderr } = await runPetql(args, { env: { KEY_SECRET: OTHER } });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe(
    `petql: --state-file (STATE_FILE): cannot use ${path}: it was kept with another key secret than the one given; ` +
      'what was spent today, and what came of creations with an idempotencyKey, would be forgotten. ' +
      'Give that one, or name another file\n',
  );
});
