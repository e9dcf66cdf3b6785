import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { between, createRandom } from '../support/random.ts';
import { brokenPromises, usedShare } from '../support/check.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { chooseCases } from '../support/seed.ts';
import type { StrictPlanOptions } from '../support/pet-api/strict-plan.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

/** Of each replica, in a burst. */
const CLIENTS = [1, 2, 3, 4, 5];
/** So many successes prove that the pet API serves the key. */
const PROOF_CALLS = 31;
/** Of each replica: more than it may wait for, so that some permits are given back. */
const LOAD = { clients: 4, batch: 40 };
const MINUTES = { free: 3.3, pro: 2.2, business: 1.2 };

const cases = (['free', 'pro', 'business'] as const).flatMap((plan) =>
  (['fixed', 'sliding'] as const).flatMap((windows) =>
    (plan === 'business' ? (['minute'] as const) : (['minute', 'nothing'] as const)).map((tells) => ({
      plan,
      windows,
      tells,
    })),
  ),
);

function createFleetWorld(seed: number, key: StrictPlanOptions): Promise<World> {
  const startsAt = new Date(Date.UTC(2026, 10, 21, 9, 41) + between(createRandom(seed), 0, 59_999)).toISOString();
  return createWorld({ seed, startsAt, keys: { key } });
}

/** What every replica shows of the day. */
async function usedOfDay(replicas: readonly Petql[]): Promise<number[]> {
  const used: number[] = [];
  for (const replica of replicas) used.push((await replica.rateLimit()).day.used);
  return used;
}

// Every third case has each plan, each kind of windows and each header.
describe.each(chooseCases(cases, 3))(
  'three replicas that saturate a $plan key ($windows windows, headers of $tells)',
  (one) => {
    const { plan, windows, tells } = one;
    const seed = 100 + cases.indexOf(one);

    test(`meet no 429, use the plan and lose no permit (seed ${seed})`, async () => {
      await using world = await createFleetWorld(seed, { ...PLANS[plan], windows, tells });
      const redis = createRedis({ seed, aheadMs: between(createRandom(seed), -5_000, 5_000) });
      const replicas = await startReplicas(world, redis, 3, { plan });
      await world.saturate(replicas, MINUTES[plan] * MINUTE_MS, LOAD);
      const { log } = world.petApi;
      expect(brokenPromises(world.history())).toEqual([]);
      expect(usedShare(log, PLANS[plan].perMinute)).toBeGreaterThanOrEqual(0.95);
      expect(await usedOfDay(replicas)).toEqual([log.length, log.length, log.length]);
      // Each second, each replica has a heartbeat, a look at the secret and at the used up key, and four at the lists.
      expect(redis.compares.won + redis.compares.lost).toBeLessThan(6 * log.length + MINUTES[plan] * 60 * 21);
    });
  },
);

test.each(chooseCases(['fixed', 'sliding'] as const, 2))(
  'three replicas on a Redis that takes 150 ms meet no 429 and lose no permit (%s windows, seed 7)',
  async (windows) => {
    await using world = await createFleetWorld(7, { ...PLANS.pro, windows, tells: 'changing' });
    const redis = createRedis({ seed: 7, latencyMs: [70, 80] });
    const replicas = await startReplicas(world, redis, 3, { plan: 'pro' });
    await world.saturate(replicas, 2.2 * MINUTE_MS, LOAD);
    const { log } = world.petApi;
    expect(brokenPromises(world.history())).toEqual([]);
    expect(usedShare(log, PLANS.pro.perMinute)).toBeGreaterThanOrEqual(0.95);
    for (const used of await usedOfDay(replicas)) expect(used).toBeGreaterThanOrEqual(log.length);
  },
);

test.each([3, 10])('%d replicas that want one key in the same moment soon have it (seed 8)', async (count) => {
  await using world = await createFleetWorld(8, { ...PLANS.business, windows: 'fixed', tells: 'minute' });
  const redis = createRedis({ seed: 8 });
  const replicas = await startReplicas(world, redis, count, { plan: 'business' });
  // The first calls find out whether the key may call.
  await world.until(replicas[0].create(PROOF_CALLS));
  for (let burst = 0; burst < 5; burst += 1) {
    const { nowMs } = world;
    await world.until(Promise.all(replicas.flatMap((replica) => CLIENTS.map(() => replica.create(1)))));
    const lastSentAtMs = Math.max(...world.petApi.log.map(({ sentAtMs }) => sentAtMs));
    expect(lastSentAtMs - nowMs).toBeLessThan(500);
    await world.pass(2_000);
  }
  const sent = PROOF_CALLS + 5 * CLIENTS.length * count;
  expect(world.petApi.log).toHaveLength(sent);
  expect(await usedOfDay(replicas)).toEqual(replicas.map(() => sent));
  expect(brokenPromises(world.history())).toEqual([]);
});

test.each([4, 8])(
  '%d replicas that read with one key at once ask Redis at most twice a call (seed 9)',
  async (count) => {
    await using world = await createFleetWorld(9, { ...PLANS.business, windows: 'fixed', tells: 'minute' });
    const redis = createRedis({ seed: 9, latencyMs: [0, 4] });
    const replicas = await startReplicas(world, redis, count, { plan: 'business', maxAgeMs: 0, maxStaleMs: 0 });
    await world.until(replicas[0].create(PROOF_CALLS));
    const [{ won, lost }, calls] = [{ ...redis.compares }, world.petApi.log.length];

    const read = async (replica: Petql) => {
      for (let done = 0; done < 20; done += 1) await replica.read(1);
    };
    await world.until(Promise.all(replicas.flatMap((replica) => Array.from({ length: 4 }, () => read(replica)))));
    const asked = redis.compares.won + redis.compares.lost - won - lost;
    expect(asked / (world.petApi.log.length - calls)).toBeLessThanOrEqual(2);
    expect(brokenPromises(world.history())).toEqual([]);
  },
);

// Seeds 1 and 4 have each kind of windows and headers.
test.each(chooseCases([1, 2, 3, 4], 3))(
  'a replica that is killed while it calls costs no 429 (seed %d)',
  async (seed) => {
    const windows = seed % 2 === 0 ? 'fixed' : 'sliding';
    await using world = await createFleetWorld(seed, { ...PLANS.pro, windows, tells: seed < 3 ? 'minute' : 'nothing' });
    const redis = createRedis({ seed });
    const [victim, ...others] = await startReplicas(world, redis, 3, { plan: 'pro' });
    const random = createRandom(seed);
    const work = Array.from({ length: 4 }, () => victim.create(40));
    for (const operation of work) operation.catch(() => {});
    setTimeout(() => victim.kill(), between(random, 500, 5_000));
    await world.saturate(others, 2.2 * MINUTE_MS, LOAD);
    const { log } = world.petApi;
    expect(brokenPromises(world.history())).toEqual([]);
    expect(usedShare(log, PLANS.pro.perMinute)).toBeGreaterThanOrEqual(0.85);
    for (const used of await usedOfDay(others)) expect(used).toBeGreaterThanOrEqual(log.length);
  },
);
