import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import type { Redis } from '../support/redis-double.ts';
import { codesOf } from '../support/transports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const SOME = 100;
/** More than petql keeps accounts of while Redis is away. */
const MANY = 1_200;
const QUOTA = '{ rateLimit { plan windows { used } } }';
const PETS = '{ pets { id } }';
const GET = '{ pet(id: 4711) { id } }';
const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: 3 }) { pet { id } } }';
/** An upstream that knows the key would send them; a firewall may send anything. */
const LIMITS = { limit: 60, remaining: 59, reset: 4_000_000_000 };

async function createQuietWorld(): Promise<World> {
  const key = { ...PLANS.free, windows: 'fixed', tells: 'nothing' } as const;
  return createWorld({ seed: 5, startsAt: '2026-11-21T09:41:07Z', keys: { key } });
}

/** Sends an operation with each of many keys that nobody has. Returns the error codes. */
async function flood(world: World, petql: Petql, document: string, keys = SOME): Promise<Set<string>> {
  const answers = Array.from({ length: keys }, (_, index) => petql.ask(document, { key: `made-up-${index}` }));
  return new Set((await world.until(Promise.all(answers))).flatMap(codesOf));
}

function accountsIn(redis: Redis): number {
  return redis.names().filter((name) => name.startsWith('petql:account:')).length;
}

describe('with Redis, made-up keys', () => {
  test('leave nothing behind where the upstream rejects them, and nothing where they read their quota', async () => {
    await using world = await createQuietWorld();
    const redis = createRedis({ seed: 5 });
    const [petql] = await startReplicas(world, redis, 1);
    expect(await flood(world, petql, PETS)).toEqual(new Set(['UNAUTHENTICATED']));
    expect(world.petApi.log).toHaveLength(SOME);
    await flood(world, petql, QUOTA);
    expect(accountsIn(redis)).toBe(0);
  });

  test.each([
    ['503', {}, 0],
    ['503', LIMITS, 0],
    ['400', LIMITS, 0],
    ['403', LIMITS, 0],
    ['404', LIMITS, 0],
    ['429', { ...LIMITS, retryAfterMs: 600_000 }, 10 * MINUTE_MS],
  ])('are forgotten after a %s with %o, the lease of their calls and their pause', async (status, told, pauseMs) => {
    await using world = await createQuietWorld();
    const redis = createRedis({ seed: 5 });
    const [petql] = await startReplicas(world, redis, 1);
    world.petApi.fault = () => ({ status: Number(status), told });
    for (const document of [GET, CREATE]) await flood(world, petql, document);
    await world.pass(pauseMs);
    expect(accountsIn(redis)).toBe(SOME);
    await world.pass(2 * MINUTE_MS);
    expect(accountsIn(redis)).toBe(0);
  });

  test('have at most 1,000 accounts in Redis for each replica', async () => {
    await using world = await createQuietWorld();
    const redis = createRedis({ seed: 5 });
    const [petql] = await startReplicas(world, redis, 1);
    world.petApi.fault = () => ({ status: 429, headers: { 'retry-after': '86400' } });
    await flood(world, petql, PETS, MANY);
    expect(accountsIn(redis)).toBe(1_000);
    // A key that has no room there becomes proven, and gets it.
    world.petApi.fault = undefined;
    expect((await world.until(petql.ask(PETS))).errors).toBeUndefined();
    expect(accountsIn(redis)).toBe(1_001);
  });

  test('store nothing of the quota that they read while Redis is away, and little of their calls', async () => {
    await using world = await createQuietWorld();
    const redis = createRedis({ seed: 5 });
    const [petql] = await startReplicas(world, redis, 1);
    await world.pass(MINUTE_MS);
    redis.fault = 'down';
    await flood(world, petql, QUOTA);
    redis.fault = undefined;
    await world.pass(10_000);
    expect(accountsIn(redis)).toBe(0);

    redis.fault = 'down';
    await flood(world, petql, PETS, MANY);
    redis.fault = undefined;
    await world.pass(10_000);
    expect(accountsIn(redis)).toBeLessThanOrEqual(1_000);
    await world.pass(2 * MINUTE_MS);
    expect(accountsIn(redis)).toBe(0);
  });
});

test('the day of a proven key stays counted however long it is idle, where no header tells of it', async () => {
  await using world = await createQuietWorld();
  const petql = await world.start({ plan: 'free', stateFile: world.newFile() });
  await world.until(petql.create(5));
  await world.pass(5 * MINUTE_MS);
  expect((await petql.rateLimit()).day.used).toBe(5);
  await world.pass(13 * HOUR_MS);
  world.petApi.fault = () => ({ status: 503 });
  await world.until(petql.create(1));
  await world.pass(5 * MINUTE_MS);
  expect((await petql.rateLimit()).day.used).toBe(6);
  await world.pass(DAY_MS);
  expect((await petql.rateLimit()).day.used).toBe(0);
});
