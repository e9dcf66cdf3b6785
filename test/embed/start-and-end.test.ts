import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createGateway } from '../../src/index.ts';

const petApiUrl = 'http://127.0.0.1:9/v1';
const INDEX = new URL('../../src/index.ts', import.meta.url).href;

let folder: string;
let stateFile: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-start-'));
  stateFile = join(folder, 'state.db');
});
afterEach(() => rm(folder, { recursive: true }));

test('a gateway that cannot be made for its documents leaves the state file to the next one', async () => {
  const trustedDocuments = { abc: 'query { nope }' };
  expect(() => createGateway({ petApiUrl, stateFile, trustedDocuments })).toThrow('trustedDocuments');
  await createGateway({ petApiUrl, stateFile }).close();
});

test('wherever the making of a gateway fails, nothing stays open', async () => {
  const failures = new Set<string>();
  for (let readings = 0; ; readings += 1) {
    let left = readings;
    const read = (name: 'elapsed' | 'now') => {
      left -= 1;
      if (left < 0) throw new Error('this clock stands still');
      return systemClock[name]();
    };
    const clock = { ...systemClock, now: () => read('now'), elapsed: () => read('elapsed') };
    try {
      const gateway = createGateway({ petApiUrl, stateFile, clock, admin: true });
      left = Infinity;
      await gateway.close();
      break;
    } catch (error) {
      failures.add(`${readings}: ${(error as Error).message}`);
    }
  }
  expect(failures.size).toBeGreaterThan(1);
  expect([...failures].filter((failure) => !failure.includes('this clock stands still'))).toEqual([]);
});

test('a program whose gateway over Redis cannot be made ends by itself', async () => {
  const options = { petApiUrl, redisUrl: 'redis://127.0.0.1:1', trustedDocuments: { abc: 'query { nope }' } };
  const program = `
    import { createGateway } from ${JSON.stringify(INDEX)};
    try { createGateway(${JSON.stringify(options)}); } catch (error) { console.log(error.name); }
  `;
  const words = ['--input-type=module', '--eval', program];
  expect((await promisify(execFile)(process.execPath, words, { timeout: 15_000 })).stdout).toBe('TypeError\n');
});

test('a gateway with a state file may be closed again, and is closed once', async () => {
  const gateway = createGateway({ petApiUrl, stateFile });
  const closing = gateway.close();
  expect(gateway.close()).toBe(closing);
  await closing;
  await expect(gateway.close()).resolves.toBeUndefined();
  await createGateway({ petApiUrl, stateFile }).close();
});
