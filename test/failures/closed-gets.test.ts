import { describe, expect, test } from 'vitest';
import { GETS_CLOSE, GETS_OPEN, HIDDEN, NO_CACHE, SOLD } from '../support/failing-world.ts';
import { ask, createFailingWorld, idsFrom, linesOf, pet, petsPage, sendStrangers } from '../support/failing-world.ts';
import { startProven, work } from '../support/failing-world.ts';
import { box, fails, on } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

/** Ids of no pet. */
const MISSING = idsFrom(9_001, 3) as `${bigint}`[];
const PETS = { wants: ['pet'], everyMs: 500 } as const;

const getsIn = ({ petApi }: World) => petApi.log.filter(({ kind }) => kind === 'get');
const hasGets = async (petql: Petql) => JSON.parse(await petql.page('/health/ready')).upstream.getRoute as boolean;

/** Only the list of their status shows them. */
const SOLD_PETS = ['153', '156', '159', '162', '165'];

/** Each get is answered so, and of two pets that a list of the key has shown, the list does not come. */
async function loseGets(world: World, petql: Petql, fault: Fault): Promise<void> {
  await ask(world, petql, SOLD, NO_CACHE);
  await getWithoutList(world, petql, on('get', fault), SOLD_PETS.slice(0, 2));
}

async function getWithoutList(world: World, petql: Petql, rule: FaultRule, ids: readonly string[]): Promise<void> {
  // Other calls work, so that the list alone fails.
  void work(world, petql, { durationMs: 5_000, everyMs: 300, wants: ['list'], keys: ['fourth'] });
  world.petApi.fault = [on('sold', fails(503)), rule];
  for (const id of ids) await world.until(petql.ask(pet(id), { ...NO_CACHE, waitMs: 3_000 }));
  world.petApi.fault = rule;
}

// What frameworks and proxies say where a conforming pet API would say 404 with its Error body.
const NO_ERROR_BODY: [what: string, fault: Fault][] = [
  ['404 of FastAPI', box(404, 'fastapi')],
  ['404 of Express', box(404, 'express')],
  ['404 of Go', box(404, 'go')],
  ['404 of nginx', box(404)],
  ['404 of Spring', box(404, 'spring')],
  ['404 of a CDN', box(404, 'cdn')],
  ['410 of nginx', box(410)],
  ['405 of Express', box(405, 'express')],
  ['410 with the Error body', fails(410)],
];

describe.each(chooseCases(NO_ERROR_BODY, 9))('missing pets that are answered %s', (_what, fault) => {
  test.each([
    ['another key', { keys: ['second', 'third'] }],
    ['the same key', { keys: ['key'] }],
    ['another visitor of the key', { keys: ['key'], options: { visitor: 'other' } }],
  ])('cost %s no pet that there is', async (_who, load) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on(MISSING, fault);
    const asked: Promise<unknown>[] = [];
    for (let second = 0; second < 25; second += 1) {
      asked.push(petql.ask(petsPage(MISSING), { visitor: 'careless', ...NO_CACHE }));
      const got = await world.until(work(world, petql, { ...PETS, durationMs: 1_000, ...load }));
      expect(got).toMatchObject({ failed: 0, stale: 0 });
    }
    await world.until(Promise.all(asked));
    expect(linesOf(petql)).toEqual([]);
    expect(await hasGets(petql)).toBe(true);
  });

  test('and are asked by made-up keys, cost proven ones no pet', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    // The router comes before the authentication.
    world.petApi.fault = on(MISSING, fault);
    const strangers = sendStrangers(world, petql, { documents: ['-1', ...MISSING].map(pet), durationMs: 15_000 });
    const got = await world.until(work(world, petql, { ...PETS, durationMs: 15_000 }));
    expect(got).toMatchObject({ failed: 0, stale: 0 });
    await world.until(strangers);
    expect(await hasGets(petql)).toBe(true);
  });
});

describe.each(chooseCases(NO_ERROR_BODY, 9))('where each get is answered %s', (_what, fault) => {
  test('gets close after two pets that a list of the key has shown, and lists find pets', async () => {
    await using world = await createFailingWorld({ pets: 350 });
    const petql = await startProven(world);
    await loseGets(world, petql, fault);
    expect(await hasGets(petql)).toBe(false);
    world.petApi.log.length = 0;
    expect(await ask(world, petql, pet('140'))).toBe('fresh');
    expect(getsIn(world)).toEqual([]);
    expect(linesOf(petql, GETS_CLOSE)).toMatchObject([{ level: 40, status: fault.status }]);
  });

  test('one get at a time finds out, after 1 s, doubled to 30 s', async () => {
    await using world = await createFailingWorld({ pets: 350 });
    const petql = await startProven(world);
    await loseGets(world, petql, fault);
    const closedAtMs = world.nowMs;
    world.petApi.log.length = 0;
    const load = { wants: ['pet', 'list'], everyMs: 500, durationMs: 3 * MINUTE_MS, keys: ['key'] } as const;
    await world.until(work(world, petql, load));
    const atMs = [closedAtMs, ...getsIn(world).map((call) => call.sentAtMs)];
    const gapsMs = atMs.slice(1).map((ms, index) => ms - (atMs[index] ?? 0));
    for (const [index, ms] of gapsMs.entries())
      expect(Math.abs(ms - 1_000 * Math.min(2 ** index, 30))).toBeLessThan(900);
    expect(gapsMs.length).toBeGreaterThanOrEqual(8);
  });

  test('a moment of it is over a second after it', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await loseGets(world, petql, fault);
    world.petApi.fault = undefined;
    await world.pass(1_001);
    expect(await ask(world, petql, pet(HIDDEN), NO_CACHE)).toBe('fresh');
    expect(await hasGets(petql)).toBe(true);
    expect(linesOf(petql, GETS_CLOSE, GETS_OPEN).map(({ level }) => level)).toEqual([40, 30]);
  });

  test('a moment of it is over in two seconds, whatever strangers ask for', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await loseGets(world, petql, fault);
    world.petApi.fault = undefined;
    const strangers = sendStrangers(world, petql, { documents: [pet('701')], durationMs: 15_000, perSecond: 100 });
    await world.pass(2_000);
    const got = await world.until(work(world, petql, { ...PETS, durationMs: 10_000, keys: ['key'] }));
    expect(got).toMatchObject({ failed: 0, stale: 0 });
    await world.until(strangers);
  });

  test.each([
    ['no list of the key has shown', [HIDDEN, '701', '702', '703'], 0],
    ['a list showed more than a minute ago', SOLD_PETS, 61_000],
    ['a list has shown, but for one alone', ['153', '153', '153'], 0],
  ])('gets stay open after pets that %s', async (_which, ids, afterMs) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await ask(world, petql, SOLD, NO_CACHE);
    await world.pass(afterMs);
    // Other pets have their route, as petql finds out.
    await getWithoutList(world, petql, on([...ids, ...SOLD_PETS] as `${bigint}`[], fault), ids);
    expect(getsIn(world).length).toBeGreaterThan(0);
    expect(await hasGets(petql)).toBe(true);
  });

  test('for ever, nine of ten pets of the lists are served, by few gets', async () => {
    await using world = await createFailingWorld({ pets: 350 });
    const petql = await startProven(world);
    world.petApi.fault = on('get', fault);
    const results: string[] = [];
    for (const id of idsFrom(101, 180)) {
      results.push(await ask(world, petql, pet(id)));
      await world.pass(1_000);
    }
    expect(results.filter((result) => result === 'fresh').length).toBeGreaterThanOrEqual(162);
    expect(getsIn(world).length).toBeLessThanOrEqual(15);
  });
});
