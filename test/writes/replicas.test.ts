import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startPetql } from '../support/run-petql.ts';
import { startRecordedSandbox } from '../support/start-gateway.ts';
import type { RecordedSandbox } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

interface Answer {
  readonly data?: any;
  readonly errors?: readonly { readonly extensions: any }[];
}

const CREATE = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } userErrors { code } } }';
const variablesOf = (input: object = {}) => ({
  input: { name: 'Momo', categoryId: '3', idempotencyKey: 'momo-1', ...input },
});
const codeOf = ({ errors }: Answer) => errors?.[0]?.extensions.code;

let sandbox: RecordedSandbox;
beforeEach(async () => {
  sandbox = await startRecordedSandbox();
});
afterEach(() => sandbox.close());

const posts = () => sandbox.calls.filter(({ method }) => method === 'POST').length;

/** A process over the sandbox. */
async function startProcess(...args: string[]) {
  const times = ['--upstream-timeout-ms', '400', '--max-wait-ms', '400', '--plan', 'pro'];
  const petql = await startPetql(['--port', '0', '--pet-api-url', sandbox.url, ...times, ...args]);
  const kill = async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  };
  onTestFinished(kill);
  return {
    kill,
    async create(input: object = {}): Promise<Answer> {
      const response = await fetch(petql.address, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer demo-pro' },
        body: JSON.stringify({ query: CREATE, variables: variablesOf(input) }),
      });
      const { data, errors } = (await response.json()) as Answer;
      return { data, ...(errors && { errors }) };
    },
  };
}

type Process = Awaited<ReturnType<typeof startProcess>>;

/** Kills a process while its POST is under way, and resolves once its lease is over. */
async function killWithin(petql: Process, startOther: () => Promise<Process>): Promise<Process> {
  sandbox.setFault(() => ({ delayMs: 60_000 }));
  const lost = petql.create().catch(() => 'lost');
  await until(() => posts() === 1);
  await petql.kill();
  expect(await lost).toBe('lost');
  sandbox.setFault(undefined);
  const other = await startOther();
  await until(async () => codeOf(await other.create()) !== 'OUTCOME_PENDING');
  return other;
}

