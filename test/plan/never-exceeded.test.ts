import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { between, createRandom } from '../support/random.ts';
import { brokenPromises, usedShare } from '../support/check.ts';
import { chooseCases, chooseSeed } from '../support/seed.ts';
import { HANGS, mixed } from '../support/pet-api/fault.ts';
import type { Tells } from '../support/pet-api/strict-plan.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';

/** Simulating a call takes some 0.1 ms, so the larger plans are seen for less long. */
const WORLDS = { free: 3, pro: 2, business: 1 };
const MINUTES = { free: 3.3, pro: 2.2, business: 1.2 };
/** `mixed`: the window changes from response to response, and some headers are about none. */
const HEADERS = ['minute', 'day', 'changing', 'mixed', 'nothing'] as const;

const drawn = createRandom(chooseSeed());
const cases = (['free', 'pro', 'business'] as const).flatMap((plan) =>
  Array.from({ length: WORLDS[plan] }, (_, world) => (world === 1 ? ('read' as const) : ('create' as const))).flatMap(
    (kind) =>
      (['fixed', 'sliding'] as const).flatMap((windows) =>
        HEADERS.map((headers) => ({ plan, windows, headers, kind, seed: between(drawn, 1, 1_000_000) })),
      ),
  ),
);

// Ten combinations of windows and headers, so that every seventh case has nine of them.
test.each(chooseCases(cases, 7))(
  'a saturated $plan key with $windows windows and headers of $headers gets no 429 and uses its plan (seed $seed)',
  async ({ plan, windows, headers, kind, seed }) => {
    const random = createRandom(seed);
    const pick = <T>(...choices: readonly T[]) => choices[between(random, 0, choices.length - 1)] as T;
    const startsAt = new Date(Date.UTC(2026, 10, 21, 11, 58) + between(random, 0, 59_999)).toISOString();
    await using world = await createWorld({
      seed,
      startsAt,
      latencyMs: pick([1, 5], [10, 80], [50, 400]),
      keys: {
        key: {
          ...PLANS[plan],
          windows,
          days: pick('fixed', 'sliding'),
          tells: headers === 'mixed' ? () => pick('minute', 'day', 'changing', 'nothing') : headers,
          resetAs: pick('seconds', 'delta', 'milliseconds'),
          sendsDate: random() < 0.8,
        },
      },
    });
    const petql = await world.start({ plan, aheadMs: between(random, -500, 500) });
    await world.saturate([petql], MINUTES[plan] * MINUTE_MS, { kind, batch: between(random, 5, 20) });
    expect(brokenPromises(world.history())).toEqual([]);
    const used = usedShare(world.petApi.log, PLANS[plan].perMinute);
    expect(used).toBeGreaterThanOrEqual(headers === 'mixed' ? 0.85 : 0.95);
  },
);

test.each(['minute', 'changing', 'day'] as const)(
  'so does a Free key with sliding windows where no Date tells that petql’s clock is 476 ms ahead, by headers of the %s',
  async (tells) => {
    const startsAt = '2026-11-21T11:58:07.221Z';
    const key = { ...PLANS.free, windows: 'sliding', tells, sendsDate: false } as const;
    await using world = await createWorld({ seed: 221, startsAt, latencyMs: [50, 400], keys: { key } });
    const petql = await world.start({ plan: 'free', aheadMs: 476 });
    await world.saturate([petql], 5 * MINUTE_MS, { batch: 13 });
    expect(brokenPromises(world.history())).toEqual([]);
  },
);

test('a saturated key gets no 429 where the upstream counts calls up to half a second after they arrive', async () => {
  const random = createRandom(3);
  const stampsLateMs = () => between(random, 0, 450);
  await using world = await createWorld({
    seed: 3,
    // The first calls end as a second does.
    startsAt: '2026-11-21T09:41:07.880Z',
    keys: { key: { ...PLANS.pro, windows: 'sliding', tells: 'nothing', stampsLateMs } },
  });
  const petql = await world.start({ plan: 'pro' });
  await world.saturate([petql], 2.2 * MINUTE_MS);
  expect(brokenPromises(world.history())).toEqual([]);
});

describe('a saturated Free key', () => {
  const begin = (windows: 'fixed' | 'sliding', tells: Tells) =>
    createWorld({
      seed: 9,
      startsAt: '2026-11-21T09:41:07Z',
      latencyMs: [50, 2_400],
      keys: { key: { ...PLANS.free, windows, tells } },
    });

  const slow = [
    ['fixed', 'minute'],
    ['fixed', 'nothing'],
    ['sliding', 'minute'],
    ['sliding', 'changing'],
  ] as const;

  test.each(chooseCases(slow, 3))(
    'gets no 429 where answers take up to 5 s and one in ten is lost (%s windows, headers of %s)',
    async (windows, tells) => {
      await using world = await begin(windows, tells);
      world.petApi.fault = mixed([[0.1, HANGS]], 9);
      const petql = await world.start({ plan: 'free' });
      await world.saturate([petql], 6 * MINUTE_MS, { clients: 30, batch: 5 });
      expect(brokenPromises(world.history())).toEqual([]);
      expect(world.petApi.log.length).toBeGreaterThan(200);
    },
  );

  test.each(['minute', 'changing'] as const)(
    'gets no 429 where others use a third of each minute first (headers of %s)',
    async (tells) => {
      await using world = await begin('fixed', tells);
      for (let minute = 0; minute < 4; minute += 1) {
        setTimeout(() => world.petApi.countOthers('key', 20), 53_000 + minute * MINUTE_MS);
      }
      const petql = await world.start({ plan: 'free' });
      await world.saturate([petql], 4.5 * MINUTE_MS, { clients: 30, batch: 5 });
      expect(brokenPromises(world.history())).toEqual([]);
      expect(world.petApi.log.length).toBeGreaterThanOrEqual(0.95 * (60 + 4 * 40));
    },
  );
});
