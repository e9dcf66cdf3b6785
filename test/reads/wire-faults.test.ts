import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { STATUSES } from '../support/pet-api/contract.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { serve } from '../support/serve.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import type { WireFault } from '../support/wire-fault.ts';

const PETS = 30;
const UPSTREAM_TIMEOUT_MS = 300;
const MAX_WAIT_MS = 500;
/** A call may begin up to the deadline. A busy machine adds the last part. */
const LATEST_MS = MAX_WAIT_MS + UPSTREAM_TIMEOUT_MS + 2_500;
const DOWN = 'DOWNSTREAM_SERVICE_ERROR';

let proxy: FaultProxy;
let gateway: TestGateway;
let lastKey = 0;
const newKey = () => `key-${(lastKey += 1)}`;

beforeAll(async () => {
  const plan = { perMinute: 5_000, perDay: 1_000_000 };
  const keys = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`key-${index}`, plan]));
  gateway = await startGateway({
    petApi: { pets: petSeeds(PETS), keys },
    gateway: { upstreamTimeoutMs: UPSTREAM_TIMEOUT_MS, maxWaitMs: MAX_WAIT_MS, plan: '5000/1000000' },
    through: async (target) => (proxy = await startFaultProxy({ target })),
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await proxy.close();
});

const ask = (key: string, query: string) =>
  gateway.query(query, { headers: { authorization: `Bearer ${key}`, 'cache-control': 'no-cache' } });
const callsOf = (key: string) => gateway.petApi.log.filter((call) => call.key === key).length;

const IDS = Array.from({ length: 8 }, (_, index) => index * 4 + 1);
const READS_IN_A_ROUND = STATUSES.length + IDS.length;

/** Reads of every kind at once. Their data has to be that of the store, and their errors typed. */
async function readAll(key: string): Promise<number> {
  const startedMs = performance.now();
  const lists = STATUSES.map(async (status, index) => {
    const answer = await ask(key, `{ pets(status: ${status.toUpperCase()}, limit: 100) { id } }`);
    const expected = Array.from({ length: PETS / STATUSES.length }, (_, pet) => ({
      id: String(pet * STATUSES.length + index + 1),
    }));
    expect(answer.data).toEqual({ pets: answer.errors ? null : expected });
    return answer;
  });
  const pets = IDS.map(async (id) => {
    const answer = await ask(key, `{ pet(id: "${id}") { name } }`);
    expect(answer.data).toEqual({ pet: answer.errors || id > PETS ? null : { name: `Pet ${id}` } });
    return answer;
  });
  const answers = await Promise.all([...lists, ...pets]);
  expect(performance.now() - startedMs).toBeLessThan(LATEST_MS);
  for (const code of answers.flatMap(codesOf)) expect([DOWN, 'GATEWAY_TIMEOUT']).toContain(code);
  return answers.filter(({ errors }) => errors).length;
}

async function expectHealthy(key: string): Promise<void> {
  proxy.setFault(undefined);
  // A busy machine may make a call time out.
  await expect.poll(() => readAll(key)).toBe(0);
}

/** Every call that the upstream received is counted, and nothing that was never sent. */
async function expectCounted(key: string, max: number): Promise<void> {
  const { data } = await ask(key, '{ rateLimit { windows { window used } } }');
  const day = data?.['rateLimit'].windows[1];
  expect(day.window).toBe('DAY');
  expect(day.used).toBeGreaterThanOrEqual(callsOf(key));
  expect(day.used).toBeLessThanOrEqual(max);
}

