import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { mixedDemands, simulateDay, steadyLoad } from './day.ts';
import type { DayOptions, DayResult, LoadEntry } from './day.ts';
import { percentile } from './percentile.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FREE = { plan: PLANS.free, durationMs: DAY_MS, maxAgeMs: 1_000, maxStaleMs: 10 * MINUTE_MS };

const small = { ...FREE, animals: 90, load: steadyLoad(mixedDemands(4, 16, 90), 1_000) };
const large = {
  ...FREE,
  animals: 1_000,
  maxStaleMs: HOUR_MS,
  load: steadyLoad(mixedDemands(4, 16, 1_000), 1_000),
};

describe.each([
  ['90 animals', small],
  ['1,000 animals', large],
])('20 queries a second around the clock, over a store of %s,', (_store, options) => {
  const medians: number[] = [];

  // Less than a day where the plan is large: a day of its calls takes too long to simulate in every test run.
  test.each([
    ['free', DAY_MS],
    ['pro', 6 * HOUR_MS],
    ['business', HOUR_MS],
  ] as const)(
    'are all answered inside the %s plan, by answers young enough',
    async (name, durationMs) => {
      const day = await simulateDay({ ...options, plan: PLANS[name], durationMs });
      expectLivedThrough(day, { ...options, plan: PLANS[name] });
      expect(day.operations).toBe((20 * durationMs) / 1000);
      medians.push(percentile(day.agesMs, 0.5));
      process.stdout.write(
        `${name}: median age ${seconds(day, 0.5)}, 99th percentile ${seconds(day, 0.99)}, ${day.calls} calls\n`,
      );
    },
    120_000,
  );

  test('grow younger as the plan grows', () => {
    expect(medians).toHaveLength(3);
    expect(medians).toEqual(medians.toSorted((a, b) => b - a));
    expect(new Set(medians).size).toBe(3);
  });
});

describe('a key that is asked for six calls every ten minutes', () => {
  const demands = mixedDemands(0, 6, 1_000);
  const quiet: LoadEntry = { demands, firstMs: 0, everyMs: 10 * MINUTE_MS };

  test('gets fresh answers all day', async () => {
    const day = await simulateDay({ ...FREE, animals: 1_000, load: [quiet] });
    expectLivedThrough(day, FREE);
    expect(percentile(day.agesMs, 1)).toBeLessThanOrEqual(1_000);
  });

  test.each([0.5, 6, 12.25, 23.5])(
    'gets them for a burst of 50 calls within a minute too, %d hours into it',
    async (hour) => {
      // Other things than usual, each asked twice: a first time, and again when its answer is no longer fresh.
      const many = mixedDemands(0, 25, 1_000);
      const burst = many.flatMap((demand, index): LoadEntry[] => [
        { demands: [demand], firstMs: hour * HOUR_MS + index * 1_000, everyMs: Infinity },
        { demands: [demand], firstMs: hour * HOUR_MS + 30_000 + index * 1_000, everyMs: Infinity },
      ]);
      const day = await simulateDay({ ...FREE, animals: 1_000, load: [quiet, ...burst] });
      expectLivedThrough(day, FREE);
      expect(percentile(day.agesMs, 1)).toBeLessThanOrEqual(1_000);
    },
  );
});

test('a key that is asked for another animal each time spends its plan, and says so, and never overruns it', async () => {
  const demands = mixedDemands(0, 5_000, 5_000);
  const load = demands.map((demand, index): LoadEntry => ({
    demands: [demand],
    firstMs: index * 2_000,
    everyMs: Infinity,
  }));
  const day = await simulateDay({ ...FREE, durationMs: 3 * HOUR_MS, animals: 5_000, load, maxWaitMs: 0 });
  expect(day.refused).toBe(0);
  expect(day.calls).toBeGreaterThan(980);
  expect(day.calls).toBeLessThanOrEqual(1_000);
  // Each call answers one of them, and a listing a hundred.
  expect(day.failed).toBeGreaterThanOrEqual(day.operations - day.calls - 100);
});

function expectLivedThrough(day: DayResult, { plan, maxStaleMs }: Pick<DayOptions, 'maxStaleMs' | 'plan'>): void {
  expect(day.failed).toBe(0);
  expect(day.refused).toBe(0);
  expect(day.calls).toBeLessThanOrEqual(plan.perDay);
  expect(percentile(day.agesMs, 1)).toBeLessThanOrEqual(maxStaleMs);
}

function seconds({ agesMs }: DayResult, share: number): string {
  return `${(percentile(agesMs, share) / 1000).toFixed(1)} s`;
}
