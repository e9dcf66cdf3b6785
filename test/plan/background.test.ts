import { expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const READ = 'query ($id: ID!) { pet(id: $id) { id } }';

async function startOn(plan: { perMinute: number; perDay: number }): Promise<{ world: World; petql: Petql }> {
  const key = { ...plan, windows: 'fixed', tells: 'minute' } as const;
  const world = await createWorld({ seed: 61, startsAt: '2026-11-21T09:41:02Z', keys: { key } });
  const petql = await world.start({ plan: `${plan.perMinute}/${plan.perDay}` });
  // From here on petql knows that no list shows these pets, so that each needs a call.
  await world.until(petql.read(3));
  return { world, petql };
}

/** Reads so many pets, each by an operation of its own. */
function readEach(petql: Petql, count: number, options: { background?: boolean; waitMs?: number; from?: number }) {
  const { from = 900_000, ...rest } = options;
  const ids = Array.from({ length: count }, (_, index) => String(from + index));
  return ids.map((id) => petql.ask(READ, { variables: { id }, ...rest }));
}

test('a job of 200 background reads leaves half of each minute, and a page that somebody opens waits for nothing', async () => {
  const { world, petql } = await startOn(PLANS.free);
  await using _ = world;
  const job = Promise.all(readEach(petql, 200, { background: true, waitMs: 600_000 }));
  const before = world.petApi.log.length;
  await world.pass(1_000);
  const { data } = await world.until(petql.ask('{ rateLimit { queued } }'));
  expect(data).toEqual({ rateLimit: { queued: 200 + before - world.petApi.log.length } });
  for (let minute = 0; minute < 6; minute += 1) {
    await world.pass(20_000);
    const openedMs = world.nowMs;
    const page = await world.until(Promise.all(readEach(petql, 20, { from: 910_000 + 100 * minute })));
    expect(page.every(({ errors }) => errors === undefined)).toBe(true);
    expect(world.nowMs - openedMs).toBeLessThan(1_000);
    await world.pass(MINUTE_MS - 20_000);
  }
  const done = await world.until(job);
  expect(done.every(({ errors }) => errors === undefined)).toBe(true);
  expect(brokenPromises(world.history())).toEqual([]);
});

test('background work stops at a fifth of the day, says so, and others use the rest', async () => {
  const { world, petql } = await startOn({ perMinute: 60, perDay: 100 });
  await using _ = world;
  await world.until(Promise.all(readEach(petql, 90, { background: true, waitMs: 300_000 })));
  expect(world.petApi.log.length).toBe(80);

  const [refused] = await world.until(Promise.all(readEach(petql, 1, { background: true, from: 920_000 })));
  expect(refused?.errors?.[0]).toMatchObject({
    message: expect.stringContaining('leave half of each minute and a fifth of the day to others'),
    extensions: { code: 'RATE_LIMITED', window: 'DAY' },
  });
  const others = await world.until(Promise.all(readEach(petql, 20, { from: 930_000 })));
  expect(others.every(({ errors }) => errors === undefined)).toBe(true);
  expect(brokenPromises(world.history())).toEqual([]);
});

test('creates of background work go after the reads of others', async () => {
  const { world, petql } = await startOn({ perMinute: 20, perDay: 1_000 });
  await using _ = world;
  await world.until(petql.create(20 - world.petApi.log.length));
  const before = world.petApi.log.length;
  const creates = Array.from({ length: 5 }, () => petql.create(1, { background: true }));
  await world.pass(100);
  const reads = readEach(petql, 10, {});
  await world.until(Promise.all([...creates, ...reads]));
  const next = world.petApi.log.slice(before, before + 10).map(({ method }) => method);
  expect(next.filter((method) => method === 'GET').length).toBeGreaterThanOrEqual(9);
  expect(brokenPromises(world.history())).toEqual([]);
});
