import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Fault } from '../../src/sandbox/fault.ts';
import { createRandom } from '../prove/random.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { startFaultProxy } from './fault-proxy.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { SEEDS, runOperations, wrongWith } from './operations-load.ts';
import { mixedFaults } from './wire-fault.ts';
import { WRONG_ANSWERS, strangersIn } from './wrong-answers.ts';

const UPSTREAM_TIMEOUT_MS = 1_000;
/** A call may begin up to the deadline. A machine that is busy with other tests adds the last part. */
const LATEST_MS = 1_000 + UPSTREAM_TIMEOUT_MS + 100 + 2_400;
const PLAN = { name: 'Enterprise', perMinute: 5_000, perDay: 1_000_000 };
const names = Object.keys(WRONG_ANSWERS);
const keys = Object.fromEntries(Array.from({ length: names.length + 20 }, (_, index) => [`key-${index}`, PLAN]));
const LIST = '{ pets(status: AVAILABLE) { id name categoryId status } }';

let gateway: TestGateway;
let proxy: FaultProxy;
let lastKey = 0;

beforeAll(async () => {
  gateway = await startGateway({
    sandbox: { seeds: SEEDS, keys },
    gateway: { upstreamTimeoutMs: UPSTREAM_TIMEOUT_MS, maxWaitMs: 1_000, maxAgeMs: 20 },
    through: async (target) => (proxy = await startFaultProxy({ target })),
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await proxy.close();
});

const newKey = () => `key-${(lastKey += 1)}`;
const ask = (key: string, query: string, cacheControl: string | null = 'no-cache') =>
  gateway.query(query, { headers: { authorization: `Bearer ${key}`, 'cache-control': cacheControl } });

async function dayUsed(key: string): Promise<number> {
  const { data } = await ask(key, '{ rateLimit { windows { window used } } }');
  return data?.['rateLimit'].windows.find(({ window }: { window: string }) => window === 'DAY').used;
}

test.each(names)('%s', async (name) => {
  const wrong = WRONG_ANSWERS[name]?.();
  if (!wrong) throw new Error('expected a wrong answer of this name');
  const { fault, listing } = wrong;
  const key = newKey();
  expect((await ask(key, LIST)).errors).toBeUndefined();
  gateway.sandbox.setFault(({ store }) => (store === 'production' ? fault : undefined));
  const startedMs = performance.now();
  const [fresh, stale, other] = await Promise.all([
    ask(key, LIST),
    ask(key, '{ pets(status: SOLD) { id } }'),
    // The store is known whole, so whatever is asked of it has an older answer.
    new Promise((resolve) => setTimeout(resolve, 30)).then(() => ask(key, LIST, null)),
  ]);
  expect(performance.now() - startedMs).toBeLessThan(LATEST_MS);
  const code = fresh?.errors?.[0]?.extensions.code;
  expect(code ?? 'animals').toBe(listing);
  expect(stale?.errors === undefined).toBe(listing === 'animals');
  expect(other?.errors).toBeUndefined();
  expect(JSON.stringify([fresh, stale, other])).not.toMatch(/secret|127\.0\.0\.1|Welcome/);

  gateway.sandbox.setFault(undefined);
  expect(await dayUsed(key)).toBe(gateway.sandbox.calls.filter((call) => call.key === key).length);
  const healthy = await Promise.all([1, 2, 3].map((id) => ask(key, `{ pet(id: "${id}") { id } }`)));
  expect(healthy.flatMap(({ errors }) => errors ?? [])).toEqual([]);
});

test.each(['AVAILABLE', 'PENDING', 'SOLD'])('an animal of another status among those that are %s', async (status) => {
  const fault = strangersIn(status.toLowerCase() as 'sold');
  gateway.sandbox.setFault(({ path }) => (path.includes('status=') ? fault : undefined));
  const key = newKey();
  const { data, errors } = await ask(key, `{ pets(status: ${status}) { id } }`);
  gateway.sandbox.setFault(undefined);
  expect(data).toEqual({ pets: null });
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'DOWNSTREAM_SERVICE_ERROR', upstream: { status: 200 } });
});

