import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway } from '../../src/index.ts';
import { on, slow } from '../support/pet-api/fault.ts';
import type { PetApi } from '../support/pet-api/pet-api.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { PET_API_URL, createTestPetApi } from '../support/start-gateway.ts';

describe.skipIf(!redisIsHere)('two replicas that share a Redis', () => {
  let redis: RedisServer;
  let petApi: PetApi;
  let one: Gateway;
  let other: Gateway;
  /** A key of the test's own, so that no test reads what another one left in Redis. */
  let apiKey: string;
  let tests = 0;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());

  beforeEach(async () => {
    apiKey = `key-${(tests += 1)}`;
    petApi = createTestPetApi({
      pets: petSeeds(30, ['available']),
      keys: { [apiKey]: { perMinute: 300, perDay: 10_000 } },
    });
    const make = () =>
      createGateway({
        petApiUrl: PET_API_URL,
        dispatcher: petApi.connect(),
        redisUrl: redis.url,
        maxAgeMs: 60_000,
        maxWaitMs: 5_000,
      });
    one = make();
    other = make();
    return () => Promise.all([one.close(), other.close()]);
  });

  const ask = async (gateway: Gateway, document: string, cacheControl?: string) => {
    const { data, errors, extensions } = await gateway.execute({ document, apiKey, cacheControl });
    expect(errors).toBeUndefined();
    return { data: data as Record<string, any>, usage: extensions?.['petql'] as Record<string, any> };
  };
  const NAMES = '{ pets(limit: 100) { id name } }';
  const CREATE = 'mutation { createPet(input: { name: "Neo", categoryId: 1, status: AVAILABLE }) { pet { id } } }';

  test('share a complete list, with its age', async () => {
    const first = await ask(one, NAMES);
    await expect.poll(async () => (await ask(other, NAMES)).data).toEqual(first.data);
    const { usage, data } = await ask(other, '{ petsById(ids: ["3", "77"]) { id } pets(status: AVAILABLE) { id } }');
    expect(data['petsById']).toEqual([{ id: '3' }, null]);
    expect(usage).toMatchObject({ upstreamCalls: 0, savedCalls: 3 });
    expect(usage['oldestAgeMs']).toBeGreaterThan(0);
    expect(petApi.log).toHaveLength(1);
  });

  test("see each other's writes", async () => {
    await ask(one, NAMES);
    await ask(other, NAMES);
    await ask(one, CREATE);
    await expect.poll(async () => (await ask(other, NAMES)).data['pets']).toContainEqual({ id: '31', name: 'Neo' });
    await ask(other, CREATE);
    await expect.poll(async () => (await ask(one, NAMES)).data['pets']).toContainEqual({ id: '32', name: 'Neo' });
  });

  test('do not share a list that was called for before a write was over', async () => {
    await ask(one, '{ pet(id: "1") { id } }');
    petApi.fault = on(['list', 'get'], slow(400));
    const early = ask(one, NAMES);
    await expect.poll(() => petApi.log.length).toBe(2);
    await ask(other, CREATE);
    petApi.fault = undefined;
    expect((await early).data['pets']).toHaveLength(30);
    for (const gateway of [one, other]) {
      await expect.poll(async () => (await ask(gateway, NAMES)).data['pets']).toHaveLength(31);
    }
  });

  test('call for no-cache', async () => {
    await ask(one, NAMES);
    expect((await ask(other, NAMES, 'no-cache')).usage).toMatchObject({ upstreamCalls: 1 });
  });

  test('store no API key', async () => {
    await ask(one, NAMES);
    const keys = await redis.command('KEYS', '*');
    expect(keys).toContain('petql:lists:');
    expect(keys).not.toContain(apiKey);
  });

  test('work alone while Redis is unavailable, and share again after it', async () => {
    await ask(one, NAMES);
    await redis.kill();
    const alone = await ask(other, NAMES, 'max-stale=60');
    expect(alone.data['pets']).toHaveLength(30);
    expect((await ask(one, NAMES)).usage).toMatchObject({ upstreamCalls: 0 });
    await redis.start();
    const neo = { id: '31', name: 'Neo' };
    await ask(one, CREATE);
    expect((await ask(one, NAMES)).data['pets']).toContainEqual(neo);
    await expect
      .poll(async () => (await ask(other, NAMES)).data['pets'].some(({ name }: { name: string }) => name === 'Neo'))
      .toBe(true);
  });
});
