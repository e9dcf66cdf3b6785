import { afterAll, beforeAll, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { post } from '../support/client.ts';
import { fails, on } from '../support/pet-api/fault.ts';
import type { PetApi } from '../support/pet-api/pet-api.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { createTestPetApi } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import { until } from '../support/until.ts';

/** Little more than petql takes when it has started: room for some 700 callers, a tenth as many of made-up keys. */
const SMALL_HEAP = ['--max-old-space-size=56', '--max-semi-space-size=2'];
const AT_ONCE = 40;
const PATIENT = ['--max-age-ms', '60000', '--upstream-timeout-ms', '60000', '--log-level', 'silent'];
const PETS = '{ pets(limit: 100) { name } }';
const QUOTA = '{ rateLimit { plan } }';
const CREATE =
  'mutation Create { createPet(input: { name: "Neo", categoryId: 1, idempotencyKey: "one" }) { pet { name } } }';

let resources: AsyncDisposableStack;
let petApi: PetApi;
let petql: PetqlProcess;

beforeAll(async () => {
  resources = new AsyncDisposableStack();
  const plan = { ...PLANS.business, windows: 'fixed', tells: 'changing' } as const;
  petApi = createTestPetApi({ pets: [], planOf: (key) => (key.startsWith('good') ? plan : undefined) });
  const { url } = resources.use(await petApi.listen());
  petql = await startPetql(['--port', '0', '--pet-api-url', url, ...PATIENT], {
    nodeOptions: SMALL_HEAP,
  });
});
afterAll(async () => {
  petql.kill('SIGTERM');
  await resources.disposeAsync();
  // It did not run out of memory.
  expect(await petql.exited).toBe(0);
});

const ask = (document: string, key = 'good') =>
  post(petql.address, document, { headers: { authorization: `Bearer ${key}` } });

/** Sends the operation with each of many keys, whose names begin with `name`. Returns the error codes. */
async function flood(document: string, name: string, keys = 280): Promise<string[]> {
  const codes = new Set<string>();
  for (let sent = 0; sent < keys; sent += AT_ONCE) {
    const answers = Array.from({ length: AT_ONCE }, (_, index) => ask(document, `${name}-${sent + index}`));
    for (const code of (await Promise.all(answers)).flatMap(codesOf)) codes.add(code);
  }
  return [...codes];
}

test('made-up keys are answered within a small heap, and evict nothing of a good key', async () => {
  await ask(PETS);
  expect(await flood('{ __typename }', 'named')).toEqual([]);
  expect(await flood(QUOTA, 'counted')).toEqual([]);
  petApi.fault = on('create', fails());
  expect(await flood(CREATE, 'creating')).toEqual(['OUTCOME_UNKNOWN']);
  petApi.fault = undefined;
  expect(await flood(PETS, 'reading')).toEqual(['UNAUTHENTICATED']);
  expect((await ask(PETS)).extensions?.['petql']).toMatchObject({ upstreamCalls: 0 });

  // A key that was rejected makes no call for a while, though its caller is gone.
  const calls = petApi.log.length;
  expect(codesOf(await ask(PETS, 'reading-0'))).toEqual(['UNAUTHENTICATED']);
  expect(petApi.log).toHaveLength(calls);
});

test('a key has one caller while a create of it is under way, however many keys come', async () => {
  await ask(PETS);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  petApi.fault = on('create', { held });
  const calls = petApi.log.length;
  const creating = ask(CREATE);
  await until(() => petApi.log.length > calls);
  expect(await flood(PETS, 'good', 750)).toEqual([]);
  // Served from before the create, which is not over.
  expect((await ask(PETS)).data).toEqual({ pets: [] });
  release();
  expect(codesOf(await creating)).toEqual([]);
  expect((await ask(PETS)).data).toEqual({ pets: [{ name: 'Neo' }] });
});
