import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { between, createRandom } from '../support/random.ts';
import { brokenPromises, usedShare } from '../support/check.ts';
import { tooMany } from '../support/pet-api/fault.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import type { Redis, RedisFault } from '../support/redis-double.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

/** `emptied` by FLUSHALL; `restarted`: down, and empty when it is back. */
type Outage = RedisFault | 'emptied' | 'restarted';

const OUTAGES: readonly Outage[] = ['down', 'hanging', 'mute', 'read-only', 'emptied', 'restarted'];
const RUN_MS = 4 * MINUTE_MS;

function beginOutage(redis: Redis, outage: Outage): void {
  if (outage === 'emptied') redis.empty();
  else redis.fault = outage === 'restarted' ? 'down' : outage;
}

function endOutage(redis: Redis, outage: Outage): void {
  if (outage === 'restarted') redis.empty();
  redis.fault = undefined;
}

function createKeyWorld(seed: number, windows: 'fixed' | 'sliding', plan: 'free' | 'pro'): Promise<World> {
  const startsAt = new Date(Date.UTC(2026, 10, 21, 9, 41) + between(createRandom(seed), 0, 59_999)).toISOString();
  const tells = seed % 3 === 0 ? 'nothing' : 'minute';
  // Slow calls, so that an outage comes in the middle of a minute's.
  const latencyMs = plan === 'free' ? ([100, 1_000] as const) : ([50, 400] as const);
  return createWorld({ seed, startsAt, latencyMs, keys: { key: { ...PLANS[plan], windows, tells } } });
}

const cases = OUTAGES.flatMap((outage) => [1, 2, 3, 4].map((seed) => ({ outage, seed })));
let refused = 0;

// Four seeds, so that every fourth case has each outage once.
test.each(chooseCases(cases, 4))(
  'three replicas that saturate a key while Redis is $outage exceed no plan, and count their calls (seed $seed)',
  async ({ outage, seed }) => {
    const random = createRandom(1_000 * seed + OUTAGES.indexOf(outage));
    const plan = seed === 3 ? 'pro' : 'free';
    await using world = await createKeyWorld(seed, random() < 0.5 ? 'fixed' : 'sliding', plan);
    const redis = createRedis({ seed, aheadMs: between(random, -5_000, 5_000) });
    const replicas = await startReplicas(world, redis, 3, { plan });
    const beginsMs = between(random, 6_000, 2 * MINUTE_MS);
    const lastsMs = between(random, 1_000, seed % 2 === 1 ? 20_000 : 90_000);
    setTimeout(() => beginOutage(redis, outage), beginsMs);
    setTimeout(() => endOutage(redis, outage), beginsMs + lastsMs);
    await world.saturate(replicas, RUN_MS, { clients: 2 });
    const { log } = world.petApi;
    refused += log.filter(({ over }) => over).length;
    expect(brokenPromises(world.history(), { incidents: 1 })).toEqual([]);
    // A minute is lost at most, and what an outage over a minute leaves unused of its shares.
    expect(usedShare(log, PLANS[plan].perMinute)).toBeGreaterThanOrEqual(lastsMs <= 20_000 ? 0.85 : 0.7);
    // What two replicas begin in the moment of a FLUSHALL may count once.
    const forgotten = outage === 'emptied' ? 2 : 0;
    for (const replica of replicas) {
      expect((await replica.rateLimit()).day.used).toBeGreaterThanOrEqual(log.length - forgotten);
    }
  },
);

test('they hardly ever meet a 429', () => expect(refused).toBeLessThanOrEqual(2));

test('three replicas share the plan through a long outage, by no headers', async () => {
  await using world = await createKeyWorld(6, 'sliding', 'free');
  const redis = createRedis({ seed: 6 });
  const replicas = await startReplicas(world, redis, 3, { plan: 'free' });
  await world.saturate(replicas, 10_000, { clients: 2 });
  redis.fault = 'down';
  await world.saturate(replicas, 4 * MINUTE_MS, { clients: 2 });
  expect(brokenPromises(world.history())).toEqual([]);
  expect(usedShare(world.petApi.log, PLANS.free.perMinute)).toBeGreaterThanOrEqual(0.5);
});

/** Longer than a minute's window, which a lost pause would wait for. */
const PAUSE_MS = 2.5 * MINUTE_MS;

