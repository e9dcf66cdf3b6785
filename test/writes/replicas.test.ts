import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';
import type { RecordedSandbox } from '../support/start-recorded-sandbox.ts';
import { until } from '../support/until.ts';

let sandbox: RecordedSandbox;
let running: PetqlProcess[];

beforeEach(async () => {
  sandbox = await startRecordedSandbox();
  running = [];
});
afterEach(async () => {
  for (const petql of running) {
    petql.kill('SIGKILL');
    await petql.exited;
  }
  await sandbox.close();
});

async function start(...args: string[]): Promise<PetqlProcess> {
  const upstream = ['--pet-api-url', sandbox.url, '--upstream-timeout-ms', '1000', '--plan', 'pro'];
  const petql = await startPetql(['--port', '0', ...upstream, ...args]);
  running.push(petql);
  return petql;
}

async function kill(petql: PetqlProcess): Promise<void> {
  petql.kill('SIGKILL');
  await petql.exited;
}

interface Told {
  readonly data?: { readonly createPet: any };
  readonly errors?: readonly { readonly message: string; readonly extensions: any }[];
}

async function ask({ address }: PetqlProcess, query: string, variables = {}, cacheControl = ''): Promise<any> {
  const response = await fetch(address, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer demo-pro',
      ...(cacheControl ? { 'cache-control': cacheControl } : {}),
    },
    body: JSON.stringify({ query, variables }),
  });
  return response.json();
}

async function create(petql: PetqlProcess, input: Record<string, unknown> = {}): Promise<Told> {
  const query = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } userErrors { code } } }';
  const { data, errors } = await ask(petql, query, {
    input: { name: 'Momo', categoryId: '3', idempotencyKey: 'momo-1', ...input },
  });
  return { data, errors };
}

const codeOf = ({ errors }: Told) => errors?.[0]?.extensions.code;
const posts = () => sandbox.calls.filter(({ method }) => method === 'POST').length;

