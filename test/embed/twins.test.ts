import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as library from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import type { PetApi } from '../support/pet-api/pet-api.ts';
import { createTestPetApi } from '../support/start-gateway.ts';

const KEY = 'shared-key';
const PER_MINUTE = 12;
const PLAN = { plan: `${PER_MINUTE}/1000`, maxWaitMs: 0 } as const;
const SOURCES = new URL('../../src/', import.meta.url).href;

/** The library as a second bundle of a framework has it: each of its modules is evaluated once more. */
let twin: typeof library;
let petApi: PetApi;
let petApiUrl: string;
let folder: string;
let closing: AsyncDisposableStack;

beforeAll(async () => {
  const hooks = registerHooks({
    resolve(name, context, next) {
      const found = next(name, context);
      const isOfTwin = name.endsWith('?twin') || context.parentURL?.endsWith('?twin');
      if (!isOfTwin || !found.url.startsWith(SOURCES) || found.url.endsWith('?twin')) return found;
      return { ...found, url: `${found.url}?twin` };
    },
  });
  twin = (await import(`${SOURCES}index.ts?twin`)) as typeof library;
  hooks.deregister();
  folder = await mkdtemp(join(tmpdir(), 'petql-twins-'));
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(async () => {
  closing = new AsyncDisposableStack();
  petApi = createTestPetApi({ keys: { [KEY]: { perMinute: PER_MINUTE, perDay: 1_000 } } });
  petApiUrl = closing.use(await petApi.listen()).url;
});
afterEach(() => closing.disposeAsync());

function start({ createGateway }: typeof library, options: Partial<GatewayOptions> = {}) {
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({ petApiUrl, log, ...PLAN, ...options });
  closing.defer(() => gateway.close());
  return { ...gateway, lines };
}

let lastId = 1_000_000;

/** Reads a pet that no list shows. Returns the code of its error. */
async function readNew({ execute }: Gateway, apiKey = KEY): Promise<string | undefined> {
  const document = `{ pet(id: "${(lastId += 1)}") { id } }`;
  return (await execute({ document, apiKey })).errors?.[0]?.extensions.code;
}

async function used({ execute }: Gateway): Promise<number | undefined> {
  const document = '{ rateLimit { windows { used } } }';
  const { data } = await execute<{ rateLimit: { windows: { used: number }[] } }>({ document, apiKey: KEY });
  return data?.rateLimit.windows[0]?.used;
}

test('the module is there twice', () => {
  expect(twin.createGateway).not.toBe(library.createGateway);
});

describe.each([
  ['in memory', () => ({})],
  ['over one state file', () => ({ stateFile: join(folder, `${lastId}.db`) })],
])('two gateways of one process %s', (_where, optionsOf) => {
  test.each([
    ['of one evaluation of the module', () => library],
    ['of two', () => twin],
  ])('%s have one count of a key: all of the plan and no 429', async (_what, other) => {
    const options = optionsOf();
    const [one, two] = [start(library, options), start(other(), options)];
    for (let turn = 0; turn < 10; turn += 1) await Promise.all([readNew(one), readNew(two)]);
    expect(await Promise.all([readNew(one), readNew(two)])).toEqual(['RATE_LIMITED', 'RATE_LIMITED']);
    expect(petApi.log.map(({ status }) => status)).not.toContain(429);
    expect(petApi.log).toHaveLength(PER_MINUTE);
    expect([await used(one), await used(two)]).toEqual([PER_MINUTE, PER_MINUTE]);
    expect([one, two].map(({ lines }) => lines.find(({ gateways }) => gateways))).toMatchObject([
      undefined,
      { gateways: 2, level: 30 },
    ]);
  });

  test('create one pet for one idempotency key', async () => {
    const options = optionsOf();
    const input = { name: 'Momo', categoryId: '3', idempotencyKey: 'once' };
    const document = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }';
    const [one, two] = [start(library, options), start(twin, options)];
    const create = ({ execute }: Gateway) => execute({ document, apiKey: KEY, variables: { input } });
    const [first, second] = [await create(one), await create(two)];
    expect(first.data).toMatchObject({ createPet: { pet: { id: expect.any(String) } } });
    expect(second.data).toEqual(first.data);
    expect(petApi.log).toHaveLength(1);
  });

  test('go on when one of them closes, and forget with the last one what no file keeps', async () => {
    const options = optionsOf();
    const [one, two] = [start(library, options), start(twin, options)];
    await readNew(one);
    await one.close();
    await one.close();
    await readNew(two);
    expect(await used(two)).toBe(petApi.log.length);
    await two.close();
    expect(await used(start(library, options))).toBe('stateFile' in options ? petApi.log.length : 0);
  });

  test('of several options count by the plan of the last one', async () => {
    const options = optionsOf();
    const [one, two] = [start(library, { ...options, plan: '5/1000' }), start(twin, options)];
    for (let turn = 0; turn < 10; turn += 1) await readNew(turn % 2 === 0 ? one : two);
    expect(petApi.log.length).toBeGreaterThanOrEqual(10);
  });
});

/** Reads until a key has no call left, by two gateways of one process whose file cannot grow any more. */
const ON_FULL_DISK = `
  import { execFileSync } from 'node:child_process';
  const [, index, options] = process.argv;
  const { createGateway } = await import(index);
  const gateways = [1, 2].map(() => createGateway({ ...JSON.parse(options), log: { info() {}, warn() {}, error() {} } }));
  const read = ({ execute }, id) => execute({ document: \`{ pet(id: "\${id}") { id } }\`, apiKey: '${KEY}' });
  await read(gateways[0], 1_000_000);
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=1:unlimited']);
  for (let turn = 1; turn < ${2 * PER_MINUTE}; turn += 1) await read(gateways[turn % 2], 1_000_000 + turn);
  await Promise.all(gateways.map((gateway) => gateway.close()));
`;

test('two gateways of one process have one count of a key, where their state file cannot be written', async () => {
  const options = { petApiUrl, stateFile: join(folder, 'full.db'), ...PLAN };
  const args = ['--input-type=module', '--eval', ON_FULL_DISK, `${SOURCES}index.ts`, JSON.stringify(options)];
  await promisify(execFile)(process.execPath, args);
  expect(petApi.log).toHaveLength(PER_MINUTE);
  expect(petApi.log.map(({ status }) => status)).not.toContain(429);
});

test('two gateways of one process share a state file that one of them names by a link', async () => {
  const [real, linked] = [join(folder, 'real'), join(folder, 'linked')];
  await mkdir(real);
  await symlink(real, linked);
  const one = start(library, { stateFile: join(real, 'state.db') });
  const two = start(twin, { stateFile: join(linked, 'state.db') });
  await readNew(one);
  await symlink(join(real, 'state.db'), join(folder, 'link.db'));
  const three = start(library, { stateFile: join(folder, 'link.db') });
  await readNew(three);
  expect(petApi.log.length).toBeGreaterThan(1);
  expect(await Promise.all([one, two, three].map(used))).toEqual(Array(3).fill(petApi.log.length));
});

test.each<[string, Partial<GatewayOptions>]>([
  ['for another pet API', { petApiUrl: 'http://127.0.0.1:9/v1' }],
  ['with another key secret', { keySecret: 'another secret of 16' }],
])('a second gateway %s says that its state file is in use, and leaves it alone', async (_what, other) => {
  const stateFile = join(folder, `${lastId}-one.db`);
  const one = start(library, { stateFile });
  await readNew(one);
  for (const copy of [library, twin]) {
    expect(() => start(copy, { stateFile, ...other })).toThrow(
      /^createGateway: stateFile: another gateway of this process uses the file, .* Name another file\.$/,
    );
  }
  await one.close();
  expect(await used(start(twin, { stateFile }))).toBe(petApi.log.length);
});

test('gateways for other pet APIs or with other key secrets share nothing', async () => {
  const others = [{ keySecret: 'another secret of 16' }, { petApiUrl: petApiUrl.replace('/v1', '/v2') }];
  const [one, ...rest] = [{}, ...others].map((options) => start(library, options));
  if (one) await readNew(one);
  expect(await Promise.all(rest.map(used))).toEqual([0, 0]);
});
