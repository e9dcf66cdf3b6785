import { describe, expect, test } from 'vitest';
import { API_OPENS, HIDDEN, LIST, NO_CACHE, SOLD, ask, create, createFailingWorld } from '../support/failing-world.ts';
import { linesOf, pet, prove, resultOf, startProven, work } from '../support/failing-world.ts';
import { REJECTS_KEY, ageOf, cachedFor, fails, on, times, tooMany } from '../support/pet-api/fault.ts';
import type { CacheMarks, Fault } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';

/** How a cache says that a response is from it. */
const MARKS: [what: string, marks: CacheMarks][] = [
  ['Age', ageOf],
  ['Age and a Cache-Status', (ageMs) => ({ ...ageOf(ageMs), 'cache-status': '"Varnish"; hit; ttl=12' })],
  ['Age among others', (ageMs) => ({ ...ageOf(ageMs), 'x-cache': 'HIT' })],
  ['a Cache-Status', () => ({ 'cache-status': 'edge; fwd=miss, origin; hit' })],
  ['a Cache-Status and an Age of 0', () => ({ age: '0', 'cache-status': 'ExampleCache;hit' })],
  ['a Cache-Status in several lines', () => ({ 'cache-status': ['origin; hit', 'edge; fwd=uri-miss'] })],
];

/** A list from a cache, as of 12 s ago. */
const hitOf = (marks: CacheMarks, more: Fault = {}): Fault => ({
  ...more,
  headers: (headers) => ({ ...headers, ...marks(12_000) }),
});

test('each call says that it wants no cached response', async () => {
  await using world = await createFailingWorld();
  const petql = await world.start({ plan: 'business' });
  for (const document of [LIST, pet(HIDDEN)]) await ask(world, petql, document);
  await create(world, petql);
  expect(world.petApi.log.map(({ kind }) => kind)).toEqual(['list', 'get', 'create']);
  for (const { headers } of world.petApi.log) expect(headers).toMatchObject({ 'cache-control': 'no-cache' });
});

test.each([
  ['a list', on('list', hitOf(ageOf)), LIST],
  ['a pet', on('get', hitOf(ageOf)), pet(HIDDEN)],
])('a cached response is as old as its Age says: %s', async (_what, rule, document) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = rule;
  const { data, errors, extensions } = await world.until(petql.ask(document, NO_CACHE));
  expect([errors, Object.values(data)]).toEqual([undefined, [expect.anything()]]);
  expect(extensions.petql.oldestAgeMs).toBeGreaterThanOrEqual(12_000);
  expect(extensions.petql.oldestAgeMs).toBeLessThan(14_000);
});

test.each(['-5', 'twelve', '', '99999999999999999999', '12, 13'])('an Age of %j breaks no read', async (age) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = on('list', { headers: (headers) => ({ ...headers, age }) });
  const { data, errors } = await world.until(petql.ask(LIST, NO_CACHE));
  expect([errors, data.pets.length]).toEqual([undefined, 20]);
});

