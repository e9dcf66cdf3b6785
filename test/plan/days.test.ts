import { describe, expect, test } from 'vitest';
import { brokenPromises, usedShare } from '../support/check.ts';
import { chooseCases } from '../support/seed.ts';
import { DAY_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { World } from '../support/world.ts';

/** Half of Free's minute and a third of its day, so that three days are few calls. */
const PLAN = '30/300';
const SMALL = { perMinute: 30, perDay: 300 };

const cases = [
  { windows: 'fixed', days: 'fixed', tells: 'day' },
  { windows: 'fixed', days: 'fixed', tells: 'changing' },
  { windows: 'fixed', days: 'sliding', tells: 'minute' },
  { windows: 'fixed', days: 'sliding', tells: 'day' },
  { windows: 'fixed', days: 'sliding', tells: 'changing' },
  { windows: 'sliding', days: 'sliding', tells: 'changing' },
  { windows: 'sliding', days: 'sliding', tells: 'nothing' },
] as const;

// Saturated for three days from shortly before midnight: most of the time the day is used up, and nothing is sent.
test.each(chooseCases(cases, 3))(
  'a key for three days gets no 429, and uses its days ($windows minutes, $days days, headers of $tells)',
  async ({ windows, days, tells }) => {
    await using world = await createWorld({
      seed: 7,
      startsAt: '2026-11-21T23:52:07Z',
      keys: { key: { ...SMALL, windows, days, tells } },
    });
    const petql = await world.start({ plan: PLAN });
    await world.saturate([petql], 3 * DAY_MS, { clients: 2 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(usedShare(world.petApi.log, SMALL.perDay, DAY_MS)).toBeGreaterThanOrEqual(0.99);
  },
);

describe('a key whose calls are spread over hours before it wants all it can get, by headers of the tighter window,', () => {
  const createSpreadWorld = (days: 'fixed' | 'sliding') =>
    createWorld({
      seed: 9,
      startsAt: '2026-11-21T17:20:07Z',
      keys: { key: { ...SMALL, windows: 'fixed', days, tells: 'changing' } },
    });
  const spreadCalls = async (world: World) => {
    const petql = await world.start({ plan: PLAN });
    for (let hour = 0; hour < 3; hour += 1) {
      await world.until(petql.create(15, { waitMs: 5 * MINUTE_MS }));
      await world.until(petql.create(20, { waitMs: 5 * MINUTE_MS }));
      await world.pass(61 * MINUTE_MS);
    }
    return petql;
  };

  test('uses its sliding days', async () => {
    await using world = await createSpreadWorld('sliding');
    const petql = await spreadCalls(world);
    await world.saturate([petql], 2 * DAY_MS, { clients: 2 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(usedShare(world.petApi.log, SMALL.perDay, DAY_MS)).toBeGreaterThanOrEqual(0.99);
  });

  test('has a whole calendar day from midnight on', async () => {
    await using world = await createSpreadWorld('fixed');
    const petql = await spreadCalls(world);
    await world.saturate([petql], DAY_MS - (world.nowMs % DAY_MS), { clients: 2 });
    expect(world.petApi.log).toHaveLength(SMALL.perDay);
    await world.saturate([petql], 30 * MINUTE_MS, { clients: 2 });
    expect(brokenPromises(world.history())).toEqual([]);
    expect(world.petApi.log.length).toBeGreaterThanOrEqual(2 * SMALL.perDay - 3);
  });
});

test('a daily job of 180 calls at 09:00 is done by 09:15 on the fourth day too', async () => {
  await using world = await createWorld({
    seed: 8,
    startsAt: '2026-11-21T09:00:00Z',
    keys: { key: { ...SMALL, windows: 'fixed', tells: 'minute' } },
  });
  const petql = await world.start({ plan: PLAN });
  const tookMs: number[] = [];
  for (let day = 0; day < 4; day += 1) {
    const startMs = world.nowMs;
    for (let left = 180; left > 0;) {
      const answer = await world.until(petql.create(Math.min(left, 30), { waitMs: 5 * MINUTE_MS }));
      left -= createdIn(answer);
      const [error] = answer.errors ?? [];
      if (error) await world.pass(error.extensions.retryAfterMs ?? 0);
    }
    tookMs.push(world.nowMs - startMs);
    await world.pass(startMs + DAY_MS - world.nowMs);
  }
  expect(brokenPromises(world.history())).toEqual([]);
  expect(Math.max(...tookMs)).toBeLessThanOrEqual(15 * MINUTE_MS);
});
