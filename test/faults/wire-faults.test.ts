import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pet } from '../../src/pet.ts';
import { createRandom } from '../prove/random.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { startFaultProxy } from './fault-proxy.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { SEEDS, runOperations, wrongWith } from './operations-load.ts';
import type { Done } from './operations-load.ts';
import { mixedFaults } from './wire-fault.ts';
import type { WireFault } from './wire-fault.ts';

const UPSTREAM_TIMEOUT_MS = 300;
const MAX_WAIT_MS = 500;
/** A call may begin up to the deadline. A machine that is busy with other tests adds the last part. */
const LATEST_MS = MAX_WAIT_MS + UPSTREAM_TIMEOUT_MS + 100 + 2_400;
const PLAN = { name: 'Enterprise', perMinute: 5_000, perDay: 1_000_000 };

let proxy: FaultProxy;
let gateway: TestGateway;
let lastKey = 0;
const keys = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`key-${index}`, PLAN]));

beforeAll(async () => {
  gateway = await startGateway({
    sandbox: { seeds: SEEDS, keys },
    gateway: { upstreamTimeoutMs: UPSTREAM_TIMEOUT_MS, maxWaitMs: MAX_WAIT_MS, maxAgeMs: 20, maxStaleMs: 300 },
    through: async (target) => (proxy = await startFaultProxy({ target })),
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await proxy.close();
});

/** All that it holds, asked behind petql's back. */
async function storeNow(): Promise<Pet[]> {
  const response = await fetch(`${gateway.sandbox.url}/pets?limit=100`, { headers: { authorization: 'Bearer key-0' } });
  const pets = (await response.json()) as { id: number; name: string; categoryId: number; status: Pet['status'] }[];
  expect(pets.length).toBeLessThan(100);
  return pets.map((pet) => ({ ...pet, id: String(pet.id), categoryId: String(pet.categoryId) }) as Pet);
}

function newKeys(count: number): string[] {
  return Array.from({ length: count }, () => `key-${(lastKey += 1)}`);
}

const slowest = (done: readonly Done[]) => Math.max(...done.map(({ tookMs }) => tookMs));

async function expectSound(done: readonly Done[]): Promise<void> {
  const store = await storeNow();
  expect(done.map((one) => wrongWith(one, store)).filter(Boolean)).toEqual([]);
  expect(slowest(done)).toBeLessThan(LATEST_MS);
}

/** The faults are over: the next calls of known and of new keys go well at once. */
async function expectHealthy(known: readonly string[]): Promise<void> {
  proxy.setFault(undefined);
  const startedMs = performance.now();
  for (const key of [...known, ...newKeys(1)]) {
    const headers = { authorization: `Bearer ${key}`, 'cache-control': 'no-cache' };
    const answers = await Promise.all([1, 2, 3].map((id) => gateway.query(`{ pet(id: "${id}") { id } }`, { headers })));
    expect(answers.flatMap(({ errors }) => errors ?? [])).toEqual([]);
  }
  expect(performance.now() - startedMs).toBeLessThan(1_000);
}

/** Every call that the upstream saw is counted, and nothing that was never sent. */
async function expectCounted(key: string, exchanges: number): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  const { data } = await gateway.query('{ rateLimit { windows { window used } } }', { headers });
  const day = data?.['rateLimit'].windows.find(({ window }: { window: string }) => window === 'DAY');
  expect(day.used).toBeGreaterThanOrEqual(gateway.sandbox.calls.filter((call) => call.key === key).length);
  expect(day.used).toBeLessThanOrEqual(exchanges);
}

const FAULTS: Readonly<Record<string, WireFault>> = {
  latency: { latencyMs: 60 },
  'latency past the timeout': { latencyMs: 250 },
  'a narrow line': { bytesPerSecond: 20_000 },
  'a line far too narrow': { bytesPerSecond: 500 },
  'a slow drip': { bytesPerSecond: 15 },
  'a cut in the body': { cutAfterBytes: 400 },
  'a reset before the request': { resetAt: 'request' },
  'a reset before the headers': { resetAt: 'answer' },
  'a reset in the headers': { resetAt: 'headers' },
  'a reset behind the headers': { resetAt: 'body' },
  'requests that get lost': { silent: 'request' },
  'answers that get lost': { silent: 'answer' },
  'a body without an end': { endless: true },
  'a body without an end that drips': { endless: true, bytesPerSecond: 1_000 },
  'another protocol': { bytes: 'SSH-2.0-OpenSSH_9.9\r\n\r\n' },
};

/** With these most answers come; on a quiet machine all. */
const HARMLESS = new Set(['latency', 'a narrow line']);

test.each(Object.entries(FAULTS))(
  '%s: typed errors or known answers in time, nothing wrong, tokens counted, and healthy afterwards',
  async (name, fault) => {
    const [key = ''] = newKeys(1);
    const random = createRandom(name.length);
    const before = proxy.exchanges;
    proxy.setFault(({ number }) => (number - before > 3 ? fault : undefined));
    const done = await runOperations({ gateway, random, keys: [key], forMs: 300, creations: 0.05 });
    await expectSound(done);
    const share = done.filter(({ answer }) => answer.errors).length / done.length;
    expect(HARMLESS.has(name) ? 1 - share : share).toBeGreaterThan(HARMLESS.has(name) ? 0.5 : 0);
    await expectHealthy([key]);
    await expectCounted(key, proxy.exchanges - before);
  },
);

test('all of them mixed, at 30 % of the exchanges', async () => {
  const own = newKeys(3);
  const random = createRandom(4711);
  const faults = Object.values(FAULTS);
  proxy.setFault(
    mixedFaults(
      random,
      faults.map((fault) => [0.3 / faults.length, fault]),
    ),
  );
  const done = await runOperations({ gateway, random, keys: own, forMs: 2_000, creations: 0.05 });
  await expectSound(done);
  const good = done.filter(({ answer }) => !answer.errors);
  expect(good.length).toBeGreaterThan(done.length / 2);
  await expectHealthy(own);
});

test('a service that is not there, and comes back on the same port', async () => {
  const [key = ''] = newKeys(1);
  const random = createRandom(5);
  await proxy.refuse();
  const before = gateway.sandbox.calls.length;
  const done = await runOperations({ gateway, random, keys: [key], forMs: 500 });
  await expectSound(done);
  expect(gateway.sandbox.calls.filter((call) => call.key === key)).toEqual([]);
  await proxy.accept();
  await expectHealthy([key]);
  // Nothing of what was never sent is counted.
  const after = gateway.sandbox.calls.filter((call) => call.key === key).length;
  await expectCounted(key, after);
  expect(gateway.sandbox.calls.length).toBeGreaterThan(before);
});

test('connections that are accepted and never answered, more than the pool has, free it again', async () => {
  const own = newKeys(4);
  // Their plans are known, so that all may call at once.
  await expectHealthy(own);
  proxy.setFault({ silent: 'request' });
  const startedMs = performance.now();
  const answers = await Promise.all(
    own.flatMap((key) =>
      SEEDS.map((_, index) =>
        gateway.query(`{ pet(id: "${100 + index}") { id } }`, {
          headers: { authorization: `Bearer ${key}`, 'cache-control': 'no-cache' },
        }),
      ),
    ),
  );
  expect(new Set(answers.map(({ errors }) => errors?.[0]?.extensions.code))).toEqual(new Set(['GATEWAY_TIMEOUT']));
  expect(performance.now() - startedMs).toBeLessThan(LATEST_MS);
  await expectHealthy(own);
});

test('a connection that ended while it was kept costs no read an error', async () => {
  const [key = ''] = newKeys(1);
  const headers = { authorization: `Bearer ${key}`, 'cache-control': 'no-cache' };
  proxy.setFault(undefined);
  for (let time = 0; time < 20; time += 1) {
    const { errors } = await gateway.query('{ pet(id: "1") { id } }', { headers });
    expect(errors).toBeUndefined();
    proxy.endConnections(time % 2 === 0 ? 'close' : 'reset');
    // The end of the connection is on its way to petql before the next request is on its way back.
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test('a kept connection that ends under a request: a read is tried again, a creation is OUTCOME_UNKNOWN', async () => {
  const [key = ''] = newKeys(1);
  const headers = { authorization: `Bearer ${key}`, 'cache-control': 'no-cache' };
  const ask = (query: string) => gateway.query(query, { headers });
  for (let call = 0; call < 20; call += 1) await ask('{ pets { id } }');
  let ended = 0;
  proxy.setFault(({ numberOnConnection }) => {
    if (numberOnConnection === 1 || ended > 0) return undefined;
    ended += 1;
    return { resetAt: 'request' };
  });
  const { errors, extensions } = await ask('{ pet(id: "1") { id } }');
  expect(errors).toBeUndefined();
  expect([ended, extensions?.['petql'].upstreamCalls]).toEqual([1, 2]);
  ended = 0;
  const created = await ask('mutation { createPet(input: { name: "Only one", categoryId: 1 }) { pet { id } } }');
  expect(ended).toBe(1);
  expect(created.errors?.[0]?.extensions.code).toBe('OUTCOME_UNKNOWN');
  expect((await storeNow()).filter(({ name }) => name === 'Only one')).toEqual([]);
});
