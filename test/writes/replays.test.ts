import { expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { RESETS, on } from '../support/pet-api/fault.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { codesOf } from '../support/transports.ts';
import { createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: 3, idempotencyKey: "k" }) { pet { id } } }';
const PETS = '{ pets { id } }';
const REPLAYS = 10;

function createProWorld(): Promise<World> {
  const key = { ...PLANS.pro, windows: 'fixed', tells: 'minute' } as const;
  return createWorld({ seed: 1, startsAt: '2026-11-21T09:41:07Z', keys: { key } });
}

const ask = (world: World, petql: Petql, document: string, key?: string) =>
  world.until(petql.ask(document, key === undefined ? {} : { key }));

test('replays of one unknown outcome empty the caches once for each replica', async () => {
  await using world = await createProWorld();
  const [one, other] = await startReplicas(world, createRedis({ seed: 1 }), 2, { maxAgeMs: 600_000 });
  expect((await ask(world, one, PETS)).errors).toBeUndefined();
  world.petApi.fault = on('create', RESETS);
  expect(codesOf(await ask(world, one, CREATE))).toEqual(['OUTCOME_UNKNOWN']);
  world.petApi.fault = undefined;
  await world.pass(2_000);

  const calls = world.petApi.log.length;
  for (let replays = 0; replays < REPLAYS; replays += 1) {
    for (const petql of [one, other as Petql]) {
      expect(codesOf(await ask(world, petql, CREATE))).toEqual(['OUTCOME_UNKNOWN']);
      await world.pass(2_000);
      for (const reader of [one, other as Petql]) expect((await ask(world, reader, PETS)).errors).toBeUndefined();
    }
  }
  expect(world.petApi.log.length - calls).toBeLessThanOrEqual(4);
});

test('replays of a key that is not proven store nothing for other replicas', async () => {
  await using world = await createProWorld();
  const redis = createRedis({ seed: 1 });
  const [petql] = await startReplicas(world, redis, 1);
  world.petApi.fault = on('create', RESETS);
  for (let replays = 0; replays < REPLAYS; replays += 1) {
    expect(codesOf(await ask(world, petql, CREATE, 'made-up'))).toEqual(['OUTCOME_UNKNOWN']);
  }
  expect(redis.names().filter((name) => name.startsWith('petql:lists:'))).toEqual([]);
});
