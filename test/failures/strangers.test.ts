import { describe, expect, test } from 'vitest';
import { KEYS, LIST, NO_CACHE, ask, create, createFailingWorld } from '../support/failing-world.ts';
import { idsFrom, pet, petsPage, resultOf, sendStrangers, startProven, work } from '../support/failing-world.ts';
import { HANGS, RESETS, box, fails, forKey, on, times } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const CREATE = 'mutation { createPet(input: { name: "Stranger", categoryId: 1 }) { pet { id } } }';
const STRANGE = [LIST, pet('701'), CREATE];

/** Long enough to close the API. */
async function closeApi(world: World, petql: Petql, fault: Fault = fails(503)): Promise<void> {
  world.petApi.fault = fault;
  await world.until(work(world, petql, { durationMs: 6_000, everyMs: 500 }));
  world.petApi.log.length = 0;
}

const isStrange = ({ key }: { readonly key: string }) => key.startsWith('made-up');

describe.each(
  chooseCases<[string, Fault]>(
    [
      ['503', fails(503)],
      ['502 of nginx', box(502)],
      ['a reset', RESETS],
    ],
    3,
  ),
)('while the API is closed after %s', (_what, fault) => {
  test('made-up keys make no call', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await closeApi(world, petql, fault);
    const working = work(world, petql, { durationMs: 10_000 });
    await world.until(sendStrangers(world, petql, { documents: STRANGE, durationMs: 10_000, perSecond: 100 }));
    await world.until(working);
    expect(world.petApi.log.filter(isStrange)).toEqual([]);
    expect(world.petApi.log.length).toBeLessThanOrEqual(8);
  });

  test('and works again, made-up keys do not delay those that find out', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await closeApi(world, petql, fault);
    world.petApi.fault = undefined;
    const strangers = sendStrangers(world, petql, { documents: STRANGE, durationMs: 20_000, perSecond: 100 });
    const load = { everyMs: 250, keys: ['key'] };
    await world.until(work(world, petql, { ...load, durationMs: 12_000 }));
    const got = await world.until(work(world, petql, { ...load, durationMs: 7_000 }));
    expect(got).toMatchObject({ failed: 0, notCreated: 0 });
    await world.until(strangers);
  });
});

describe('after a restart in an outage, where no key is proven yet,', () => {
  test('all keys together make few calls, and reads are back soon', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business', maxWaitMs: 1_000 });
    world.petApi.fault = fails(503);
    const strangers = sendStrangers(world, petql, { documents: STRANGE, durationMs: 10 * MINUTE_MS, perSecond: 2 });
    await world.until(work(world, petql, { durationMs: 10 * MINUTE_MS, everyMs: 2_000 }));
    await world.until(strangers);
    expect(world.petApi.log.length).toBeLessThanOrEqual(60);
    world.petApi.fault = undefined;
    await world.pass(MINUTE_MS + 30_000);
    for (const key of KEYS) expect(await ask(world, petql, LIST, { key, ...NO_CACHE })).toBe('fresh');
  });
});

test('made-up keys whose calls all fail close nothing for a key that works', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world, {}, ['key']);
  world.petApi.fault = (call) => (isStrange(call) ? fails(503) : undefined);
  const strangers = sendStrangers(world, petql, { documents: STRANGE, durationMs: 2 * MINUTE_MS, perSecond: 5 });
  const load = { durationMs: 2 * MINUTE_MS, everyMs: 20_000, keys: ['key'] };
  expect(await world.until(work(world, petql, load))).toMatchObject({ failed: 0, notCreated: 0 });
  await world.until(strangers);
});

// Ten calls of a key earn it a retry.
describe('the retries of a key are not used up', () => {
  /** Returns the result of a read whose first call fails, and how many calls it took. */
  const retry = async (world: World, petql: Petql): Promise<[result: string, calls: number]> => {
    world.petApi.log.length = 0;
    world.petApi.fault = times(1, forKey('key', fails(503)));
    const result = await ask(world, petql, pet('750'), NO_CACHE);
    return [result, world.petApi.log.filter(({ key, kind }) => key === 'key' && kind === 'get').length];
  };

  test.each(
    chooseCases<[string, FaultRule]>(
      [
        ['500', fails(500)],
        ['resets', RESETS],
        ['silence', HANGS],
      ],
      3,
    ),
  )('by another key with ids that meet %s', async (_what, fault) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    const bad = idsFrom(800, 12);
    world.petApi.fault = on(bad as `${bigint}`[], fault);
    for (const id of bad) await ask(world, petql, pet(id), { key: 'second' });
    expect(await retry(world, petql)).toEqual(['fresh', 2]);
  });

  test('by made-up keys, which earn none', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = (call) => (isStrange(call) ? fails(500) : undefined);
    await world.until(sendStrangers(world, petql, { documents: [pet('750'), LIST], durationMs: 2_000 }));
    expect(world.petApi.log.length).toBeLessThanOrEqual(100);
    expect(await retry(world, petql)).toEqual(['fresh', 2]);
  });
});

const KEYED = `mutation ($key: String!) {
  createPet(input: { name: "Once", categoryId: 1, idempotencyKey: $key }) { pet { id } }
}`;

test.each(
  chooseCases<[string, Fault]>(
    [
      ['500', fails(500)],
      ['502 of nginx', box(502)],
      ['a reset', RESETS],
    ],
    3,
  ),
)('a thousand idempotency keys of made-up keys that meet %s cost no valid key its record', async (_what, fault) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world, {}, ['key']);
  const keyed = (key: string, idempotencyKey: string) =>
    world.until(petql.ask(KEYED, { key, waitMs: 2_000, variables: { key: idempotencyKey } }));
  const first = await keyed('key', 'mine');
  world.petApi.fault = (call) => (isStrange(call) ? fault : undefined);
  const strange = Array.from({ length: 1_100 }, (_, index) =>
    petql.ask(KEYED, { key: `made-up-${index}`, waitMs: 2_000, variables: { key: `stranger-${index}` } }),
  );
  await world.until(Promise.all(strange));

  // A proven key, and one that calls for the first time.
  for (const key of ['key', 'second']) expect(resultOf(await keyed(key, `new-of-${key}`))).toBe('fresh');
  world.petApi.log.length = 0;
  expect(await keyed('key', 'mine')).toMatchObject({ data: first.data });
  expect(world.petApi.log).toEqual([]);
  expect(await create(world, petql)).toBe('fresh');
});

test('a key that is accepted after its create keeps its record, whatever made-up keys store', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world, {}, ['key']);
  const keyed = (key: string) => petql.ask(KEYED, { key, waitMs: 2_000, variables: { key: `of-${key}` } });
  world.petApi.fault = on('create', fails(500));
  expect(resultOf(await world.until(keyed('second')))).toBe('OUTCOME_UNKNOWN');
  expect(await ask(world, petql, LIST, { key: 'second' })).toBe('fresh');
  for (let round = 0; round < 2; round += 1) {
    const strange = Array.from({ length: 600 }, (_, index) => keyed(`made-up-${round}-${index}`));
    await world.until(Promise.all(strange));
  }

  world.petApi.fault = undefined;
  world.petApi.log.length = 0;
  expect(resultOf(await world.until(keyed('second')))).toBe('OUTCOME_UNKNOWN');
  expect(world.petApi.log).toEqual([]);
});

test('a page of unknown ids of a made-up key is one call', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  expect(await ask(world, petql, petsPage(idsFrom(5_000, 20)), { key: 'made-up' })).toBe('UNAUTHENTICATED');
  expect(world.petApi.log).toHaveLength(1);
});
