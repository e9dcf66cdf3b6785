import { describe, expect, test } from 'vitest';
import { HIDDEN, LIST, NO_CACHE, SOLD, ask, create, createFailingWorld, linesOf } from '../support/failing-world.ts';
import { idsFrom, pet, petsPage, resultOf, startProven, work } from '../support/failing-world.ts';
import { FORBIDS, box, fails, on } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';

const CREATE = 'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } userErrors { code } } }';

/** A firewall or a proxy says no: nothing in the contract has a 403, and these are not the API's own words. */
const BLOCKS: [what: string, fault: Fault][] = [
  ['a firewall', box(403)],
  ['an egress proxy', box(403, 'proxy')],
  ['a CDN', box(403, 'cdn')],
  ['Express', box(403, 'express')],
  ['Spring', box(403, 'spring')],
  ['nothing at all', { status: 403, body: '' }],
];

describe.each(chooseCases(BLOCKS, 3))('a 403 of %s', (_what, fault) => {
  test('is a failed call: cached data is served, and no key is blamed', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = fault;
    const got = await world.until(work(world, petql, { durationMs: 30_000, wants: ['list', 'sold'] }));
    expect(got).toMatchObject({ failed: 0, fresh: 0 });
    const { extensions } = await world.until(petql.ask(LIST));
    expect(extensions.petql.staleReason).toBe('UPSTREAM_FAILED');
    expect(linesOf(petql).filter(({ level }) => level > 40)).toEqual([]);
    expect(JSON.stringify(linesOf(petql))).not.toMatch(/API key|banned/);

    world.petApi.fault = undefined;
    await world.until(work(world, petql, { durationMs: 31_000, everyMs: 500, wants: ['list', 'sold'] }));
    expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
    expect(await create(world, petql)).toBe('fresh');
  });

  test.each([
    ['a list', LIST],
    ['a pet', pet('701')],
    ['a create', CREATE],
  ])('says so where nothing is cached: %s', async (_which, document) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { maxStaleMs: 0 });
    await world.pass(MINUTE_MS);
    world.petApi.fault = fault;
    const { errors } = await world.until(petql.ask(document));
    expect(errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR', upstream: { status: 403 } } }]);
    expect(errors?.[0]?.message).not.toMatch(/API key/);
  });

  test('of one call pauses nobody', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on(['create', '701'], fault);
    for (let turn = 0; turn < 5; turn += 1) {
      await create(world, petql);
      await ask(world, petql, pet('701'));
      expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
      expect(await ask(world, petql, pet(HIDDEN), NO_CACHE)).toBe('fresh');
    }
  });
});

test('a 403 with the Error body is FORBIDDEN for the reads of that very call alone', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = on('sold', FORBIDS);
  expect(await ask(world, petql, SOLD, NO_CACHE)).toBe('FORBIDDEN');
  expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
  expect(await create(world, petql)).toBe('fresh');
});

// What no route of the pet API would say, since the address is another one.
const WRONG_BASES: [what: string, rule: FaultRule][] = [
  ['404 of nginx', box(404)],
  ['404 of FastAPI', box(404, 'fastapi')],
  ['404 with the Error body', fails(404)],
];

describe.each(chooseCases(WRONG_BASES, 3))('a base URL without its /v1 that answers %s', (_what, rule) => {
  test('is named by one warning and by each error, and gets few calls', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = rule;
    const codes = new Set<string>();
    for (let turn = 0; turn < 60; turn += 1) {
      for (const document of [LIST, pet('7'), petsPage(idsFrom(1, 3))]) {
        const answer = await world.until(petql.ask(document, { waitMs: 500 }));
        codes.add(resultOf(answer));
        expect(answer.errors?.[0]?.message).toMatch(/base URL|one call at a time|before its call could start/);
      }
      await world.pass(3_000);
    }
    expect(codes).toEqual(new Set(['DOWNSTREAM_SERVICE_ERROR']));
    expect(linesOf(petql).filter(({ msg }) => /base URL/.test(String(msg)))).toMatchObject([
      { level: 40, path: '/v1' },
    ]);
    expect(world.petApi.log.length).toBeLessThanOrEqual(30);
  });

  test('proves no pet absent, and works once it is right', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = rule;
    expect(await ask(world, petql, pet('7'))).toBe('DOWNSTREAM_SERVICE_ERROR');
    world.petApi.fault = undefined;
    await world.pass(5_000);
    expect(await ask(world, petql, LIST)).toBe('fresh');
    expect(await ask(world, petql, pet('7'))).toBe('fresh');
  });
});