describe.skipIf(!redisIsHere)('two replicas that share a Redis', () => {
  let redis: RedisServer;
  let one: PetqlProcess;
  let other: PetqlProcess;

  beforeEach(async () => {
    redis = await startRedis();
    [one, other] = await Promise.all([start('--redis-url', redis.url), start('--redis-url', redis.url)]);
  });
  afterEach(() => redis.close());

  test('make one POST of what is submitted to both at the same time, and give one answer', async () => {
    sandbox.setFault(() => ({ delayMs: 200 }));
    const answers = await Promise.all([create(one), create(other), create(one), create(other)]);
    expect(posts()).toBe(1);
    expect(answers[0]?.data?.createPet.pet.id).toEqual(expect.any(String));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  test('give each other’s outcomes, and refuse another input under their keys', async () => {
    const first = await create(one);
    expect(await create(other)).toEqual(first);
    expect(codeOf(await create(other, { name: 'Mono' }))).toBe('BAD_USER_INPUT');
    expect(posts()).toBe(1);
  });

  test('serve nothing that was known before the other one’s creation', async () => {
    const name = async () => (await ask(other, '{ pet(id: "250") { name } }')).data.pet?.name;
    expect(await name()).toBeUndefined();
    const first = await create(one);
    expect(first.data?.createPet.pet.id).toBe('250');
    expect(await create(other)).toEqual(first);
    expect(await name()).toBe('Momo');
  });

  const nameFrom = async (petql: PetqlProcess, cacheControl: string) =>
    (await ask(petql, '{ pet(id: "250") { name } }', {}, cacheControl)).data.pet?.name;

  test('nor where all that was asked before it was for the newest', async () => {
    expect(await nameFrom(other, 'no-cache')).toBeUndefined();
    expect(codeOf(await create(one))).toBeUndefined();
    await until(async () => (await nameFrom(other, 'max-age=3600')) === 'Momo');
  });

  test('nor where Redis took no word of the creation when it was over', async () => {
    expect(await nameFrom(other, 'max-age=3600')).toBeUndefined();
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    const health = new URL('/health/ready', one.address);
    await until(async () => ((await (await fetch(health)).json()) as { redis: string }).redis === 'away');
    expect(codeOf(await create(one, { idempotencyKey: null }))).toBeUndefined();
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await until(async () => (await nameFrom(other, 'max-age=3600')) === 'Momo');
  });

  test('send nothing again when one of them dies while its POST is under way', async () => {
    sandbox.setFault(() => ({ delayMs: 60_000 }));
    const lost = create(one).catch(() => 'lost');
    await until(() => posts() === 1);
    await kill(one);
    expect(await lost).toBe('lost');
    sandbox.setFault(undefined);
    expect(codeOf(await create(other))).toBe('OUTCOME_UNKNOWN');
    const started = await start('--redis-url', redis.url);
    expect(codeOf(await create(started))).toBe('OUTCOME_UNKNOWN');
    expect(codeOf(await create(other))).toBe('OUTCOME_UNKNOWN');
    expect(posts()).toBe(1);
  });

  test('send nothing while Redis is gone, and then what is repeated', async () => {
    await redis.kill();
    const refused = await create(one);
    expect(codeOf(refused)).toBe('IDEMPOTENCY_UNAVAILABLE');
    expect(refused.errors?.[0]?.extensions.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    expect(posts()).toBe(0);
    // Without a key there is nothing to keep.
    expect((await create(one, { idempotencyKey: null })).errors).toBeUndefined();
    await redis.start();
    await until(async () => codeOf(await create(one)) !== 'IDEMPOTENCY_UNAVAILABLE');
    await until(async () => codeOf(await create(other)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect(await create(other)).toEqual(await create(one));
    expect(posts()).toBe(2);
  });

  test('send nothing while Redis does not answer or takes no writes, and then what is repeated', async () => {
    redis.freeze();
    expect(codeOf(await create(one))).toBe('IDEMPOTENCY_UNAVAILABLE');
    redis.thaw();
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await until(async () => codeOf(await create(one)) === 'IDEMPOTENCY_UNAVAILABLE');
    expect(posts()).toBe(0);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await until(async () => codeOf(await create(other)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect((await create(other)).errors).toBeUndefined();
    expect(posts()).toBe(1);
  });

  /** What comes of a creation whose outcome Redis missed; its memory is gone with it. */
  async function createAsRedisDies(): Promise<Told> {
    sandbox.setFault(() => ({ delayMs: 500 }));
    const creating = create(one);
    await until(() => posts() === 1);
    await redis.kill();
    const created = await creating;
    expect(created.errors).toBeUndefined();
    return created;
  }

  test('know an outcome that Redis missed as soon as it is back', async () => {
    const first = await createAsRedisDies();
    await redis.start();
    await until(async () => /petql:record:/.test(await redis.command('KEYS', '*')));
    await until(async () => codeOf(await create(one)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect(await create(one)).toEqual(first);
    expect(posts()).toBe(1);
  });

  test('know it too where another replica has made another key secret by then', async () => {
    await kill(other);
    const first = await createAsRedisDies();
    one.kill('SIGSTOP');
    await redis.start();
    const fresh = await start('--redis-url', redis.url);
    await until(async () => /petql:key-secret/.test(await redis.command('KEYS', 'petql:key-secret')));
    one.kill('SIGCONT');
    await until(async () => /petql:record:/.test(await redis.command('KEYS', 'petql:record:*')));
    await until(async () => codeOf(await create(one)) !== 'IDEMPOTENCY_UNAVAILABLE');
    expect(await create(one)).toEqual(first);
    expect(await create(fresh)).toEqual(first);
    expect(posts()).toBe(1);
  }, 40_000);
});

describe('one process with a state file', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petql-writes-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  test('knows outcomes after kill -9', async () => {
    const args = ['--state-file', join(folder, 'state.db')];
    const before = await start(...args);
    const [added, refused] = [await create(before), await create(before, { name: '', idempotencyKey: 'k' })];
    expect(added.errors ?? refused.errors).toBeUndefined();
    await kill(before);
    const after = await start(...args);
    expect(await create(after)).toEqual(added);
    expect(await create(after, { name: '', idempotencyKey: 'k' })).toEqual(refused);
    expect(codeOf(await create(after, { name: 'Mono' }))).toBe('BAD_USER_INPUT');
    expect(posts()).toBe(2);
  });

  test('does not know what came of a POST that kill -9 interrupted, and sends no other', async () => {
    const args = ['--state-file', join(folder, 'state.db')];
    const before = await start(...args);
    sandbox.setFault(() => ({ delayMs: 60_000 }));
    const lost = create(before).catch(() => 'lost');
    await until(() => posts() === 1);
    await kill(before);
    expect(await lost).toBe('lost');
    sandbox.setFault(undefined);
    const after = await start(...args);
    expect(codeOf(await create(after))).toBe('OUTCOME_UNKNOWN');
    expect(codeOf(await create(after))).toBe('OUTCOME_UNKNOWN');
    expect(posts()).toBe(1);
  });
});
