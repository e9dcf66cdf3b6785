import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { between, createRandom } from '../support/random.ts';
import { brokenPromises } from '../support/check.ts';
import { chooseCases } from '../support/seed.ts';
import type { StrictPlanOptions } from '../support/pet-api/strict-plan.ts';
import { createRedis } from '../support/redis-double.ts';
import { HOUR_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const SMALL = { perMinute: 60, perDay: 200 };
const PLAN = '60/200';

function createSmallWorld(options: Partial<StrictPlanOptions> = {}, seed = 3): Promise<World> {
  const key: StrictPlanOptions = { ...SMALL, windows: 'fixed', tells: 'nothing', ...options };
  return createWorld({ seed, startsAt: '2026-11-21T09:41:07Z', keys: { key } });
}

const ENDS: readonly (readonly [string, (petql: Petql, stateFile: string) => Promise<string>])[] = [
  ['stop', async (petql, stateFile) => petql.stop().then(() => stateFile)],
  ['kill -9', async (petql) => petql.kill()],
];

describe.each(ENDS)('after a %s', (_name, end) => {
  test('a used-up day stays used up, where no header tells of it', async () => {
    await using world = await createSmallWorld();
    const stateFile = world.newFile();
    const before = await world.start({ plan: PLAN, stateFile });
    await world.saturate([before], 5 * MINUTE_MS, { clients: 4, batch: 10 });
    const spent = world.petApi.log.length;
    expect(spent).toBeGreaterThanOrEqual(0.98 * SMALL.perDay);
    const after = await world.start({ plan: PLAN, stateFile: await world.until(end(before, stateFile)) });
    await world.pass(HOUR_MS);
    const { errors } = await world.until(after.create(5, { waitMs: 1_000 }));
    expect(errors?.map(({ extensions }) => extensions)).toContainEqual(
      expect.objectContaining({ code: 'RATE_LIMITED', window: 'DAY' }),
    );
    expect(world.petApi.log.length).toBeLessThanOrEqual(SMALL.perDay);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('a used-up minute stays used up, and the next one is not', async () => {
    await using world = await createSmallWorld({ windows: 'sliding' });
    const stateFile = world.newFile();
    const before = await world.start({ plan: PLAN, stateFile });
    await world.saturate([before], 10_000, { clients: 4, batch: 10 });
    expect(world.petApi.log).toHaveLength(60);
    const after = await world.start({ plan: PLAN, stateFile: await world.until(end(before, stateFile)) });
    const { errors } = await world.until(after.create(1, { waitMs: 1_000 }));
    expect(errors?.[0]?.extensions.code).toBe('RATE_LIMITED');
    await world.saturate([after], 3 * MINUTE_MS, { clients: 4, batch: 10 });
    expect(world.petApi.log.length).toBeGreaterThanOrEqual(120);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('a pause holds', async () => {
    await using world = await createSmallWorld({ tells: 'minute' });
    const stateFile = world.newFile();
    world.petApi.fault = () => ({ status: 429, headers: { 'retry-after': '300' } });
    const before = await world.start({ plan: PLAN, stateFile });
    await world.until(before.create(1, { waitMs: 0 }));
    const after = await world.start({ plan: PLAN, stateFile: await world.until(end(before, stateFile)) });
    await world.saturate([after], 4 * MINUTE_MS, { clients: 2, batch: 2 });
    expect(world.petApi.log).toHaveLength(1);
    world.petApi.fault = () => undefined;
    await world.pass(MINUTE_MS + 5_000);
    expect(createdIn(await world.until(after.create(3)))).toBe(3);
    expect(brokenPromises(world.history())).toEqual([]);
  });
});

// Seeds 1 and 4 have each kind of windows and headers.
test.each(chooseCases([1, 2, 3, 4], 3))(
  'a process that is killed while it calls, again and again, exceeds no plan (seed %d)',
  async (seed) => {
    const random = createRandom(seed);
    const [windows, tells] = [seed % 2 === 0 ? 'fixed' : 'sliding', seed < 3 ? 'nothing' : 'minute'] as const;
    await using world = await createSmallWorld({ windows, tells }, seed);
    let stateFile = world.newFile();
    for (let run = 0; run < 8; run += 1) {
      const petql = await world.start({ plan: PLAN, stateFile });
      const load = Promise.all([petql.create(20), petql.create(20), petql.create(20)]);
      load.catch(() => {});
      await world.pass(between(random, 20, 90_000));
      stateFile = petql.kill();
      await world.pass(between(random, 0, 2_000));
    }
    const last = await world.start({ plan: PLAN, stateFile });
    await world.saturate([last], 15 * MINUTE_MS, { clients: 4, batch: 10 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(world.petApi.log.length).toBeGreaterThanOrEqual(0.9 * SMALL.perDay);
  },
);

test('a process without a state file learns from the headers what is left of the minute', async () => {
  await using world = await createWorld({
    seed: 4,
    startsAt: '2026-11-21T09:41:07Z',
    keys: { key: { ...PLANS.pro, windows: 'sliding', tells: 'minute' } },
  });
  const before = await world.start({ plan: 'pro' });
  const load = Promise.all(Array.from({ length: 10 }, () => before.create(20)));
  load.catch(() => {});
  await world.pass(1_500);
  before.kill();
  // What it has sent arrives.
  await world.pass(1_000);
  const spent = world.petApi.log.length;
  expect(spent).toBeGreaterThan(100);
  const after = await world.start({ plan: 'pro' });
  await world.saturate([after], 40_000);
  expect(world.petApi.log).toHaveLength(PLANS.pro.perMinute);
  expect(brokenPromises(world.history())).toEqual([]);
});

test('a clock that was set back by an hour between two starts holds up no call for longer than a minute', async () => {
  await using world = await createSmallWorld();
  const stateFile = world.newFile();
  const before = await world.start({ plan: PLAN, stateFile, aheadMs: HOUR_MS });
  for (let part = 0; part < 3; part += 1) await world.until(before.create(SMALL.perMinute / 3));
  expect(world.petApi.log).toHaveLength(SMALL.perMinute);
  await world.until(before.stop());
  const after = await world.start({ plan: PLAN, stateFile });
  expect(createdIn(await world.until(after.create(1, { waitMs: 0 })))).toBe(0);
  await world.pass(2.2 * MINUTE_MS);
  expect(createdIn(await world.until(after.create(1, { waitMs: 0 })))).toBe(1);
  expect(brokenPromises(world.history())).toEqual([]);
});

test('a --plan that is removed is forgotten', async () => {
  await using world = await createWorld({
    seed: 4,
    startsAt: '2026-11-21T09:41:07Z',
    keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'nothing' } },
  });
  const redis = createRedis({ seed: 4 });
  const limits = async (plan: 'auto' | 'pro') => {
    // A clock that is behind does not decide which process started last.
    const options = { plan, aheadMs: plan === 'auto' ? -60_000 : 0, redisUrl: 'redis://redis.test' };
    const petql = await world.start({ ...options, redisConnection: redis.connect() });
    await world.pass(1_000);
    await world.until(petql.create(1));
    const { data } = await world.until(petql.ask('{ rateLimit { windows { limit } } }'));
    await world.until(petql.stop());
    return data?.['rateLimit'].windows;
  };
  expect(await limits('pro')).toEqual([{ limit: 300 }, { limit: 10_000 }]);
  expect(await limits('auto')).toEqual([]);
});
