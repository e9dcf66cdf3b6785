import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { fails, forKey, on, slow, times } from '../support/pet-api/fault.ts';
import { MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const QUICK = { waitMs: 400 };
const LISTS = '{ available: pets(status: AVAILABLE) { id } sold: pets(status: SOLD) { id } }';

function createBusinessWorld(...keys: readonly string[]): Promise<World> {
  const plan = { ...PLANS.business, windows: 'fixed', tells: 'minute' } as const;
  const plans = Object.fromEntries(['key', ...keys].map((key) => [key, plan]));
  return createWorld({ seed: 81, startsAt: '2026-11-21T09:41:07Z', keys: plans });
}

/** Clients want a list, pets and new pets, again and again. */
async function want(world: World, petql: Petql, durationMs: number, everyMs = 500): Promise<void> {
  const endMs = world.nowMs + durationMs;
  while (world.nowMs < endMs) {
    const noCache = { ...QUICK, cacheControl: 'no-cache' };
    await world.until(Promise.all([petql.ask(LISTS, noCache), petql.read(3, QUICK), petql.create(3, QUICK)]));
    await world.pass(everyMs);
  }
}

/** The seconds between the calls that are not of one moment. */
function gapsIn({ petApi }: World): readonly number[] {
  const gaps = petApi.log.slice(1).map(({ sentAtMs }, index) => sentAtMs - (petApi.log[index]?.sentAtMs ?? 0));
  return gaps.filter((ms) => ms > 500).map((ms) => Math.floor(ms / 1_000));
}

describe('where all calls fail', () => {
  test('one at a time finds out whether they still do, at first after a second, then after a tenth of the outage', async () => {
    await using world = await createBusinessWorld();
    const petql = await world.start({ plan: 'business', upstreamTimeoutMs: 1_000 });
    await world.until(petql.create(1));
    world.petApi.fault = fails();
    await want(world, petql, 120_000);
    // Two lists find out that all fail, the second one a second after the first.
    expect(gapsIn(world).slice(-6)).toEqual([2, 4, 8, 16, 30, 30]);
    await want(world, petql, 48 * MINUTE_MS, 5_000);
    const beganAtMs = world.petApi.log[1]?.sentAtMs ?? 0;
    const late = world.petApi.log.filter(({ sentAtMs }) => sentAtMs > beganAtMs + 10 * MINUTE_MS);
    for (const [index, { sentAtMs }] of late.slice(1).entries()) {
      const beforeMs = late[index]?.sentAtMs ?? 0;
      expect((sentAtMs - beforeMs) / (beforeMs - beganAtMs)).toBeCloseTo(0.1, 1);
    }
    expect(late.length).toBeGreaterThan(10);
    world.petApi.fault = undefined;
    await world.pass(5 * MINUTE_MS);
    expect(createdIn(await world.until(petql.create(3, { waitMs: 2_000 })))).toBe(3);
  });

  test('nothing else is sent while one finds out', async () => {
    await using world = await createBusinessWorld();
    const petql = await world.start({ plan: 'business' });
    await world.until(petql.create(1));
    world.petApi.fault = fails();
    await want(world, petql, 1_000);
    world.petApi.fault = fails(503, { delayMs: 3_000 });
    world.petApi.log.length = 0;
    await world.pass(2_000);
    const asked: Promise<unknown>[] = [];
    for (let reads = 0; reads < 20; reads += 1) {
      asked.push(petql.read(1, QUICK));
      await world.pass(100);
    }
    expect(world.petApi.log).toHaveLength(1);
    await world.until(Promise.all(asked));
  });

  test('a success of a call that was sent before ends no outage', async () => {
    await using world = await createBusinessWorld();
    const petql = await world.start({ plan: 'business', upstreamTimeoutMs: 30_000 });
    await world.until(petql.create(1));
    world.petApi.fault = [times(1, slow(20_000)), fails()];
    const late = petql.create(1, { waitMs: 30_000 });
    await world.pass(100);
    await want(world, petql, 18_000);
    expect(createdIn(await world.until(late))).toBe(1);
    world.petApi.log.length = 0;
    await want(world, petql, 4_000);
    expect(world.petApi.log).toEqual([]);
  });
});

describe('no outage', () => {
  test('is a call that fails alone', async () => {
    await using world = await createBusinessWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = on('sold', fails());
    await world.until(petql.ask('{ pets(status: SOLD) { id } }', QUICK));
    expect(createdIn(await world.until(petql.create(3, QUICK)))).toBe(3);
  });

  test('is a moment of two keys, whether the upstream has accepted them or not', async () => {
    await using world = await createBusinessWorld('a', 'b');
    const petql = await world.start({ plan: 'business' });
    const accept = (key: string) => world.until(petql.create(1, { key }));
    const meet = async () => {
      world.petApi.fault = [forKey('a', fails()), forKey('b', fails())];
      await world.until(Promise.all(['a', 'b'].map((key) => petql.ask('{ pets { id } }', { ...QUICK, key }))));
      const created = createdIn(await world.until(petql.create(1, QUICK)));
      world.petApi.fault = undefined;
      return created;
    };
    await accept('key');
    expect(await meet()).toBe(1);
    await world.pass(MINUTE_MS);
    for (const key of ['a', 'b']) await accept(key);
    expect(await meet()).toBe(1);
  });
});

test('the limits of a proxy that answers in place of the pet API do not count', async () => {
  await using world = await createBusinessWorld();
  const petql = await world.start({ plan: 'auto' });
  await world.until(petql.create(1));
  const told = { limit: 300, remaining: 0, reset: 1_795_254_127 };
  const page: Fault = { status: 502, body: '<html>', told };
  const before = await petql.rateLimit();
  world.petApi.fault = times(1, page);
  await world.until(petql.create(1, QUICK));
  expect(await petql.rateLimit()).toMatchObject({
    minute: { limit: before.minute.limit, used: before.minute.used + 1 },
  });
});
