import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { HIDDEN, KEYS, LIST, NO_CACHE, SOLD } from '../support/failing-world.ts';
import {
  ask,
  create,
  createFailingWorld,
  idsFrom,
  pet,
  petsPage,
  startProven,
  work,
} from '../support/failing-world.ts';
import { HANGS, box, fails, on, slow, times } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const PAGE = petsPage(idsFrom(1, 20));
const FREE = { key: { ...PLANS.free, windows: 'fixed', tells: 'minute' } } as const;

const BLIPS: [what: string, fault: Fault][] = [
  ['408', fails(408)],
  ['400', fails(400)],
  ['451', box(451, 'proxy')],
  ['421', fails(421)],
  ['423', fails(423)],
  ['410', box(410, 'cdn')],
  ['425', fails(425)],
  ['418', fails(418)],
  ['501', fails(501)],
  ['404', fails(404)],
  ['404 of a router', box(404, 'go')],
  ['405', box(405)],
  ['403 of a firewall', box(403)],
  ['403 of a CDN', box(403, 'cdn')],
  ['403 of a proxy', box(403, 'proxy')],
  ['302', fails(302, { headers: { location: '/v1/pets/' } })],
  ['307', fails(307, { headers: { location: 'https://pet-api.test/v1/pets' } })],
  ['304', { status: 304, body: '' }],
  ['JSON that is cut', { body: '[{"id":1,"name":"Ada"' }],
  ['an empty body', { body: '' }],
  ['a connection that closes', { cutAfterBytes: 20 }],
  ['a page', box(200)],
  ['202', { status: 202, body: '[]' }],
  ['204', { status: 204, body: '' }],
  ['null', { body: 'null' }],
  ['an object', { body: '{"pets":[]}' }],
  ['a pet without a name', { body: '[{"id":1}]' }],
];

describe.each(chooseCases(BLIPS, 3))('one list that is answered %s', (_what, fault) => {
  test('costs a Free key one call more, and no minute of calls for each pet', async () => {
    await using world = await createFailingWorld({ keys: FREE });
    const petql = await world.start({ plan: 'free' });
    const results: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      if (round === 3) world.petApi.fault = times(1, on('list', fault));
      results.push(await ask(world, petql, PAGE));
      await world.pass(3_000);
    }
    expect(results.filter((result) => result === 'fresh').length).toBeGreaterThanOrEqual(18);
    expect(new Set(results)).toEqual(new Set(['fresh', 'stale']));
    expect(world.petApi.log.length).toBeLessThanOrEqual(21);
  });

  test('is called once more by reads without data', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    await create(world, petql);
    world.petApi.log.length = 0;
    world.petApi.fault = times(1, on('list', fault));
    expect(await ask(world, petql, PAGE, { waitMs: 5_000 })).toBe('fresh');
    expect(world.petApi.log.map(({ kind }) => kind)).toEqual(['list', 'list']);
  });
});

describe.each([
  ['408', fails(408)],
  ['421', fails(421)],
  ['425', fails(425)],
])('a read that is answered %s', (_what, fault) => {
  test.each([
    ['a pet', pet('701')],
    ['a list', SOLD],
  ])('once is repeated: %s', async (_which, document) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = times(1, fault);
    expect(await ask(world, petql, document, NO_CACHE)).toBe('fresh');
    expect(world.petApi.log).toHaveLength(2);
  });

  test('each time has an error that tells nobody to give up', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = fault;
    const { errors } = await world.until(petql.ask(pet('701'), NO_CACHE));
    expect(errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
    expect(errors?.[0]?.message).not.toMatch(/will fail again/);
  });
});

// Failures of last night say nothing of now.
const MOMENTS: [what: string, fault: Fault][] = [
  ['503', fails(503)],
  ['a page', box(200)],
  ['silence', HANGS],
];

describe.each(chooseCases(MOMENTS, 3))('after a moment of %s and half an hour in which nobody asks', (_what, fault) => {
  const inTrouble = async (world: World, petql: Petql, documents: readonly string[]) => {
    world.petApi.fault = fault;
    await world.until(Promise.all(documents.map((document) => petql.ask(document, { waitMs: 500 }))));
    world.petApi.fault = undefined;
  };

  test.each([
    ['one list', [SOLD], [SOLD]],
    ['two lists, then another read', [SOLD, LIST], ['{ pets(status: PENDING) { id } }']],
    ['a list and a pet', [LIST, pet(HIDDEN)], [pet('701')]],
  ])('one more costs two seconds: %s', async (_which, first, second) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    await inTrouble(world, petql, first);
    await world.pass(30 * MINUTE_MS);
    await inTrouble(world, petql, second);
    await world.pass(2_000);
    for (const document of [...first, ...second]) {
      expect(await ask(world, petql, document)).toBe('fresh');
      expect(await ask(world, petql, document, NO_CACHE)).toBe('fresh');
    }
    expect(await create(world, petql)).toBe('fresh');
  });
});