const OK = (body: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

test.each<[string, string, 'animals' | 'DOWNSTREAM_SERVICE_ERROR']>([
  ['early hints before the answer', `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${OK('[]')}`, 'animals'],
  ['a 100 that nobody waits for', `HTTP/1.1 100 Continue\r\n\r\n${OK('[]')}`, 'DOWNSTREAM_SERVICE_ERROR'],
  [
    'another protocol that nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
    'DOWNSTREAM_SERVICE_ERROR',
  ],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\ncontent-length: 2\r\n\r\n[]', 'DOWNSTREAM_SERVICE_ERROR'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 4\r\n\r\n[]', 'DOWNSTREAM_SERVICE_ERROR'],
  [
    'a length and chunks',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n',
    'DOWNSTREAM_SERVICE_ERROR',
  ],
  ['a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 'DOWNSTREAM_SERVICE_ERROR'],
  ['a second answer behind the first', OK('[]') + OK('[{"id":1,"name":"a secret","categoryId":1}]'), 'animals'],
])('%s', async (_name, bytes, expected) => {
  const key = newKey();
  proxy.setFault({ bytes });
  const { data, errors } = await ask(key, '{ pets { id } }');
  proxy.setFault(undefined);
  expect(errors?.[0]?.extensions.code ?? 'animals').toBe(expected);
  expect(data).toEqual({ pets: expected === 'animals' ? [] : null });
  const next = await ask(key, '{ pets(limit: 100) { id name } }');
  expect(next.errors).toBeUndefined();
  expect(next.data?.['pets']).toHaveLength(SEEDS.length);
});

test('all of them mixed, with 5xx at 30 %, while fifty operations a second run', async () => {
  const random = createRandom(8);
  const key = newKey();
  const large = new Set(['a body of 100 MB', 'a gzip bomb']);
  const others = names.filter((name) => !large.has(name)).map((name) => WRONG_ANSWERS[name]?.().fault as Fault);
  const choose = mixedFaults<Fault>(random, [
    [0.3, { status: 503, body: '' }],
    ...others.map((fault) => [0.2 / others.length, fault] as const),
  ]);
  // Words that are in no store, for the answers that hold animals of their own.
  gateway.sandbox.setFault(() => {
    const fault = choose();
    return fault?.body?.includes('secret') ? undefined : fault;
  });
  const done = await runOperations({ gateway, random, keys: [key], forMs: 2_000 });
  gateway.sandbox.setFault(undefined);
  const store = SEEDS.map((seed, index) => ({ ...seed, id: String(index + 1) }) as any);
  expect(done.map((one) => wrongWith(one, store)).filter(Boolean)).toEqual([]);
  expect(done.filter(({ answer }) => !answer.errors).length).toBeGreaterThan(done.length / 2);
  expect(Math.max(...done.map(({ tookMs }) => tookMs))).toBeLessThan(LATEST_MS);
  expect(await dayUsed(key)).toBeGreaterThanOrEqual(gateway.sandbox.calls.filter((call) => call.key === key).length);
});

test.each<[string, Fault]>([
  ['cut', { cutAfterBytes: 1 }],
  ['longer than petql reads', { body: Buffer.alloc(2_000_000, ' ') }],
  ['never whole', { headers: { 'content-length': '9' }, body: '{' }],
])('after a 429 nobody calls, though its body is %s', async (_name, fault) => {
  const key = newKey();
  gateway.sandbox.setFault(() => ({ ...fault, status: 429, refused: true, headers: { ...fault.headers, ...CLOSED } }));
  const answers = [];
  for (let count = 0; count < 5; count += 1) {
    answers.push(
      await ask(key, LIST),
      await ask(key, `mutation { createPet(input: { name: "x", categoryId: 1 }) { pet { id } } }`),
    );
  }
  const calls = gateway.sandbox.calls.filter((call) => call.key === key);
  gateway.sandbox.setFault(undefined);
  expect(calls).toHaveLength(1);
  expect(new Set(answers.map(({ errors }) => errors?.[0]?.extensions?.['code']))).toEqual(new Set(['RATE_LIMITED']));
  expect((await ask(key, '{ rateLimit { closedUntil } }')).data?.['rateLimit'].closedUntil).not.toBeNull();
});

const CLOSED = { 'retry-after': '3600', 'x-ratelimit-remaining': '0' };

test('a megabyte of what is no animal keeps nobody waiting', async () => {
  const body = `[${Array.from({ length: 340_000 }, () => '{}').join(',')}]`;
  gateway.sandbox.setFault(({ method }) => (method === 'GET' ? { body } : undefined));
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const { errors } = await ask(newKey(), LIST);
  delay.disable();
  gateway.sandbox.setFault(undefined);
  expect(errors?.[0]?.message).toMatch(/at most 100 animals/);
  // To describe each of them takes ten seconds.
  expect(delay.max / 1e6).toBeLessThan(2_000);
});
