import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { brokenPromises } from '../support/check.ts';
import type { StrictPlanOptions } from '../support/pet-api/strict-plan.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { chooseCases } from '../support/seed.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const WINDOWS = ['fixed', 'sliding', 'first'] as const;

function createFreeWorld(options: Partial<StrictPlanOptions> = {}): Promise<World> {
  const key: StrictPlanOptions = { ...PLANS.free, windows: 'fixed', tells: 'changing', ...options };
  return createWorld({ seed: 91, startsAt: '2026-11-21T09:41:07Z', keys: { key } });
}

/** The most calls of petql that arrived within any window of this length. */
function mostWithin({ petApi }: World, lengthMs: number): number {
  const times = petApi.log.map(({ atMs }) => atMs);
  let first = 0;
  return Math.max(
    ...times.map((atMs, index) => {
      while ((times[first] ?? 0) <= atMs - lengthMs) first += 1;
      return index - first + 1;
    }),
  );
}

const warningsOf = ({ logLines }: Petql, text: string) =>
  logLines.filter(({ level, msg }) => level === 40 && msg.includes(text));

describe.each(chooseCases(WINDOWS, 2))('with %s windows, two petqls without a common store share a key', (windows) => {
  test('for three days, half each, and meet no 429', async () => {
    await using world = await createFreeWorld({ windows });
    const petqls = [await world.start({ planShare: 50 }), await world.start({ planShare: 50 })];
    await world.saturate(petqls, 3 * DAY_MS, { clients: 2 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(world.petApi.log.length).toBeGreaterThanOrEqual(0.9 * 3 * PLANS.free.perDay);
  }, 120_000);
});

describe('a cron job uses its part of the key', () => {
  /** It makes so many calls each hour. */
  async function withCron(world: World, petql: Petql, calls: number): Promise<number> {
    for (let hour = 0; hour < 24; hour += 1) {
      world.petApi.countOthers('key', calls);
      await world.saturate([petql], HOUR_MS, { clients: 2 });
    }
    return world.petApi.log.filter(({ status }) => status === 201).length;
  }

  test('which changes nothing for petql', async () => {
    await using alone = await createFreeWorld();
    const before = await withCron(alone, await alone.start({ planShare: 50 }), 0);
    await using world = await createFreeWorld();
    const petql = await world.start({ planShare: 50 });
    expect(await withCron(world, petql, 20)).toBeGreaterThanOrEqual(0.98 * before);
    expect(brokenPromises(world.history())).toEqual([]);
    expect(warningsOf(petql, 'other clients use more')).toEqual([]);
  });

  test('and more than its part is taken from petql’s, which the log says once a window', async () => {
    await using world = await createFreeWorld({ tells: 'minute' });
    const petql = await world.start({ planShare: 50 });
    world.petApi.countOthers('key', 50);
    await world.until(petql.create(2));
    await world.saturate([petql], 30_000);
    expect(world.petApi.log).toHaveLength(10);
    expect(warningsOf(petql, 'other clients use more')).toMatchObject([{ window: 'minute', share: 30 }]);
    await world.pass(MINUTE_MS);
    world.petApi.countOthers('key', 45);
    await world.until(petql.create(2));
    expect(warningsOf(petql, 'other clients use more')).toHaveLength(2);
    expect(world.petApi.log.filter(({ status }) => status === 429)).toEqual([]);
  });
});

describe('petql’s own calls never pass its part', () => {
  const PARTS = [
    [50, 30, 500],
    [33, 19, 330],
    [1, 1, 10],
    [57, 34, 570],
  ] as const;
  test.each(chooseCases(PARTS, 2))('of %d %: %d calls a minute, %d a day', async (planShare, perMinute, perDay) => {
    await using world = await createFreeWorld({ windows: 'sliding' });
    const petql = await world.start({ planShare });
    await world.saturate([petql], 26 * HOUR_MS, { clients: 4 });
    expect(mostWithin(world, MINUTE_MS)).toBe(perMinute);
    expect(mostWithin(world, DAY_MS)).toBe(perDay);
  });

  test('over all replicas, and without Redis', async () => {
    await using world = await createFreeWorld({ windows: 'sliding' });
    const redis = createRedis({ seed: 91 });
    const petqls = await startReplicas(world, redis, 2, { plan: 'free', planShare: 50 });
    await world.saturate(petqls, 5 * MINUTE_MS);
    expect(mostWithin(world, MINUTE_MS)).toBe(30);
    redis.fault = 'down';
    await world.saturate(petqls, 10 * MINUTE_MS);
    expect(mostWithin(world, MINUTE_MS)).toBeLessThanOrEqual(30);
  });

  test('and the plan stays visible', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ planShare: 50 });
    await world.until(petql.create(3));
    const { data } = await world.until(petql.ask('{ rateLimit { plan windows { window limit used remaining } } }'));
    expect(data?.['rateLimit']).toEqual({
      plan: 'Free',
      windows: [
        { window: 'MINUTE', limit: 30, used: 3, remaining: 27 },
        { window: 'DAY', limit: 500, used: 3, remaining: 497 },
      ],
    });
  });
});

describe('a configured plan that is smaller than what headers tell', () => {
  test('is said once in the log, with what is counted by', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: '30/500' });
    await world.until(petql.create(3));
    await world.pass(2 * MINUTE_MS);
    await world.until(petql.create(3));
    expect(warningsOf(petql, '--plan-share')).toMatchObject([{ configured: '30/500', minute: 60 }]);
  });

  test.each(['free', '120/2000', 'auto'] as const)('and %s is not', async (plan) => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan });
    await world.until(petql.create(3));
    expect(warningsOf(petql, '--plan-share')).toEqual([]);
  });
});