test('a list that alone fails is called after 1 s, doubled to 30 s, whatever works beside it', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = on('sold', fails(500));
  const load = { durationMs: 3 * MINUTE_MS, keys: ['key'], everyMs: 200 };
  const got = await world.until(
    Promise.all([
      work(world, petql, { ...load, wants: ['sold'] }),
      work(world, petql, { ...load, wants: ['list', 'pet'] }),
    ]),
  );
  expect(got).toMatchObject([
    { fresh: 0, failed: 0 },
    { failed: 0, stale: 0 },
  ]);
  const sentAtMs = world.petApi.log.filter(({ target }) => target === 'sold').map((call) => call.sentAtMs);
  const gapsMs = sentAtMs.slice(1).map((atMs, index) => atMs - (sentAtMs[index] ?? 0));
  // Early retries belong to their try, and reads come each half second.
  const ofTries = gapsMs.filter((ms) => ms > 700);
  for (const [index, ms] of ofTries.entries())
    expect(Math.abs(ms - 1_000 * Math.min(2 ** index, 30))).toBeLessThan(900);
  expect(ofTries.length).toBeGreaterThanOrEqual(8);
  world.petApi.fault = undefined;
  await world.until(work(world, petql, { ...load, durationMs: 30_500, wants: ['sold'] }));
  expect(await ask(world, petql, SOLD)).toBe('fresh');
});

test('a Retry-After of a failed list delays that list alone, and by 30 s at most', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = times(1, on('sold', fails(503, { headers: { 'retry-after': '900' } })));
  await ask(world, petql, SOLD);
  await world.pass(29_000);
  expect(await ask(world, petql, SOLD)).toBe('stale');
  expect(await ask(world, petql, LIST)).toBe('fresh');
  await world.pass(1_500);
  await ask(world, petql, SOLD);
  await world.pass(500);
  expect(await ask(world, petql, SOLD)).toBe('fresh');
});

const BROKEN: [what: string, fault: Fault][] = [
  ['500', fails(500)],
  ['502 of nginx', box(502)],
  ['a page', box(200)],
  ['no response within 6 s', slow(6_000)],
  ['silence', HANGS],
  ['a body that is cut', { cutAfterBytes: 20 }],
];

describe.each(chooseCases(BROKEN, 3))('while all lists are answered %s, for ever', (_what, fault) => {
  test('nine of ten single pets and creates of four keys go on', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on('list', fault);
    const lists = work(world, petql, { durationMs: 2 * MINUTE_MS, everyMs: 5_000, wants: ['list', 'sold'] });
    const others = work(world, petql, { durationMs: 2 * MINUTE_MS, wants: ['pet', 'create'] });
    const [, got] = await world.until(Promise.all([lists, others]));
    expect(got.fresh).toBeGreaterThanOrEqual(0.9 * 120);
    expect(got.created).toBeGreaterThanOrEqual(0.9 * 120);
  });

  test('pets that lists showed are refreshed by gets, and lists are served stale', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { maxAgeMs: 5_000 }, ['key']);
    world.petApi.fault = on('list', fault);
    await world.until(work(world, petql, { durationMs: 30_000, keys: ['key'], wants: ['list', 'pet'] }));
    const results: string[] = [];
    for (const id of idsFrom(1, 20)) {
      results.push(await ask(world, petql, pet(id)));
      await world.pass(2_000);
    }
    expect(new Set(results)).not.toContain('DOWNSTREAM_SERVICE_ERROR');
    expect(results.filter((result) => result === 'fresh').length).toBeGreaterThanOrEqual(18);
    expect(await ask(world, petql, LIST)).toBe('stale');
  });
});

const POISONED: [what: string, rule: FaultRule, keys: readonly string[]][] = [
  ['500, of four keys', fails(500), KEYS],
  ['a page, of one key', box(200), ['key']],
  ['502, of two keys', box(502), KEYS.slice(0, 2)],
];

test.each(chooseCases(POISONED, 3))(
  'one pet that makes each of its responses a %s from the start costs the others nothing',
  async (_what, rule, keys) => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = on(['list', '13'], rule);
    const load = { durationMs: 2 * MINUTE_MS, keys };
    const broken = work(world, petql, { ...load, everyMs: 5_000, wants: ['list', 'sold'] });
    const [got] = await world.until(Promise.all([work(world, petql, { ...load, wants: ['pet', 'create'] }), broken]));
    expect(got.fresh).toBeGreaterThanOrEqual(0.9 * 120);
    expect(got.created).toBeGreaterThanOrEqual(0.9 * 120);
  },
);
