import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test as oneTest } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { post } from '../support/client.ts';
import { slow } from '../support/pet-api/fault.ts';
import type { PetApi } from '../support/pet-api/pet-api.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startPetql } from '../support/run-petql.ts';
import { createTestPetApi } from '../support/start-gateway.ts';
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

/** Leases end and Redis fails in real time, so the tests wait together. */
const test = oneTest.concurrent;

let folder: string;
const closing = new AsyncDisposableStack();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-writes-'));
});
afterAll(async () => {
  await closing.disposeAsync();
  await rm(folder, { recursive: true });
});

const countPosts = ({ log }: PetApi) => log.filter(({ kind }) => kind === 'create').length;

/** A process over the pet API at this address. */
async function startProcess(url: string, ...args: string[]) {
  const times = ['--upstream-timeout-ms', '400', '--max-wait-ms', '400', '--plan', 'pro'];
  const petql = await startPetql(['--port', '0', '--pet-api-url', url, ...times, ...args]);
  const kill = async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  };
  closing.defer(kill);
  return {
    kill,
    async create(input: object = {}): Promise<Answer> {
      const headers = { authorization: 'Bearer demo-pro' };
      const { data, errors } = await post(petql.address, CREATE, { headers, variables: variablesOf(input) });
      return { data, ...(errors && { errors }) };
    },
  };
}

type Process = Awaited<ReturnType<typeof startProcess>>;

/** Kills a process while its POST is under way, and resolves once its lease is over. */
async function killWithin(petApi: PetApi, petql: Process, startOther: () => Promise<Process>) {
  petApi.fault = slow(60_000);
  const lost = petql.create().catch(() => 'lost');
  await until(() => countPosts(petApi) === 1);
  await petql.kill();
  expect(await lost).toBe('lost');
  petApi.fault = undefined;
  const other = await startOther();
  await until(async () => codeOf(await other.create()) !== 'OUTCOME_PENDING');
  return other;
}

async function startReplicas() {
  const redis = closing.adopt(await startRedis(), ({ close }) => close());
  const petApi = createTestPetApi();
  const { url } = closing.use(await petApi.listen());
  const options: GatewayOptions = { petApiUrl: url, redisUrl: redis.url, plan: 'pro', maxWaitMs: 10_000 };
  const [one, other] = [createGateway(options), createGateway(options)];
  closing.defer(async () => void (await Promise.all([one.close(), other.close()])));
  // On a busy machine the first contact with Redis may time out.
  for (const gateway of [one, other]) await until(async () => (await healthOf(gateway)).includes('"ok"'));
  return { redis, petApi, url, one, other, posts: () => countPosts(petApi) };
}

const healthOf = async ({ fetch }: Gateway): Promise<string> =>
  (await fetch(new Request('http://localhost/health/ready'))).text();

async function execute({ execute: run }: Gateway, document: string, variables = {}, cacheControl?: string) {
  const { data, errors } = await run({ document, variables, apiKey: 'demo-pro', cacheControl });
  return { data, ...(errors && { errors }) } as Answer;
}

const create = (gateway: Gateway, input?: object) => execute(gateway, CREATE, variablesOf(input));
const nameFrom = async (gateway: Gateway, cacheControl?: string): Promise<unknown> =>
  (await execute(gateway, '{ pet(id: "250") { name } }', {}, cacheControl)).data.pet?.name;
const isFull = (redis: RedisServer, isSo: boolean) => redis.command('CONFIG', 'SET', 'maxmemory', isSo ? '1' : '0');

