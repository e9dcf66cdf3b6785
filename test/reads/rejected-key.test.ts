import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import type { Answer } from '../support/operation.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const LIST = '{ pets(limit: 100) { id } }';
const PET = '{ pet(id: "1150") { id } }';
const CREATE = 'mutation { createPet(input: { name: "Neo", categoryId: 1 }) { pet { id } } }';
/** A minute: everything that is asked for is cached for longer than a test. */
const MAX_AGE_MS = 60_000;

const createRejectingWorld = () =>
  createWorld({
    seed: 1,
    startsAt: '2026-11-21T11:59:13Z',
    keys: { key: { ...PLANS.business, windows: 'fixed', tells: 'minute' } },
  });
const codesOf = ({ errors = [] }: Answer) => errors.map(({ extensions }) => extensions.code);

/** Asks for the list and the pet, each by itself. Returns the error codes, and `data` for an answer. */
async function outcomes(world: World, petql: Petql, cacheControl = ''): Promise<string[]> {
  const answers = [];
  for (const document of [LIST, PET]) answers.push(await world.until(petql.ask(document, { cacheControl })));
  return answers.flatMap((answer) => (answer.errors ? codesOf(answer) : ['data']));
}

describe.each([
  ['a read', LIST, 'no-cache'],
  ['a create', CREATE, ''],
] as const)('a key that the upstream rejects in %s gets no data', (_what, document, cacheControl) => {
  test('from this process at once', async () => {
    await using world = await createRejectingWorld();
    const petql = await world.start({ maxAgeMs: MAX_AGE_MS });
    for (let time = 0; time < 2; time += 1) expect(await outcomes(world, petql)).toEqual(['data', 'data']);
    world.petApi.fault = () => ({ status: 401 });
    expect(codesOf(await world.until(petql.ask(document, { cacheControl })))).toEqual(['UNAUTHENTICATED']);
    expect(await outcomes(world, petql)).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
    await world.pass(11_000);
    expect(await outcomes(world, petql, 'only-if-cached')).toEqual(['NOT_CACHED', 'NOT_CACHED']);
    expect(await outcomes(world, petql)).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
  });

  test('from other replicas and their lists within a second', async () => {
    await using world = await createRejectingWorld();
    const redis = createRedis({ seed: 1 });
    const replicas = await startReplicas(world, redis, 3, { maxAgeMs: MAX_AGE_MS });
    const [one, ...others] = replicas;
    for (const replica of replicas) expect(await outcomes(world, replica)).toEqual(['data', 'data']);
    world.petApi.fault = () => ({ status: 401 });
    expect(codesOf(await world.until(one.ask(document, { cacheControl })))).toEqual(['UNAUTHENTICATED']);
    await world.pass(1_000);
    for (const other of others) {
      expect(await outcomes(world, other, 'only-if-cached')).toEqual(['NOT_CACHED', 'NOT_CACHED']);
    }
    await world.pass(10_000);
    expect(await outcomes(world, one, 'only-if-cached')).toEqual(['NOT_CACHED', 'NOT_CACHED']);
    expect(await outcomes(world, one, 'max-age=3600')).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
  });
});

test('a replica that has read nothing announces the rejection of its create', async () => {
  await using world = await createRejectingWorld();
  const [one, other] = await startReplicas(world, createRedis({ seed: 1 }), 2, { maxAgeMs: MAX_AGE_MS });
  expect(await outcomes(world, one)).toEqual(['data', 'data']);
  world.petApi.fault = () => ({ status: 401 });
  expect(codesOf(await world.until((other as Petql).ask(CREATE)))).toEqual(['UNAUTHENTICATED']);
  await world.pass(1_000);
  expect(await outcomes(world, one, 'only-if-cached')).toEqual(['NOT_CACHED', 'NOT_CACHED']);
});

test('a key that the upstream rejects right after a 429 may be banned, and all replicas serve what they have', async () => {
  await using world = await createRejectingWorld();
  const redis = createRedis({ seed: 1 });
  const replicas = await startReplicas(world, redis, 2, { maxAgeMs: MAX_AGE_MS });
  for (const replica of replicas) expect(await outcomes(world, replica)).toEqual(['data', 'data']);
  const statuses = [429, 401];
  world.petApi.fault = () => ({ status: statuses.shift() ?? 401, headers: { 'retry-after': '1' } });
  const rejected = await world.until(replicas[0].ask(LIST, { cacheControl: 'no-cache', waitMs: 30_000 }));
  expect([codesOf(rejected), statuses]).toEqual([['UNAUTHENTICATED'], []]);
  await world.pass(1_000);
  for (const replica of replicas) expect(await outcomes(world, replica)).toEqual(['data', 'data']);
});

test('rejected keys that were made up leave no lists in Redis', async () => {
  await using world = await createRejectingWorld();
  const redis = createRedis({ seed: 1 });
  const [petql] = await startReplicas(world, redis, 1);
  for (let key = 0; key < 3; key += 1) {
    expect(codesOf(await world.until(petql.ask(LIST, { key: `made up ${key}` })))).toEqual(['UNAUTHENTICATED']);
  }
  await world.pass(1_000);
  expect(redis.names().filter((name) => /lists/.test(name))).toEqual([]);
});
