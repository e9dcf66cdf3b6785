import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { createdIn, createWorld, MINUTE_MS } from '../support/world.ts';

/** As many as may wait for one key. */
const MAX_WAITING = 1_000;

test('those who have left take no place from those who wait', async () => {
  await using world = await createWorld({
    seed: 1,
    startsAt: '2026-11-21T11:59:13Z',
    keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'minute' } },
  });
  const petql = await world.start({ plan: 'free' });
  const first = Array.from({ length: PLANS.free.perMinute }, () => petql.create(1, { waitMs: 5_000 }));
  await world.until(Promise.all(first));
  const early = petql.create(1, { waitMs: 2 * MINUTE_MS });
  for (let left = 0; left < MAX_WAITING; left += 100) {
    const leaving = new AbortController();
    const calls = Array.from({ length: 100 }, () => petql.create(1, { waitMs: 600_000, signal: leaving.signal }));
    const gone = Promise.allSettled(calls);
    await world.pass(10);
    leaving.abort();
    await world.pass(10);
    await gone;
  }
  const late = Array.from({ length: 9 }, () => petql.create(1, { waitMs: 2 * MINUTE_MS }));
  const answers = await world.until(Promise.all([early, ...late]));
  expect(answers.map(createdIn)).toEqual(answers.map(() => 1));
  expect(brokenPromises(world.history())).toEqual([]);
});
