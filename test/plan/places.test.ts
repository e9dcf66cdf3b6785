import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { LIST, NO_CACHE, createFailingWorld, idsFrom, pet, petsPage, resultOf } from '../support/failing-world.ts';
import { HANGS, on, slow } from '../support/pet-api/fault.ts';
import type { StrictPlanOptions } from '../support/pet-api/strict-plan.ts';
import { chooseCases } from '../support/seed.ts';
import type { Petql, World } from '../support/world.ts';

const FREE = { ...PLANS.free, windows: 'fixed', tells: 'minute' } as const;
const PRO = { ...PLANS.pro, windows: 'fixed', tells: 'minute' } as const;

/** Lets the pet API take its time. Returns when it got each call. */
function slowDown(world: World, latencyMs: number): readonly number[] {
  const arrivedAtMs: number[] = [];
  world.petApi.fault = () => {
    arrivedAtMs.push(world.nowMs);
    return [slow(latencyMs)];
  };
  return arrivedAtMs;
}

async function warmUp(world: World, petql: Petql): Promise<void> {
  for (let call = 0; call < 20; call += 1) await world.until(petql.ask(LIST, NO_CACHE));
  await world.pass(61_000);
}

describe('calls in flight', () => {
  const CASES: [what: string, plan: StrictPlanOptions, places: number][] = [
    ['a Free key', FREE, 8],
    ['a Pro key', PRO, 30],
    ['a key of 20 a minute', { ...FREE, perMinute: 20, perDay: 1_000 }, 8],
  ];

  test.each(chooseCases(CASES, 2))(
    'a first burst of %s is few calls before the first one is answered',
    async (_what, plan, places) => {
      await using world = await createFailingWorld({ keys: { key: plan } });
      const petql = await world.start({ plan: `${plan.perMinute}/${plan.perDay}`, maxWaitMs: 30_000 });
      await warmUp(world, petql);
      const arrivedAtMs = slowDown(world, 500);
      await world.until(Promise.all(Array.from({ length: 50 }, () => petql.create(1))));
      const [firstMs = 0] = arrivedAtMs;
      expect(arrivedAtMs.filter((atMs) => atMs < firstMs + 500)).toHaveLength(places);
    },
  );

  test.each([1_500, 3_000])('calls that take %d ms hold up no burst that the minute allows', async (latencyMs) => {
    await using world = await createFailingWorld({ keys: { key: FREE } });
    const petql = await world.start({ plan: 'free', maxWaitMs: 10_000 });
    await warmUp(world, petql);
    slowDown(world, latencyMs);
    const answers = await world.until(Promise.all(Array.from({ length: 50 }, () => petql.create(1))));
    expect(answers.map(resultOf)).toEqual(answers.map(() => 'fresh'));
  });
});

describe.each(chooseCases([160, 600, 150], 3))('eight pets that hang, each 5 s, of %d calls a minute', (perMinute) => {
  const HANGING = idsFrom(900, 800);
  const plan = { perMinute, perDay: 50_000, windows: 'fixed', tells: 'minute' } as const;

  test.each([
    ['a cold key', ['one', 'two', 'three']],
    ['a warm key', ['one', 'two', 'three']],
    ['a warm key whose visitors have no names', [undefined]],
  ])('hold up no other of %s', async (of, visitors) => {
    await using world = await createFailingWorld({ keys: { key: plan } });
    const petql = await world.start({ plan: `${perMinute}/50000`, maxWaitMs: 10_000 });
    if (of !== 'a cold key') await warmUp(world, petql);
    world.petApi.fault = on(HANGING as `${bigint}`[], HANGS);

    const ended: Promise<[result: string, tookMs: number]>[] = [];
    const read = async (turn: number): Promise<[string, number]> => {
      const visitor = visitors[turn % visitors.length];
      const atMs = world.nowMs;
      const document = turn % 2 ? pet(String(700 + turn)) : LIST;
      const answer = await petql.ask(document, { ...NO_CACHE, ...(visitor && { visitor }) });
      return [resultOf(answer), world.nowMs - atMs];
    };
    for (let turn = 0; turn < 45; turn += 1) {
      if (turn % 5 === 0) {
        const ids = HANGING.slice(8 * turn, 8 * turn + 8);
        void petql.ask(petsPage(ids), { ...NO_CACHE, ...(visitors[0] && { visitor: 'unlucky' }) });
      }
      await world.pass(500);
      ended.push(read(turn));
      await world.pass(500);
    }
    const results = await world.until(Promise.all(ended));
    expect(results.map(([result]) => result)).toEqual(results.map(() => 'fresh'));
    const tookMs = results.map(([, ms]) => ms).toSorted((one, other) => one - other);
    expect(tookMs[Math.floor(tookMs.length * 0.95)]).toBeLessThan(1_000);
  });
});