const HARMLESS: [name: string, fault: WireFault][] = [
  ['latency', { latencyMs: 40 }],
  ['a narrow line', { bytesPerSecond: 40_000 }],
];
const HARMFUL: [name: string, fault: WireFault][] = [
  ['latency over the timeout', { latencyMs: 250 }],
  ['a line far too narrow', { bytesPerSecond: 500 }],
  ['a slow drip', { bytesPerSecond: 15 }],
  ['a cut in the body', { cutAfterBytes: 400 }],
  ['a reset before the request', { resetAt: 'request' }],
  ['a reset before the headers', { resetAt: 'answer' }],
  ['a reset in the headers', { resetAt: 'headers' }],
  ['a reset behind the headers', { resetAt: 'body' }],
  ['lost requests', { silent: 'request' }],
  ['lost responses', { silent: 'answer' }],
  ['an endless body', { endless: true }],
  ['an endless body that drips', { endless: true, bytesPerSecond: 1_000 }],
  ['another protocol', { bytes: 'SSH-2.0-OpenSSH_9.9\r\n\r\n' }],
  ['a status of four digits', { bytes: 'HTTP/1.1 2000 OK\r\ncontent-length: 2\r\n\r\n[]' }],
  ['two lengths', { bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 4\r\n\r\n[]' }],
  [
    'a length and chunks',
    { bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]' },
  ],
  ['a protocol switch', { bytes: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n' }],
];

describe.each([
  ['harmless', HARMLESS],
  ['harmful', HARMFUL],
] as const)('a %s fault', (kind, faults) => {
  test.each(faults)(
    '%s: right data or typed errors in time, each call counted, healthy after it',
    async (_name, fault) => {
      const key = newKey();
      const before = proxy.exchanges;
      expect((await ask(key, '{ pets(limit: 1) { id } }')).errors).toBeUndefined();
      proxy.setFault(fault);
      const failed = await readAll(key);
      // A busy machine may make some calls of a harmless fault time out.
      expect(failed > (kind === 'harmful' ? 0 : 5)).toBe(kind === 'harmful');
      await expectHealthy(key);
      // On a busy machine the calls of one round may time out before the proxy reads them: counted, and no exchange.
      await expectCounted(key, proxy.exchanges - before + READS_IN_A_ROUND);
    },
  );
});

test('an upstream that is gone counts no call, and is called again when it is back', async () => {
  const key = newKey();
  await proxy.refuse();
  expect(await readAll(key)).toBeGreaterThan(0);
  expect(callsOf(key)).toBe(0);
  await proxy.accept();
  await expectHealthy(key);
  await expectCounted(key, callsOf(key));
});

test('a create waits for an upstream that is soon back, and is sent once', async () => {
  const key = newKey();
  await proxy.refuse();
  const creating = ask(key, 'mutation { createPet(input: { name: "Neo", categoryId: 1 }) { pet { name } } }');
  // petql tries again after 100 and 300 ms.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await proxy.accept();
  expect((await creating).data).toEqual({ createPet: { pet: { name: 'Neo' } } });
  expect(callsOf(key)).toBe(1);
});

test('a kept connection that has ended costs no read an error', async () => {
  const key = newKey();
  for (let time = 0; time < 10; time += 1) {
    expect((await ask(key, '{ pet(id: "1") { id } }')).errors).toBeUndefined();
    proxy.endConnections(time % 2 === 0 ? 'close' : 'reset');
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test('a kept connection ends after some idle seconds, whatever the upstream promises', async () => {
  let closedAfterMs = NaN;
  await using server = await serve((request, response) => {
    const servedAtMs = performance.now();
    request.socket.once('close', () => (closedAfterMs = performance.now() - servedAtMs));
    response.writeHead(200, { 'content-type': 'application/json', 'keep-alive': 'timeout=600' }).end('[]');
  });
  const idle = createGateway({ petApiUrl: `${server.origin}/v1` });
  for (let call = 0; call < 2; call += 1) {
    await idle.execute({ document: '{ pets { id } }', apiKey: 'key', cacheControl: 'no-cache' });
  }
  await expect.poll(() => closedAfterMs, { timeout: 8_000 }).toBeGreaterThan(1_000);
  await idle.close();
});

test('a call asks for a body without coding', async () => {
  const codings: unknown[] = [];
  await using server = await serve((request, response) => {
    codings.push(request.headers['accept-encoding']);
    response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
  });
  const asking = createGateway({ petApiUrl: `${server.origin}/v1` });
  await asking.execute({ document: '{ pets { id } }', apiKey: 'key' });
  await asking.close();
  expect(codings).toEqual(['identity']);
});

test('a kept connection that ends under a call: a read is retried, a create is OUTCOME_UNKNOWN', async () => {
  const key = newKey();
  // They earn the retry.
  for (let call = 0; call < 20; call += 1) await ask(key, '{ pets { id } }');
  let ended = 0;
  proxy.setFault(({ numberOnConnection }) => {
    if (numberOnConnection === 1 || ended > 0) return undefined;
    ended += 1;
    return { resetAt: 'request' };
  });
  const { errors, extensions } = await ask(key, '{ pet(id: "1") { id } }');
  expect([errors, ended, extensions?.['petql'].upstreamCalls]).toEqual([undefined, 1, 2]);
  const create = 'mutation { createPet(input: { name: "Only one", categoryId: 1 }) { pet { id } } }';
  // Creates keep a connection of their own, for half a second.
  ended = 1;
  for (let call = 0; call < 2; call += 1) expect((await ask(key, create)).errors).toBeUndefined();
  ended = 0;
  const creation = await ask(key, create);
  proxy.setFault(undefined);
  expect([ended, codesOf(creation)]).toEqual([1, ['OUTCOME_UNKNOWN']]);
});

test.each<[string, WireFault]>([
  ['cut', { cutAfterBytes: 1 }],
  ['never whole', {}],
])('after a 429 nothing is called, though its body is %s', async (name, fault) => {
  const key = newKey();
  const headers = { 'retry-after': '3600', ...(name === 'cut' ? {} : { 'content-length': '9' }) };
  gateway.petApi.fault = { ...fault, status: 429, headers, body: '{' };
  const codes = [];
  for (let count = 0; count < 4; count += 1) codes.push(...codesOf(await ask(key, '{ pets { id } }')));
  gateway.petApi.fault = undefined;
  expect([new Set(codes), callsOf(key)]).toEqual([new Set(['RATE_LIMITED']), 1]);
  const { data } = await ask(key, '{ rateLimit { pausedUntil } }');
  expect(data?.['rateLimit'].pausedUntil).not.toBeNull();
});
