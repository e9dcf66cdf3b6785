import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import type { Plan } from '../../src/common/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { chooseCases } from '../support/seed.ts';
import type { Tells } from '../support/pet-api/strict-plan.ts';
import { DAY_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';

const { free: FREE, pro: PRO, business: BUSINESS } = PLANS;
const CUSTOM = { perMinute: 120, perDay: 5_000 };
const MIDNIGHT = Date.UTC(2026, 10, 22);

interface Upstream {
  readonly plan: Plan;
  readonly windows: 'fixed' | 'sliding';
  readonly tells: Tells;
  /** Default: in the morning. */
  readonly startMs?: number;
}

function createPlanWorld({ plan, windows, tells, startMs = MIDNIGHT - 14 * 3_600_000 + 67_000 }: Upstream) {
  const startsAt = new Date(startMs).toISOString();
  return createWorld({ seed: 5, startsAt, keys: { key: { ...plan, windows, tells } } });
}

const WINDOWS = ['fixed', 'sliding'] as const;
const CONFIGURED = [
  { name: 'Business', configured: 'free', plan: BUSINESS },
  { name: 'Pro', configured: 'business', plan: PRO },
  { name: 'Free', configured: 'pro', plan: FREE },
  { name: 'Free', configured: 'business', plan: FREE },
  { name: 'custom', configured: 'free', plan: CUSTOM },
  { name: 'custom', configured: '120/5000', plan: CUSTOM },
  { name: 'custom', configured: 'auto', plan: CUSTOM },
  { name: 'Free', configured: 'auto', plan: FREE },
  { name: 'Pro', configured: 'auto', plan: PRO },
] as const;
const cases = CONFIGURED.flatMap((one) =>
  WINDOWS.flatMap((windows) => (['minute', 'day'] as const).map((tells) => ({ ...one, windows, tells }))),
);

// Four cases of each plan, so that every fifth case has eight of the nine, and each kind of windows and headers.
test.each(chooseCases(cases, 5))(
  'a $name key configured as $configured gets no 429, and soon its plan ($windows windows, headers of the $tells)',
  async ({ configured, plan, windows, tells }) => {
    await using world = await createPlanWorld({ plan, windows, tells });
    const petql = await world.start({ plan: configured });
    await world.saturate([petql], 1.1 * MINUTE_MS);
    const before = world.petApi.log.length;
    // Headers of the day do not show the minute's limit.
    if (tells === 'minute') await world.saturate([petql], 1.1 * MINUTE_MS);
    expect(brokenPromises(world.history())).toEqual([]);
    const min = tells === 'minute' ? 0.95 * plan.perMinute : 0;
    expect(world.petApi.log.length - before).toBeGreaterThanOrEqual(min);
  },
);

test.each([
  ['fixed', 'changing'],
  ['sliding', 'minute'],
] as const)(
  'a Business key of auto has its plan in the first minute (%s windows, headers of %s)',
  async (windows, tells) => {
    await using world = await createPlanWorld({ plan: BUSINESS, windows, tells });
    const petql = await world.start();
    await world.saturate([petql], MINUTE_MS);
    expect(brokenPromises(world.history())).toEqual([]);
    expect(world.petApi.log.length).toBeGreaterThanOrEqual(0.95 * BUSINESS.perMinute);
  },
);

const followed = WINDOWS.flatMap((windows) =>
  (['minute', 'changing', 'day'] as const).map((tells) => ({ windows, tells })),
);

// Every second case has each kind of windows and headers.
test.each(chooseCases(followed, 2))(
  'a plan that grows and shrinks is followed, with one 429 at most ($windows windows, headers of $tells)',
  async ({ windows, tells }) => {
    await using world = await createPlanWorld({ plan: FREE, windows, tells });
    const petql = await world.start();
    await world.saturate([petql], MINUTE_MS);
    world.petApi.changePlan('key', PRO);
    const asFree = world.petApi.log.length;
    await world.saturate([petql], 2 * MINUTE_MS);
    expect(brokenPromises(world.history())).toEqual([]);
    const asPro = world.petApi.log.length;
    expect(asPro - asFree).toBeGreaterThan(PRO.perMinute);
    expect((await petql.rateLimit()).minute.limit).toBe(PRO.perMinute);
    world.petApi.changePlan('key', FREE);
    await world.saturate([petql], 3.2 * MINUTE_MS);
    expect(brokenPromises(world.history(), { incidents: 1 })).toEqual([]);
    expect(world.petApi.log.length - asPro).toBeGreaterThanOrEqual(2 * FREE.perMinute);
    expect((await petql.rateLimit()).minute.limit).toBe(FREE.perMinute);
  },
);

// A day's limit of 1,000 with a reset that is near looks like Business's minute.
describe.each(WINDOWS)('a Free key of auto, with %s windows', (windows) => {
  const begun = [5, 50, 110].flatMap((seconds) =>
    (['day', 'changing'] as const).map((tells) => [tells, seconds] as const),
  );

  test.each(chooseCases(begun, 5))(
    'gets no 429 by headers of %s that begins %d s before midnight',
    async (tells, seconds) => {
      await using world = await createPlanWorld({ plan: FREE, windows, tells, startMs: MIDNIGHT - seconds * 1_000 });
      const petql = await world.start();
      await world.saturate([petql], 3 * MINUTE_MS);
      expect(brokenPromises(world.history())).toEqual([]);
    },
  );
});

test('a Free key is not taken for Business by a sliding day that frees one call a minute', async () => {
  await using world = await createPlanWorld({ plan: FREE, windows: 'sliding', tells: 'day', startMs: MIDNIGHT });
  for (let minute = 0; minute < 300; minute += 1) {
    world.petApi.countOthers('key', 1, MIDNIGHT - DAY_MS + (minute + 0.7) * MINUTE_MS);
  }
  const petql = await world.start();
  await world.saturate([petql], 8 * MINUTE_MS);
  expect(brokenPromises(world.history())).toEqual([]);
});

test('a larger plan opens a day that is used up once it is configured', async () => {
  await using world = await createPlanWorld({
    plan: { perMinute: 60, perDay: 100 },
    windows: 'fixed',
    tells: 'changing',
  });
  const stateFile = world.newFile();
  const before = await world.start({ stateFile, plan: '60/100' });
  await world.saturate([before], 3 * MINUTE_MS, { clients: 3 });
  expect(world.petApi.log).toHaveLength(100);
  world.petApi.changePlan('key', PRO);
  await before.stop();
  const after = await world.start({ stateFile, plan: 'pro' });
  expect(createdIn(await world.until(after.create(30)))).toBe(30);
  expect(brokenPromises(world.history())).toEqual([]);
});

test.each([
  ['Pro', PRO, 300],
  ['Free', FREE, 60],
] as const)('300 creates at once with a new %s key use what its plan allows', async (_name, plan, created) => {
  await using world = await createPlanWorld({ plan, windows: 'fixed', tells: 'minute' });
  const petql = await world.start();
  const answers = await world.until(
    Promise.all(Array.from({ length: 300 }, () => petql.create(1, { waitMs: 10_000 }))),
  );
  expect(answers.map(createdIn).filter((count) => count === 1)).toHaveLength(created);
  expect(brokenPromises(world.history())).toEqual([]);
});

test.each(chooseCases(WINDOWS, 2))(
  'a Free key whose day was told gets all of Business after an upgrade (%s windows)',
  async (windows) => {
    await using world = await createPlanWorld({ plan: FREE, windows, tells: 'changing' });
    const petql = await world.start();
    await world.saturate([petql], 15.5 * MINUTE_MS);
    await world.pass(MINUTE_MS);
    // With so few calls left of the day, headers are about the day.
    await world.until(petql.create(10));
    expect(world.petApi.log.length).toBeGreaterThan(940);
    expect(world.petApi.log.length).toBeLessThan(FREE.perDay);
    const before = world.petApi.log.length;
    world.petApi.changePlan('key', BUSINESS);
    await world.saturate([petql], 1.1 * MINUTE_MS);
    expect(world.petApi.log.length - before).toBeGreaterThan(1_000);
  },
);
