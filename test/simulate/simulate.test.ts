import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { percentile } from '../support/percentile.ts';
import { mixedQueries, simulateDay, steadyLoad } from './day.ts';

const MAX_STALE_MS = 600_000;
const DURATION_MS = 900_000;

test('20 queries every three seconds are served inside the Free plan, by data that is young enough', async () => {
  const load = steadyLoad(mixedQueries(4, 16, 90), 3_000);
  const ages = { maxAgeMs: 1_000, maxStaleMs: MAX_STALE_MS };
  const day = await simulateDay({ ...ages, plan: PLANS.free, pets: 90, durationMs: DURATION_MS, load });
  expect(day).toMatchObject({ operations: (20 * DURATION_MS) / 3_000, failed: 0, refused: 0 });
  // The share of the day that refreshes may use at once, and that of the minutes.
  expect(day.calls).toBeGreaterThan(100);
  expect(day.calls).toBeLessThan(200);
  expect(percentile(day.agesMs, 1)).toBeLessThanOrEqual(MAX_STALE_MS);
});
