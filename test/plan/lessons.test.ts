import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { tooMany } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import type { StrictPlanOptions } from '../support/pet-api/strict-plan.ts';
import { chooseCases } from '../support/seed.ts';
import { HOUR_MS, MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const FREE = { ...PLANS.free, windows: 'fixed', tells: 'minute' } as const;
const START = '2026-11-21T00:00:10Z';

const begin = (key: StrictPlanOptions, startsAt = START): Promise<World> =>
  createWorld({ seed: 66, startsAt, latencyMs: [20, 60], keys: { key } });

/** Refuses each call between these times after the first one, without counting it. */
function refusing(fromMs: number, untilMs: number, fault: Fault): FaultRule {
  let startMs: number | undefined;
  return ({ atMs }) => {
    startMs ??= atMs;
    return atMs >= startMs + fromMs && atMs < startMs + untilMs ? { ...fault, isCounted: false } : undefined;
  };
}

/** Creates pets, so many each so often, and returns how many were added. */
async function create(
  world: World,
  petql: Petql,
  calls: number,
  { everyMs, forMs }: { everyMs: number; forMs: number },
) {
  const before = world.petApi.log.filter(({ status }) => status === 201).length;
  const creates: Promise<unknown>[] = [];
  for (const endMs = world.nowMs + forMs; world.nowMs < endMs; await world.pass(everyMs)) {
    for (let call = 0; call < calls; call += 1) creates.push(petql.create(1, { waitMs: everyMs }));
  }
  await world.until(Promise.all(creates));
  return world.petApi.log.filter(({ status }) => status === 201).length - before;
}

const refusalsOf = (world: World) => world.petApi.log.filter(({ status }) => status === 429).length;

describe('429s that are not about the count', () => {
  const CASES: [what: string, retryAfter: number | undefined, forMs: number][] = [
    ['a second, Retry-After 15', 15, 1_000],
    ['a second, Retry-After 30', 30, 1_000],
    ['a second, without Retry-After', undefined, 1_000],
    ['20 minutes, Retry-After 15', 15, 20 * MINUTE_MS],
  ];

  test.each(chooseCases(CASES, 2))('for %s cost an hour little', async (_what, retryAfter, forMs) => {
    await using world = await begin({ ...FREE, perDay: 10_000 });
    world.petApi.fault = refusing(10 * MINUTE_MS, 10 * MINUTE_MS + forMs, tooMany(retryAfter));
    const petql = await world.start({ plan: '60/10000' });
    await create(world, petql, 45, { everyMs: 5 * MINUTE_MS, forMs: 11 * MINUTE_MS });
    await world.pass(30 * MINUTE_MS);
    expect(await create(world, petql, 45, { everyMs: 2 * MINUTE_MS, forMs: HOUR_MS })).toBeGreaterThanOrEqual(
      0.95 * 1_350,
    );
    expect(refusalsOf(world)).toBeLessThanOrEqual(40);
  });
});

test.each(chooseCases([300, 600, 1_800], 3))(
  'a 429 with Retry-After %d, whose own header leaves calls of the day, ends no day',
  async (retryAfter) => {
    await using world = await begin({ ...FREE, tells: 'day' });
    const petql = await world.start({ plan: 'free' });
    for (let minute = 0; minute < 11; minute += 1) {
      await world.until(petql.create(55));
      await world.pass(MINUTE_MS);
    }
    world.petApi.fault = refusing(0, 1_000, tooMany(retryAfter));
    await world.until(petql.create(1, { waitMs: 0 }));
    await world.pass(1_000 * retryAfter + 5_000);
    expect(await create(world, petql, 5, { everyMs: MINUTE_MS, forMs: 30 * MINUTE_MS })).toBeGreaterThanOrEqual(140);
  },
);

describe('a configured plan, and headers of the minute with a reset that is far', () => {
  const FAR: [what: string, told: (reset: number) => number, plan: StrictPlanOptions][] = [
    ['an hour off', (reset) => reset + 3_600, { ...PLANS.business, windows: 'fixed', tells: 'minute' }],
    ['five minutes ahead', (reset) => reset + 300, { ...PLANS.business, windows: 'fixed', tells: 'minute' }],
    [
      'an hour off',
      (reset) => reset + 3_600,
      { perMinute: 1_000, perDay: 50_000, windows: 'sliding', tells: 'minute' },
    ],
  ];

  test.each(chooseCases(FAR, 2))('is no day: %s', async (_what, told, plan) => {
    await using world = await begin(plan);
    world.petApi.fault = { told: (truth) => ({ ...truth, reset: truth.reset && told(truth.reset) }) };
    const petql = await world.start({ plan: `${plan.perMinute}/${plan.perDay}` });
    expect(await create(world, petql, 30, { everyMs: MINUTE_MS, forMs: HOUR_MS })).toBe(1_800);
    expect(refusalsOf(world)).toBe(0);
  });
});

test('a limit of calls a second, met by a burst each hour, costs few 429s after the first ones', async () => {
  await using world = await begin({ ...FREE, perDay: 5_000 });
  let served: number[] = [];
  world.petApi.fault = ({ atMs }) => {
    served = served.filter((other) => other > atMs - 1_000);
    if (served.length >= 5) return { ...tooMany(1), isCounted: false };
    served.push(atMs);
    return undefined;
  };
  const petql = await world.start({ plan: '60/5000' });
  const hourly = async (hours: number) => {
    const before = refusalsOf(world);
    for (let hour = 0; hour < hours; hour += 1) {
      expect(await create(world, petql, 40, { everyMs: 10 * MINUTE_MS, forMs: MINUTE_MS })).toBe(40);
      await create(world, petql, 1, { everyMs: MINUTE_MS, forMs: 50 * MINUTE_MS });
    }
    return refusalsOf(world) - before;
  };
  expect(await hourly(24)).toBeLessThanOrEqual(30);
  expect(await hourly(24)).toBeLessThanOrEqual(20);
});
