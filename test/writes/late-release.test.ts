import { expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { on, slow } from '../support/pet-api/fault.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { codesOf } from '../support/transports.ts';
import { createWorld } from '../support/world.ts';

const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: 3, idempotencyKey: "k" }) { pet { id } } }';

test('a lease that Redis did not take in time is given up, and not the one of the next attempt', async () => {
  const key = { ...PLANS.pro, windows: 'fixed', tells: 'minute' } as const;
  await using world = await createWorld({ seed: 1, startsAt: '2026-11-21T09:41:07Z', keys: { key } });
  const redis = createRedis({ seed: 1 });
  const [petql] = await startReplicas(world, redis, 1);
  await world.until(petql.create(1));

  redis.fault = 'down';
  expect(codesOf(await world.until(petql.ask(CREATE)))).toEqual(['IDEMPOTENCY_UNAVAILABLE']);
  redis.fault = undefined;
  world.petApi.fault = on('create', slow(3_000));
  const first = petql.ask(CREATE);
  await world.pass(2_000);
  const second = petql.ask(CREATE);

  const [one, other] = await world.until(Promise.all([first, second]));
  expect(one.errors).toBeUndefined();
  expect(other.data).toEqual(one.data);
  expect(world.petApi.log.filter(({ kind }) => kind === 'create')).toHaveLength(2);
});
