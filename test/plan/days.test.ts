import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { brokenPromises, usedShare } from '../support/check.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';

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
describe.each(cases)('a Free key for three days: $windows minutes, $days days, headers of $tells', (one) => {
  const { windows, days, tells } = one;
  let used = NaN;

  test('gets no 429', async () => {
    await using world = await createWorld({
      seed: 7,
      startsAt: '2026-11-21T23:52:07Z',
      keys: { key: { ...PLANS.free, windows, days, tells } },
    });
    const petql = await world.start({ plan: 'free' });
    await world.saturate([petql], 3 * DAY_MS, { clients: 2, batch: 30 });
    used = usedShare(world.petApi.log, PLANS.free.perDay, DAY_MS);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('uses its whole day', () => expect(used).toBeGreaterThanOrEqual(0.99));
});

test('a daily job of 600 calls at 09:00 is done by 09:30 on the fourth day too', async () => {
  await using world = await createWorld({
    seed: 8,
    startsAt: '2026-11-21T09:00:00Z',
    keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'minute' } },
  });
  const petql = await world.start({ plan: 'free' });
  const tookMs: number[] = [];
  for (let day = 0; day < 4; day += 1) {
    const startMs = world.nowMs;
    for (let left = 600; left > 0;) {
      const answer = await world.until(petql.create(Math.min(left, 30), { waitMs: 5 * MINUTE_MS }));
      left -= createdIn(answer);
      const [error] = answer.errors ?? [];
      if (error) await world.pass(error.extensions.retryAfterMs ?? 0);
    }
    tookMs.push(world.nowMs - startMs);
    await world.pass(startMs + DAY_MS - world.nowMs);
  }
  expect(brokenPromises(world.history())).toEqual([]);
  expect(Math.max(...tookMs)).toBeLessThanOrEqual(HOUR_MS / 2);
});