describe.skipIf(!redisIsHere)('two replicas with Redis', () => {
  let redis: RedisServer;
  let one: Gateway;
  let other: Gateway;

  beforeAll(async () => {
    redis = await startRedis();
    return () => redis.close();
  });
  beforeEach(async () => {
    await redis.command('FLUSHALL');
    const options: GatewayOptions = { petApiUrl: sandbox.url, redisUrl: redis.url, plan: 'pro', maxWaitMs: 2_000 };
    [one, other] = [createGateway(options), createGateway(options)];
    await Promise.all([one.ready(), other.ready()]);
    return () => Promise.all([one.close(), other.close()]);
  });

  const execute = async ({ execute: run }: Gateway, document: string, variables = {}, cacheControl?: string) => {
    const { data, errors } = await run({ document, variables, apiKey: 'demo-pro', cacheControl });
    return { data, ...(errors && { errors }) } as Answer;
  };
  const create = (gateway: Gateway, input?: object) => execute(gateway, CREATE, variablesOf(input));
  const nameFrom = async (gateway: Gateway, cacheControl?: string): Promise<unknown> =>
    (await execute(gateway, '{ pet(id: "250") { name } }', {}, cacheControl)).data.pet?.name;

  test('make one POST of concurrent submits, with one outcome', async () => {
    sandbox.setFault(() => ({ delayMs: 200 }));
    const answers = await Promise.all([create(one), create(other), create(one), create(other)]);
    expect(posts()).toBe(1);
    expect(answers[0]?.data?.createPet.pet.id).toEqual(expect.any(String));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  test('replay each other’s outcomes, and reject another input', async () => {
    const first = await create(one);
    expect(await create(other)).toEqual(first);
    expect(codeOf(await create(other, { name: 'Mono' }))).toBe('BAD_USER_INPUT');
    expect(posts()).toBe(1);
  });

  test('serve nothing from before the other’s creation', async () => {
    expect(await nameFrom(other)).toBeUndefined();
    const first = await create(one);
    expect(first.data?.createPet.pet.id).toBe('250');
    expect(await create(other)).toEqual(first);
    expect(await nameFrom(other)).toBe('Momo');
  });

  test('hear of a creation after no-cache reads', async () => {
    expect(await nameFrom(other, 'no-cache')).toBeUndefined();
    expect(codeOf(await create(one))).toBeUndefined();
    await until(async () => (await nameFrom(other, 'max-age=3600')) === 'Momo');
  });

  test('hear of a creation that Redis did not take when it was over', async () => {
    expect(await nameFrom(other, 'max-age=3600')).toBeUndefined();
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    const ready = new Request('http://localhost/health/ready');
    await until(async () => (await (await one.fetch(ready)).text()).includes('degraded'));
    expect(codeOf(await create(one, { idempotencyKey: null }))).toBeUndefined();
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await until(async () => (await nameFrom(other, 'max-age=3600')) === 'Momo');
  });

  test.each<[string, () => unknown, () => unknown]>([
    ['is gone', () => redis.kill(), () => redis.start()],
    ['hangs', () => redis.freeze(), () => redis.thaw()],
    [
      'is full',
      () => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
      () => redis.command('CONFIG', 'SET', 'maxmemory', '0'),
    ],
  ])('send nothing with a key while Redis %s, and one POST after it', async (_how, spoil, mend) => {
    await spoil();
    await until(async () => codeOf(await create(one)) === 'IDEMPOTENCY_UNAVAILABLE');
    const refused = await create(one);
    expect(refused.errors?.[0]?.extensions.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(posts()).toBe(0);
    // Without a key there is nothing to store.
    expect((await create(one, { idempotencyKey: null })).errors).toBeUndefined();
    await mend();
    for (const gateway of [one, other])
      await until(async () => codeOf(await create(gateway)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect(await create(other)).toEqual(await create(one));
    expect(posts()).toBe(2);
  });

  test('store an outcome that Redis missed as soon as it is back', async () => {
    sandbox.setFault(() => ({ delayMs: 200 }));
    const creating = create(one);
    await until(() => posts() === 1);
    await redis.kill();
    const first = await creating;
    expect(first.errors).toBeUndefined();
    await redis.start();
    await until(async () => /record:/.test(await redis.command('KEYS', '*')));
    await until(async () => codeOf(await create(one)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect(await create(one)).toEqual(first);
    expect(posts()).toBe(1);
  });

  test('send nothing again when one is killed during its POST', async () => {
    const [killed, third] = await Promise.all([
      startProcess('--redis-url', redis.url),
      startProcess('--redis-url', redis.url),
    ]);
    await killWithin(killed, async () => third);
    expect(codeOf(await third.create())).toBe('OUTCOME_UNKNOWN');
    expect(codeOf(await create(other))).toBe('OUTCOME_UNKNOWN');
    expect(posts()).toBe(1);
  });
});

describe('one process with a state file', () => {
  let folder: string;
  let args: string[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petql-writes-'));
  });
  beforeEach(({ task }) => {
    args = ['--state-file', join(folder, `${task.id}.db`)];
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('knows outcomes after kill -9', async () => {
    const before = await startProcess(...args);
    const [added, refused] = [await before.create(), await before.create({ name: '', idempotencyKey: 'k' })];
    expect(added.errors ?? refused.errors).toBeUndefined();
    await before.kill();
    const after = await startProcess(...args);
    expect(await after.create()).toEqual(added);
    expect(await after.create({ name: '', idempotencyKey: 'k' })).toEqual(refused);
    expect(codeOf(await after.create({ name: 'Mono' }))).toBe('BAD_USER_INPUT');
    expect(posts()).toBe(2);
  });

  test('sends nothing again after kill -9 during a POST', async () => {
    const after = await killWithin(await startProcess(...args), () => startProcess(...args));
    expect(codeOf(await after.create())).toBe('OUTCOME_UNKNOWN');
    expect(posts()).toBe(1);
  });
});
