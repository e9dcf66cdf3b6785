import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { tooMany } from '../support/pet-api/fault.ts';
import type { FaultRule } from '../support/pet-api/fault.ts';
import { UNLIMITED } from '../support/pet-api/strict-plan.ts';
import { between, createRandom } from '../support/random.ts';
import { chooseCases } from '../support/seed.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const SECOND_MS = 1_000;

/** Counts calls in one window after the other, and tells of it in each header. */
function windows(limit: number, endsMs: readonly number[]): FaultRule {
  let endMs = -Infinity;
  let used = 0;
  return ({ atMs }) => {
    if (atMs >= endMs) {
      endMs = endsMs.find((ms) => ms > atMs) ?? Infinity;
      used = 0;
    }
    const isFull = used >= limit;
    if (!isFull) used += 1;
    const told = { limit, remaining: limit - used, reset: endMs / SECOND_MS, dateMs: atMs - (atMs % SECOND_MS) };
    return isFull ? { ...tooMany(Math.ceil((endMs - atMs) / SECOND_MS), { isCounted: false }), told } : { told };
  };
}

const endsEach = (everyMs: number, fromMs: number) =>
  Array.from({ length: 200 }, (_, index) => fromMs + index * everyMs);

/** Creates pets, so many each so often; those that found no room in ten minutes are given up. */
async function create(
  world: World,
  petql: Petql,
  calls: number,
  { everyMs, forMs }: { everyMs: number; forMs: number },
) {
  const creates: Promise<unknown>[] = [];
  for (const endMs = world.nowMs + forMs; world.nowMs < endMs; await world.pass(everyMs)) {
    for (let call = 0; call < calls; call += 1) creates.push(petql.create(1, { waitMs: 10 * MINUTE_MS }));
  }
  await world.until(Promise.all(creates));
}

const countOf = ({ petApi }: World, status: number, fromMs = 0) =>
  petApi.log.filter((call) => call.status === status && call.atMs >= fromMs).length;

describe('headers of a window that is neither a minute nor a day: one call after its reset finds that it has ended', () => {
  const CASES: [limit: number, minutes: number, plan: 'auto' | 'free' | 'pro'][] = [
    [100, 60, 'auto'],
    [300, 60, 'pro'],
    [50, 15, 'free'],
  ];

  test.each(chooseCases(CASES, 3))('%d calls in %d minutes, --plan %s', async (limit, minutes, plan) => {
    const startMs = Date.UTC(2026, 10, 21, 9, 7);
    await using world = await createWorld({
      seed: 75,
      startsAt: new Date(startMs).toISOString(),
      keys: { key: UNLIMITED },
    });
    world.petApi.fault = windows(limit, endsEach(minutes * MINUTE_MS, Date.UTC(2026, 10, 21)));
    const petql = await world.start({ plan });
    const hours = 3;
    await create(world, petql, Math.ceil(limit / 3), { everyMs: 5 * MINUTE_MS, forMs: hours * HOUR_MS });
    const allowed = (limit * hours * 60) / minutes;
    expect(countOf(world, 201)).toBeGreaterThanOrEqual(0.9 * allowed);
    expect(countOf(world, 429)).toBeLessThanOrEqual((hours * 60) / minutes);
  });
});

describe('a local day that summer time makes longer or shorter is used in full', () => {
  const CASES: [name: string, nightHours: number][] = [
    ['Berlin, 29 March', -1],
    ['Berlin, 25 October', 1],
    ['Lord Howe, 5 April', 0.5],
  ];

  test.each(chooseCases(CASES, 3))('%s', async (_name, nightHours) => {
    // The nights of three local days, the second of which is moved.
    const firstMs = Date.UTC(2026, 2, 27, 23);
    const endsMs = [
      firstMs,
      firstMs + DAY_MS,
      firstMs + 2 * DAY_MS + nightHours * HOUR_MS,
      firstMs + 3 * DAY_MS + nightHours * HOUR_MS,
    ];
    await using world = await createWorld({
      seed: 76,
      startsAt: new Date(firstMs - 30 * MINUTE_MS).toISOString(),
      keys: { key: UNLIMITED },
    });
    world.petApi.fault = windows(1_000, endsMs);
    const petql = await world.start({ plan: 'free' });
    for (let night = 0; night < endsMs.length - 1; night += 1) {
      const fromMs = endsMs[night] as number;
      await world.pass(Math.max(0, fromMs + 30 * MINUTE_MS - world.nowMs));
      await create(world, petql, 45, { everyMs: MINUTE_MS, forMs: 20 * MINUTE_MS });
      expect(countOf(world, 201, fromMs)).toBe(900);
      await world.pass(8 * HOUR_MS);
    }
    expect(countOf(world, 429)).toBeLessThanOrEqual(1);
  });
});

test.each([1, 2, 3])('where headers are noise, errors and RateLimit say the same: seed %d', async (seed) => {
  await using world = await createWorld({ seed, startsAt: '2026-11-21T09:00:00Z', keys: { key: UNLIMITED } });
  const random = createRandom(seed);
  const noise = () => between(random, -30_000_000, 70_000_000);
  world.petApi.fault = () => ({ told: { limit: noise(), remaining: noise(), reset: noise() } });
  const petql = await world.start();
  const said: object[] = [];
  const shown: object[] = [];
  for (let call = 0; call < 40; call += 1) {
    const { errors } = await world.until(petql.create(1, { waitMs: 0 }));
    const limit = /the quota of (\d+) calls per minute is exhausted/.exec(errors?.[0]?.message ?? '')?.[1];
    if (limit === undefined) continue;
    said.push({ limit: Number(limit), remaining: 0 });
    shown.push((await petql.rateLimit()).minute);
  }
  expect(said.length).toBeGreaterThan(0);
  expect(shown).toMatchObject(said);
});

describe('random 429s cost little more than their pauses', () => {
  const CASES: [percent: number, plan: keyof typeof PLANS][] = [
    [1, 'pro'],
    [5, 'pro'],
    [3, 'free'],
  ];

  test.each(chooseCases(CASES, 3))('%d %%, %s', async (percent, plan) => {
    const limits = { ...PLANS[plan], windows: 'fixed', tells: 'minute' } as const;
    await using world = await createWorld({ seed: 74, startsAt: '2026-11-21T00:00:10Z', keys: { key: limits } });
    const random = createRandom(percent);
    world.petApi.fault = () => (between(random, 1, 100) <= percent ? tooMany(1, { isCounted: false }) : undefined);
    const petql = await world.start({ plan });
    const calls = PLANS[plan].perMinute / 2;
    await create(world, petql, calls, { everyMs: 5 * MINUTE_MS, forMs: 30 * MINUTE_MS });
    expect(countOf(world, 201)).toBeGreaterThanOrEqual(0.9 * 6 * calls);
  });
});