describe.skipIf(!redisIsHere)('two replicas with Redis', () => {
  test('make one POST of concurrent submits, with one outcome', async () => {
    const { petApi, one, other, posts } = await startReplicas();
    petApi.fault = slow(200);
    const answers = await Promise.all([create(one), create(other), create(one), create(other)]);
    expect(posts()).toBe(1);
    expect(answers[0]?.data?.createPet.pet.id).toEqual(expect.any(String));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  test('replay each other’s outcomes, and reject another input', async () => {
    const { one, other, posts } = await startReplicas();
    const first = await create(one);
    expect(await create(other)).toEqual(first);
    expect(codeOf(await create(other, { name: 'Mono' }))).toBe('BAD_USER_INPUT');
    expect(posts()).toBe(1);
  });

  test('serve nothing from before the other’s create', async () => {
    const { one, other } = await startReplicas();
    expect(await nameFrom(other)).toBeUndefined();
    const first = await create(one);
    expect(first.data?.createPet.pet.id).toBe('250');
    expect(await create(other)).toEqual(first);
    expect(await nameFrom(other)).toBe('Momo');
  });

  test('hear of a create after no-cache reads', async () => {
    const { one, other } = await startReplicas();
    expect(await nameFrom(other, 'no-cache')).toBeUndefined();
    expect(codeOf(await create(one))).toBeUndefined();
    await until(async () => (await nameFrom(other, 'max-age=3600')) === 'Momo');
  });

  test('hear of a create that Redis did not take when it was over', async () => {
    const { redis, one, other } = await startReplicas();
    expect(await nameFrom(other, 'max-age=3600')).toBeUndefined();
    await isFull(redis, true);
    await until(async () => (await healthOf(one)).includes('degraded'));
    expect(codeOf(await create(one, { idempotencyKey: null }))).toBeUndefined();
    await isFull(redis, false);
    await until(async () => (await nameFrom(other, 'max-age=3600')) === 'Momo');
  });

  test.each<[string, (redis: RedisServer) => unknown, (redis: RedisServer) => unknown]>([
    ['is gone', (redis) => redis.kill(), (redis) => redis.start()],
    ['hangs', (redis) => redis.freeze(), (redis) => redis.thaw()],
    ['is full', (redis) => isFull(redis, true), (redis) => isFull(redis, false)],
  ])('send nothing with a key while Redis %s, and one POST after it', async (_how, spoil, mend) => {
    const { redis, one, other, posts } = await startReplicas();
    await spoil(redis);
    await until(async () => codeOf(await create(one)) === 'IDEMPOTENCY_UNAVAILABLE');
    const refused = await create(one);
    expect(refused.errors?.[0]?.extensions.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(posts()).toBe(0);
    // Without a key there is nothing to store.
    expect((await create(one, { idempotencyKey: null })).errors).toBeUndefined();
    await mend(redis);
    for (const gateway of [one, other])
      await until(async () => codeOf(await create(gateway)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect(await create(other)).toEqual(await create(one));
    expect(posts()).toBe(2);
  });

  test('store an outcome that Redis missed as soon as it is back', async () => {
    const { redis, petApi, one, posts } = await startReplicas();
    petApi.fault = slow(200);
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
    const { redis, petApi, url, other, posts } = await startReplicas();
    const [killed, third] = await Promise.all([
      startProcess(url, '--redis-url', redis.url),
      startProcess(url, '--redis-url', redis.url),
    ]);
    await killWithin(petApi, killed, async () => third);
    expect(codeOf(await third.create())).toBe('OUTCOME_UNKNOWN');
    expect(codeOf(await create(other))).toBe('OUTCOME_UNKNOWN');
    expect(posts()).toBe(1);
  });
});

describe('one process with a state file', () => {
  test('knows outcomes after kill -9', async () => {
    const petApi = createTestPetApi();
    const { url } = closing.use(await petApi.listen());
    const start = () => startProcess(url, '--state-file', join(folder, 'outcomes.db'));
    const before = await start();
    const [added, refused] = [await before.create(), await before.create({ name: '', idempotencyKey: 'k' })];
    expect(added.errors ?? refused.errors).toBeUndefined();
    await before.kill();
    const after = await start();
    expect(await after.create()).toEqual(added);
    expect(await after.create({ name: '', idempotencyKey: 'k' })).toEqual(refused);
    expect(codeOf(await after.create({ name: 'Mono' }))).toBe('BAD_USER_INPUT');
    expect(countPosts(petApi)).toBe(2);
  });

  test('sends nothing again after kill -9 during a POST', async () => {
    const petApi = createTestPetApi();
    const { url } = closing.use(await petApi.listen());
    const start = () => startProcess(url, '--state-file', join(folder, 'killed.db'));
    const after = await killWithin(petApi, await start(), start);
    expect(codeOf(await after.create())).toBe('OUTCOME_UNKNOWN');
    expect(countPosts(petApi)).toBe(1);
  });
});