describe.each(OUTAGES)('a 429 that one replica alone has met', (outage) => {
  /** Redis has the pause first, or the replica meets it while Redis is away. */
  test.each(outage === 'emptied' ? (['before'] as const) : (['before', 'during'] as const))(
    `%s Redis is ${outage} keeps all replicas from calling (seed 5)`,
    async (when) => {
      await using world = await createKeyWorld(5, 'fixed', 'pro');
      const redis = createRedis({ seed: 5 });
      const [one, ...others] = await startReplicas(world, redis, 3, { plan: 'pro' });
      await world.until(Promise.all([one, ...others].map((replica) => replica.create(2))));
      await world.pass(2.2 * MINUTE_MS);
      const meet = async () => {
        world.petApi.fault = () => ({ status: 429, headers: { 'retry-after': String(PAUSE_MS / 1_000) } });
        await world.until(one.create(1, { waitMs: 1_000 }));
        world.petApi.fault = () => undefined;
      };
      if (when === 'before') await meet();
      beginOutage(redis, outage);
      await world.pass(1_500);
      if (when === 'during') await meet();
      await world.pass(10_000);
      endOutage(redis, outage);
      await world.pass(1_500);
      const called = world.petApi.log.length;
      await world.saturate([one, ...others], 1.5 * MINUTE_MS, { clients: 1, batch: 2 });
      expect(world.petApi.log).toHaveLength(called);
      await world.saturate([one, ...others], MINUTE_MS, { clients: 1, batch: 2, waitMs: PAUSE_MS });
      expect(world.petApi.log.length).toBeGreaterThan(called);
      expect(brokenPromises(world.history())).toEqual([]);
    },
  );
});

test.each(['emptied', 'restarted'] as const)(
  'what one replica alone has spent still counts after Redis is %s',
  async (outage) => {
    await using world = await createKeyWorld(3, 'sliding', 'free');
    const redis = createRedis({ seed: 3 });
    const [one, ...others] = await startReplicas(world, redis, 3, { plan: 'free' });
    await world.until(Promise.all(others.map((replica) => replica.create(1))));
    await world.until(one.create(50, { waitMs: 60_000 }));
    beginOutage(redis, outage);
    await world.pass(1_500);
    endOutage(redis, outage);
    await world.pass(1_500);
    await world.saturate(others, 3 * MINUTE_MS, { clients: 4, batch: 10 });
    expect(brokenPromises(world.history())).toEqual([]);
    for (const replica of others) {
      expect((await replica.rateLimit()).day.used).toBeGreaterThanOrEqual(world.petApi.log.length);
    }
  },
);

test('without Redis the quota of a key in use is exhausted for a minute, which is no pause after a 429', async () => {
  await using world = await createKeyWorld(4, 'fixed', 'free');
  const redis = createRedis({ seed: 4 });
  const [one] = await startReplicas(world, redis, 2, { plan: 'free' });
  const list = () => world.until(one.ask('{ pets { id } rateLimit { pausedUntil } }', { waitMs: 0 }));
  await list();
  redis.fault = 'down';
  await world.pass(5_000);
  expect(await list()).toMatchObject({
    data: { rateLimit: { pausedUntil: null } },
    extensions: { petql: { upstreamCalls: 0, staleReason: 'QUOTA_EXHAUSTED' } },
  });
});

test('without Redis, the refusal of a call says so, and names no quota that is not exhausted', async () => {
  await using world = await createKeyWorld(4, 'fixed', 'pro');
  const redis = createRedis({ seed: 4 });
  const [one] = await startReplicas(world, redis, 2, { plan: '2/1000' });
  await world.pass(100);
  redis.fault = 'down';
  const messages = async () => {
    const { errors } = await world.until(one.ask('{ pets { id } }', { waitMs: 0, cacheControl: 'no-cache' }));
    return errors?.map(({ message }) => message);
  };
  expect(await messages()).toBeUndefined();
  expect(await messages()).toEqual(['Redis is unavailable, and this replica may make no call yet; retry in 2 s.']);
});

