import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway } from '../../src/index.ts';
import { PET_API_URL, startEmbedded } from '../support/start-gateway.ts';

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
      return name === 'now' ? Date.now() : performance.now();
    };
    const clock = { now: () => read('now'), elapsed: () => read('elapsed') };
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
  expect((await promisify(execFile)(process.execPath, words, { timeout: 50_000 })).stdout).toBe('TypeError\n');
});

test('a program ends at once when it closes its gateway, whatever Redis does', async () => {
  // Takes connections, and reads nothing: not even their end.
  const silent = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const program = (redisUrl: string) => `
    import { createGateway } from ${JSON.stringify(INDEX)};
    const gateway = createGateway(${JSON.stringify({ petApiUrl, redisUrl })});
    await new Promise((resolve) => setTimeout(resolve, 300));
    let ticks = 0;
    setInterval(() => (ticks += 1), 10).unref();
    process.on('exit', () => console.log(ticks));
    await gateway.close();
  `;
  const urls = [
    `redis://127.0.0.1:${port}`,
    'redis://127.0.0.1:1',
    'redis://127.0.0.1:1,redis://127.0.0.1:2',
    'redis+sentinel://127.0.0.1:1/store',
    `redis+sentinel://127.0.0.1:${port},127.0.0.1:1/store`,
    // Packets to it are lost (RFC 5737).
    'redis+sentinel://192.0.2.1/store',
  ];
  // Ticks of the program's own timer, of which a busy machine makes fewer and not more.
  const ended = urls.map(async (url) => {
    const words = ['--input-type=module', '--eval', program(url)];
    return Number((await promisify(execFile)(process.execPath, words, { timeout: 50_000 })).stdout);
  });
  try {
    // ioredis keeps a process for two seconds more.
    for (const ticks of await Promise.all(ended)) expect(ticks).toBeLessThan(150);
  } finally {
    silent.close();
  }
});

test('a gateway with a state file may be closed again, and is closed once', async () => {
  const gateway = createGateway({ petApiUrl, stateFile });
  const closing = gateway.close();
  expect(gateway.close()).toBe(closing);
  await closing;
  await expect(gateway.close()).resolves.toBeUndefined();
  await createGateway({ petApiUrl, stateFile }).close();
});

test('a gateway is closed at the end of its block, also where that throws', async () => {
  const used = async () => {
    await using gateway = createGateway({ petApiUrl, stateFile });
    await gateway.ready();
    throw new Error('of the block');
  };
  await expect(used()).rejects.toThrow('of the block');
  // A gateway that is open would keep the file to those with its own key secret.
  await createGateway({ petApiUrl, stateFile, keySecret: 'another secret of 16' }).close();
});

test('after ready() the first operation takes no longer than later ones, and counts, calls and logs nothing before it', async () => {
  const program = `
    import { createGateway } from ${JSON.stringify(INDEX)};
    import { createSandbox } from ${JSON.stringify(new URL('../../src/program/sandbox/sandbox.ts', import.meta.url).href)};
    const lines = [];
    const { listen, calls, close } = createSandbox();
    const petApiUrl = await listen();
    await (await fetch(petApiUrl + '/pets', { headers: { authorization: 'Bearer demo-pro' } })).text();
    const log = { info: (...line) => lines.push(line), warn() {}, error() {}, debug: (...line) => lines.push(line) };
    const gateway = createGateway({ petApiUrl, log });
    if (process.argv.includes('ready')) await gateway.ready();
    const before = [lines.length, calls.length];
    const started = process.cpuUsage();
    await gateway.execute({ document: '{ pets { id name } }', apiKey: 'demo-free' });
    const { user, system } = process.cpuUsage(started);
    await gateway.close();
    await close();
    console.log(JSON.stringify({ before, tookUs: user + system }));
  `;
  const run = async (...words: string[]) => {
    const args = ['--input-type=module', '--eval', program, ...words];
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout) as {
      before: number[];
      tookUs: number;
    };
  };
  // Where other work takes the processor in between, a process uses more CPU for the same: of two, one is not disturbed.
  const [cold, ...ready] = await Promise.all([run(), run('ready'), run('ready')]);
  for (const { before } of ready) expect(before).toEqual([0, 1]);
  expect(Math.min(...ready.map(({ tookUs }) => tookUs))).toBeLessThan(0.6 * cold.tookUs);
});

test('two gateways whose calls go to dispatchers share no quota, no rejected key, no key of the server, and no end', async () => {
  await using one = await startEmbedded({ petApiKey: 'demo-pro' });
  await using other = await startEmbedded({ petApiUrl: PET_API_URL, dispatcher: one.petApi.connect() });
  const document = '{ pets(limit: 1) { id } }';
  const used = async ({ execute }: Gateway) => {
    const quota = { document: '{ rateLimit { windows { used } } }', apiKey: 'demo-free' };
    const { data } = await execute<{ rateLimit: { windows: { used: number }[] } }>(quota);
    return data?.rateLimit.windows.map((window) => window.used);
  };
  await one.execute({ document, apiKey: 'demo-free' });
  expect([await used(one), await used(other)]).toEqual([[1, 1], []]);

  for (const gateway of [one, one, other, other]) await gateway.execute({ document, apiKey: 'stray' });
  expect(one.petApi.log.filter(({ key }) => key === 'stray')).toHaveLength(2);
  expect((await other.execute({ document })).errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  await one.close();
  expect((await other.execute({ document, apiKey: 'demo-business' })).errors).toBeUndefined();
});
