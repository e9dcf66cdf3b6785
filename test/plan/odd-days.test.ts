import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { HANGS, fails } from '../support/pet-api/fault.ts';
import { HOUR_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { World } from '../support/world.ts';

const MIDNIGHT_MS = Date.UTC(2026, 10, 22);
/** The pet API's days end at 18:30. */
const DAY_ENDS_MS = 18.5 * HOUR_MS;

/** A Free key whose first call of the day comes half a minute before the day ends. */
function createOddWorld(): Promise<World> {
  const startsAt = new Date(MIDNIGHT_MS + DAY_ENDS_MS - 30_000).toISOString();
  const key = { ...PLANS.free, windows: 'fixed', tells: 'day', dayEndsMs: DAY_ENDS_MS } as const;
  return createWorld({ seed: 71, startsAt, keys: { key } });
}

/** 429s with a key that may make 60 calls a minute. */
function refusedBy({ petApi }: World): number {
  return petApi.log.filter(({ status }) => status === 429).length;
}

describe('a day that ends at an odd moment looks like a minute of 1,000', () => {
  test('a configured plan wins over what one call shows', async () => {
    await using world = await createOddWorld();
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(1));
    await world.saturate([petql], 3 * MINUTE_MS, { clients: 30 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(world.petApi.log.length).toBeGreaterThan(100);
  });

  test('so it does after a call that the pet API did not count', async () => {
    await using world = await createOddWorld();
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(1));
    world.petApi.fault = fails(503);
    await world.until(petql.ask('{ pets { id } }', { waitMs: 1_000 }));
    world.petApi.fault = undefined;
    await world.saturate([petql], 2 * MINUTE_MS, { clients: 30 });
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('under auto the guess is proved call by call: one pause, by a few 429s of one moment', async () => {
    await using world = await createOddWorld();
    const petql = await world.start();
    await world.until(petql.create(1));
    await world.saturate([petql], 3 * MINUTE_MS, { clients: 30 });
    expect(refusedBy(world)).toBeLessThanOrEqual(4);
    expect(brokenPromises(world.history(), { incidents: 1 })).toEqual([]);
  });
});

test('probes that get no response after a reset come ever more seldom, and the day is used once one does', async () => {
  // The day ends at 09:43, and only probes find out that it has.
  const dayEndsMs = 9 * HOUR_MS + 43 * MINUTE_MS;
  const key = { perMinute: 60, perDay: 20, windows: 'fixed', tells: 'day', dayEndsMs } as const;
  await using world = await createWorld({ seed: 72, startsAt: '2026-11-21T09:41:02Z', keys: { key } });
  const petql = await world.start({ plan: '60/20', upstreamTimeoutMs: 1_000 });
  await world.until(petql.create(20));
  world.petApi.fault = HANGS;
  const asked: Promise<unknown>[] = [];
  for (let second = 0; second < 240; second += 2) {
    asked.push(petql.create(1, { waitMs: 3_000 }));
    await world.pass(2_000);
  }
  await world.until(Promise.all(asked));
  const probes = world.petApi.log.length - 20;
  expect(probes).toBeGreaterThanOrEqual(3);
  expect(probes).toBeLessThanOrEqual(9);
  world.petApi.fault = undefined;
  await world.pass(3 * MINUTE_MS);
  expect(createdIn(await world.until(petql.create(1, { waitMs: 60_000 })))).toBe(1);
  expect(world.petApi.log.filter(({ status }) => status === 429)).toEqual([]);
});