// At once: the others have not heard of it yet.
test.each([
  [1, 0],
  [2, 700],
  [3, 4_000],
])('a replica that is new as Redis goes costs one 429 or two (seed %d, %d ms old)', async (seed, ageMs) => {
  const random = createRandom(seed);
  await using world = await createKeyWorld(seed, seed % 2 === 0 ? 'fixed' : 'sliding', 'free');
  const redis = createRedis({ seed });
  const old = await startReplicas(world, redis, 2, { plan: 'free' });
  await world.saturate(old, between(random, 10_000, MINUTE_MS), { clients: 2, batch: 10 });
  const [young] = await startReplicas(world, redis, 1, { plan: 'free' });
  await world.pass(ageMs);
  redis.fault = 'down';
  setTimeout(() => endOutage(redis, 'down'), 90_000);
  await world.saturate([young, ...old], 4 * MINUTE_MS, { clients: 2, batch: 10 });
  expect(brokenPromises(world.history(), { incidents: 2 })).toEqual([]);
});

describe('a replica that has not reached Redis since its start', () => {
  test('makes no call, says so, and serves once it has', async () => {
    await using world = await createKeyWorld(4, 'fixed', 'pro');
    const redis = createRedis({ seed: 4 });
    redis.fault = 'down';
    const [one] = await startReplicas(world, redis, 1, { plan: 'pro' });
    const answers = await world.until(
      Promise.all([one.ask('{ pets { id } }', { waitMs: 60_000 }), one.create(1, { waitMs: 60_000 })]),
    );
    expect(answers.flatMap(({ errors }) => errors)).toMatchObject(
      answers.map(() => ({
        message: 'petql has no contact with Redis yet, and nothing was sent; retry in 1 s.',
        extensions: { code: 'RATE_LIMITED', retryAfterMs: 1_000 },
      })),
    );
    expect((await one.ask('{ __typename rateLimit { plan } }')).errors).toBeUndefined();
    expect(world.petApi.log).toEqual([]);
    redis.fault = undefined;
    await world.pass(2_000);
    expect((await world.until(one.create(1))).errors).toBeUndefined();
  });

  test('takes nothing of the plan that the others use', async () => {
    await using world = await createKeyWorld(7, 'sliding', 'free');
    const redis = createRedis({ seed: 7 });
    const others = await startReplicas(world, redis, 2, { plan: 'free' });
    const connection = redis.connect();
    connection.cut(true);
    const lost = await world.start({ redisUrl: 'redis://redis.test', redisConnection: connection, plan: 'free' });
    await world.saturate([...others, lost], 3 * MINUTE_MS, { clients: 2, waitMs: 30_000 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(usedShare(world.petApi.log, PLANS.free.perMinute)).toBeGreaterThanOrEqual(0.9);
  });
});

test('the last calls of a day are not given to every replica when Redis goes', async () => {
  await using world = await createWorld({
    seed: 8,
    startsAt: '2026-11-21T09:41:07Z',
    keys: { key: { perMinute: 60, perDay: 41, windows: 'fixed', tells: 'minute' } },
  });
  const redis = createRedis({ seed: 8 });
  const replicas = await startReplicas(world, redis, 6, { plan: '60/41' });
  await world.until(Promise.all(replicas.map((replica) => replica.create(6))));
  await world.pass(2 * MINUTE_MS);
  await world.until(Promise.all(replicas.map((replica) => replica.rateLimit())));
  redis.fault = 'down';
  await world.saturate(replicas, 3 * MINUTE_MS, { clients: 1, batch: 1 });
  expect(world.petApi.log.filter(({ status }) => status === 429)).toEqual([]);
});

test('a pause that a failover of Redis has lost is restored by the replica that saw it', async () => {
  await using world = await createKeyWorld(9, 'fixed', 'pro');
  const redis = createRedis({ seed: 9 });
  const [one, other = one] = await startReplicas(world, redis, 2, { plan: 'pro' });
  await world.until(Promise.all([one.create(2), other.create(2)]));
  await world.pass(1_000);
  let before = redis.snapshot();
  world.petApi.fault = () => {
    before = redis.snapshot();
    return tooMany(300);
  };
  await world.until(one.create(1, { waitMs: 1_000 }));
  world.petApi.fault = undefined;
  expect(world.petApi.log.at(-1)?.status).toBe(429);
  redis.restore(before);
  const called = world.petApi.log.length;
  await world.pass(10_000);
  expect((await world.until(one.create(1, { waitMs: 20_000 }))).errors?.[0]?.extensions.code).toBe('RATE_LIMITED');
  expect(world.petApi.log).toHaveLength(called);
});