describe.each(chooseCases(MARKS, 3))('a list from a cache, by %s, is no witness', (_what, marks) => {
  test('of an absence since a write', async () => {
    await using world = await createFailingWorld({ pets: 50 });
    const petql = await startProven(world, {}, ['key']);
    world.petApi.fault = cachedFor(60_000, undefined, marks);
    await ask(world, petql, LIST, NO_CACHE);
    const { data } = await world.until(petql.create(1));
    const created = pet(data.f0.pet.id);
    for (let seconds = 0; seconds < 30; seconds += 3) {
      await world.pass(3_000);
      for (const options of [{}, NO_CACHE]) {
        const answer = await world.until(petql.ask(created, options));
        expect([seconds, answer.errors, answer.data]).toEqual([seconds, undefined, { pet: { id: data.f0.pet.id } }]);
      }
    }
  });

  test('of a health: it opens no API, and no list of it fails', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = fails(503);
    await world.until(work(world, petql, { durationMs: 20_000 }));
    world.petApi.fault = [on('list', hitOf(marks)), fails(503)];
    world.petApi.log.length = 0;
    await world.until(work(world, petql, { durationMs: 2 * MINUTE_MS, everyMs: 500 }));
    expect(linesOf(petql, API_OPENS)).toEqual([]);
    expect(world.petApi.log.length).toBeLessThanOrEqual(15);
  });

  test('of a key: a rejected one gets nothing', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = [on('list', hitOf(marks)), REJECTS_KEY];
    expect(await ask(world, petql, pet('701'))).toBe('UNAUTHENTICATED');
    await world.pass(1_100);
    expect(await ask(world, petql, LIST, { cacheControl: 'only-if-cached, max-age=600' })).not.toMatch(/fresh|stale/);
    expect(await create(world, petql)).toBe('UNAUTHENTICATED');
  });

  test('of the end of a pause: nothing more goes before a call that the API answers', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { maxWaitMs: 60_000 });
    world.petApi.fault = times(1, tooMany(5));
    await world.until(petql.ask(SOLD, { ...NO_CACHE, waitMs: 0 }));
    await world.pass(8_000);
    world.petApi.fault = [on('list', hitOf(marks)), tooMany(5)];
    world.petApi.log.length = 0;
    await ask(world, petql, LIST, NO_CACHE);
    const creates = Array.from({ length: 8 }, () => petql.create(1, { waitMs: 4_000 }));
    await world.until(Promise.all(creates));
    expect(world.petApi.log.filter(({ kind }) => kind === 'create').length).toBeLessThanOrEqual(1);
  });

  test('of a quota or a reset', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    const before = await petql.rateLimit();
    const told = { limit: 60, remaining: 0, reset: Math.floor(world.nowMs / 1_000) + 3_000 };
    world.petApi.fault = on('list', hitOf(marks, { told }));
    await ask(world, petql, LIST, NO_CACHE);
    const { minute, day } = await petql.rateLimit();
    expect([minute.limit, minute.used, day.used]).toEqual([
      before.minute.limit,
      before.minute.used + 1,
      before.day.used + 1,
    ]);
    expect(minute.resetAt).toBe(before.minute.resetAt);
    expect(await create(world, petql)).toBe('fresh');
  });
});

test.each(
  chooseCases<[string, CacheMarks]>(
    [
      ['an Age of 0', () => ({ age: '0' })],
      ['a Cache-Status of a miss', () => ({ 'cache-status': 'Varnish; fwd=uri-miss; stored' })],
      ['an x-cache', () => ({ 'x-cache': 'MISS' })],
    ],
    3,
  ),
)('a response with %s is as any other', async (_what, marks) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = fails(503);
  await world.until(work(world, petql, { durationMs: 20_000 }));
  world.petApi.fault = on('list', { headers: (headers) => ({ ...headers, ...marks(0) }) });
  await world.until(work(world, petql, { durationMs: 20_000 }));
  expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
  expect(await create(world, petql)).toBe('fresh');
});

describe('a cache that answers lists while the API is down', () => {
  test('serves what it has, and is asked no more often than an API that works', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    let isDown = false;
    world.petApi.fault = cachedFor(10 * MINUTE_MS, () => (isDown ? fails(503) : undefined));
    await prove(world, petql, ['key']);
    isDown = true;
    const others = work(world, petql, { durationMs: MINUTE_MS, wants: ['pet', 'create'], keys: ['key'] });
    const got = await world.until(work(world, petql, { durationMs: MINUTE_MS, wants: ['list'], keys: ['key'] }));
    expect(got).toMatchObject({ failed: 0 });
    await world.until(others);
    expect(linesOf(petql, API_OPENS)).toEqual([]);
    const answer = await world.until(petql.ask(LIST));
    expect(resultOf(answer)).toMatch(/fresh|stale/);
    expect(answer.extensions.petql.oldestAgeMs).toBeGreaterThanOrEqual(55_000);
  });
});
