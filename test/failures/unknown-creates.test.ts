import { describe, expect, test } from 'vitest';
import { LIST, NO_CACHE, SOLD, ask, create, createFailingWorld, pet } from '../support/failing-world.ts';
import { startProven, work } from '../support/failing-world.ts';
import { HANGS, RESETS, box, fails, on, times } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { OperationOptions } from '../support/world.ts';

const CACHED: OperationOptions = { cacheControl: 'only-if-cached, max-age=600' };

const UNKNOWN: [what: string, fault: Fault][] = [
  ['503', fails(503)],
  ['502 of nginx', box(502)],
  ['408', fails(408)],
  ['a reset connection', RESETS],
  ['silence', HANGS],
  ['a page', box(201)],
];

describe.each(chooseCases(UNKNOWN, 3))('a create that ends in %s', (_what, fault) => {
  test('has an unknown outcome, and entries from before it are not served where the list works', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    world.petApi.fault = on('create', fault);
    expect(await create(world, petql)).toBe('OUTCOME_UNKNOWN');
    expect(await ask(world, petql, LIST, CACHED)).toBe('NOT_CACHED');
    expect(await ask(world, petql, LIST, { cacheControl: 'max-age=600' })).toBe('fresh');
  });

  test('in an outage leaves the data that there is, with its age', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    world.petApi.fault = [on('create', fault), fails(503)];
    await world.until(work(world, petql, { durationMs: 10_000 }));
    const got = await world.until(
      work(world, petql, { durationMs: 4 * MINUTE_MS, everyMs: 2_000, wants: ['list', 'sold'] }),
    );
    expect(got).toMatchObject({ failed: 0, fresh: 0 });
    const { extensions } = await world.until(petql.ask(LIST));
    expect(extensions.petql).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
    expect(extensions.petql.oldestAgeMs).toBeGreaterThan(4 * MINUTE_MS);
    expect(extensions.petql.oldestAgeMs).toBeLessThan(5 * MINUTE_MS);
  });

  test('leaves the data of a list that is closed alone, and not that of a list that works', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    const fails500 = on('sold', fails(500));
    world.petApi.fault = fails500;
    await world.until(work(world, petql, { durationMs: 10_000, keys: ['key'], wants: ['sold', 'pet'] }));
    world.petApi.fault = [fails500, times(1, on('create', fault))];
    expect(await create(world, petql)).toBe('OUTCOME_UNKNOWN');
    expect(await ask(world, petql, SOLD)).toBe('stale');
    expect(await ask(world, petql, LIST, CACHED)).toBe('NOT_CACHED');
  });
});

test('a create that surely happened makes entries unusable in an outage too', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  expect(await create(world, petql)).toBe('fresh');
  world.petApi.fault = fails(503);
  const got = await world.until(work(world, petql, { durationMs: 30_000, keys: ['key'], wants: ['list', 'sold'] }));
  expect(got).toMatchObject({ fresh: 0, stale: 0 });
  // Entries of other keys are as usable as before.
  expect(await ask(world, petql, LIST, { key: 'second' })).toBe('stale');
});

test('after the outage a read sees what such a create has added', async () => {
  await using world = await createFailingWorld({ pets: 50 });
  const petql = await startProven(world, {}, ['key']);
  world.petApi.fault = [on('create', RESETS), fails(503)];
  await world.until(work(world, petql, { durationMs: 30_000, keys: ['key'] }));
  const added = world.petApi.log.filter(({ kind }) => kind === 'create').length;
  expect(added).toBeGreaterThan(0);
  world.petApi.fault = undefined;
  await world.pass(35_000);
  await ask(world, petql, LIST, NO_CACHE);
  for (let index = 1; index <= added; index += 1)
    expect(await ask(world, petql, pet(String(50 + index)))).toBe('fresh');
  const { data } = await world.until(petql.ask(pet(String(50 + added))));
  expect(data).toEqual({ pet: { id: String(50 + added) } });
});
