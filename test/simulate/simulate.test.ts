import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { simulateDay } from './day.ts';

const MAX_STALE_MS = 600_000;
const DURATION_MS = 900_000;

test('20 queries every three seconds are served within the Free plan, by data that is fresh enough', async () => {
  const load = { pets: 90, lists: 4, ids: 16, everyMs: 3_000 };
  const ages = { maxAgeMs: 1_000, maxStaleMs: MAX_STALE_MS };
  const day = await simulateDay({ ...load, ...ages, plan: PLANS.free, durationMs: DURATION_MS });
  expect(day.refused).toBe(0);
  expect(day.operations).toHaveLength((20 * DURATION_MS) / 3_000);
  // The age of a failed operation is NaN.
  expect(day.operations.filter(({ ageMs }) => !(ageMs <= MAX_STALE_MS))).toEqual([]);
  // The share of the day that refreshes may use at once, and that of the minutes.
  expect(day.calls).toBeGreaterThan(100);
  expect(day.calls).toBeLessThan(200);
});
