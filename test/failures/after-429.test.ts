import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { HIDDEN, LIST, NO_CACHE, SOLD, ask, create, createFailingWorld } from '../support/failing-world.ts';
import { linesOf, pet, resultOf, startProven, work } from '../support/failing-world.ts';
import { HANGS, RESETS, box, fails, forKey, on, slow, times, tooMany } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const READS = ['list', 'pet'] as const;

/** A pause of 5 s, which is spread to 7.5 s, is over. */
const PAUSED_MS = 8_000;

/** One 429 pauses the key. */
async function pause(world: World, petql: Petql, then: FaultRule): Promise<void> {
  world.petApi.fault = [times(1, tooMany(5)), then];
  await world.until(petql.ask(SOLD, { waitMs: 0, ...NO_CACHE }));
  expect(world.petApi.log.at(-1)?.status).toBe(429);
}

describe('a create that met a 429 goes before those that came after it', () => {
  const namesIn = ({ petApi }: World) => {
    const sent = petApi.log.toSorted((one, other) => one.number - other.number);
    return sent.filter(({ status }) => status === 201).map(({ name }) => Number(name?.slice('pet '.length)));
  };

  test.each(chooseCases([[5], [1], [30]] as const, 3))('with a Retry-After of %i s', async (seconds) => {
    await using world = await createFailingWorld();
    // Calls of a new key go one by one, so that the others wait for the first one.
    const petql = await world.start({ plan: 'business', maxWaitMs: 60_000 });
    world.petApi.fault = times(1, tooMany(seconds, slow(200)));
    const creates = [petql.create(1)];
    await world.pass(100);
    for (let later = 0; later < 3; later += 1) creates.push(petql.create(1));
    expect((await world.until(Promise.all(creates))).map(resultOf)).toEqual(['fresh', 'fresh', 'fresh', 'fresh']);
    expect(namesIn(world)).toEqual(namesIn(world).toSorted((one, other) => one - other));
  });

  test('where others come while it pauses the key, again and again', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { maxWaitMs: 120_000 });
    world.petApi.fault = times(2, on('create', tooMany(5)));
    const creates: Promise<unknown>[] = [];
    for (let second = 0; second < 12; second += 1) {
      creates.push(petql.create(1));
      await world.pass(1_000);
    }
    await world.until(Promise.all(creates));
    expect(namesIn(world)).toHaveLength(12);
    expect(namesIn(world)).toEqual(namesIn(world).toSorted((one, other) => one - other));
  });
});

// What a visitor chose is no word about the key.
const PROBES: [what: string, fault: Fault][] = [
  ['500', fails(500)],
  ['502 of nginx', box(502)],
  ['a reset connection', RESETS],
  ['403 of a firewall', box(403)],
  ['403 of a CDN', box(403, 'cdn')],
  ['403 with the Error body', fails(403)],
  ['422 of FastAPI', box(422, 'fastapi')],
  ['413 of nginx', box(413)],
  ['400 of Express', box(400, 'express')],
  ['silence', HANGS],
  ['a page', box(201)],
  ['500 after a second', fails(500, slow(1_000))],
];

describe.each(chooseCases(PROBES, 3))('where creates are answered %s after one 429', (_what, fault) => {
  test('reads are fresh a moment after the pause, and stay so', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000, maxWaitMs: 60_000 });
    await pause(world, petql, on('create', fault));
    const load = { keys: ['key'], options: { waitMs: 10_000 } };
    const creates = work(world, petql, { ...load, durationMs: 5 * MINUTE_MS, wants: ['create'] });
    await world.pass(PAUSED_MS + 1_000);
    const got = await world.until(work(world, petql, { ...load, durationMs: 4 * MINUTE_MS, wants: READS }));
    expect(got).toMatchObject({ failed: 0 });
    expect(got.stale).toBeLessThanOrEqual(0.02 * got.fresh);
    await world.until(creates);
  });

  test('the list after it goes at once, before all else', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000, maxWaitMs: 60_000 });
    await pause(world, petql, on('create', fault));
    const waiting = Array.from({ length: 5 }, () => petql.create(1, { waitMs: 20_000 }));
    const got = await world.until(petql.ask(pet(HIDDEN), { waitMs: 20_000, ...NO_CACHE }));
    expect(resultOf(got)).toBe('fresh');
    const [, probe, next] = world.petApi.log;
    expect([probe?.kind, next?.kind]).toEqual(['create', 'list']);
    expect((next?.sentAtMs ?? Infinity) - (probe?.answeredAtMs ?? probe?.sentAtMs ?? 0)).toBeLessThan(1_100);
    await world.until(Promise.all(waiting));
  });
});

test.each([
  ['404 with the Error body', on('9001', fails(404)), pet('9001')],
  ['400 with the Error body', on('create', fails(400)), undefined],
  ['422 with the Error body', on('create', fails(422)), undefined],
] as const)('a probe that is answered %s frees the key: nothing else finds out', async (_what, rule, document) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  await pause(world, petql, rule);
  await world.pass(PAUSED_MS);
  world.petApi.log.length = 0;
  await (document ? ask(world, petql, document) : create(world, petql));
  expect(await ask(world, petql, pet('701'))).toBe('fresh');
  expect(world.petApi.log.map(({ kind }) => kind)).not.toContain('list');
});

test('where the list after a probe fails too, the pause doubles from 5 s to 2 minutes, and gets one call each', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  await pause(world, petql, fails(500));
  world.petApi.log.length = 0;
  // Another key works, so that the API is open.
  world.petApi.fault = forKey('key', fails(500));
  void work(world, petql, { durationMs: 15 * MINUTE_MS, everyMs: 5_000, keys: ['second'], wants: ['list'] });
  await world.until(work(world, petql, { durationMs: 15 * MINUTE_MS, keys: ['key'], wants: ['create'] }));
  const [, ...probes] = world.petApi.log.filter(({ key }) => key === 'key');
  expect(probes.slice(0, 5).map(({ kind }) => kind)).toEqual(['list', 'create', 'list', 'create', 'list']);
  const gaps = probes.slice(1).map(({ sentAtMs }, index) => (sentAtMs - (probes[index]?.sentAtMs ?? 0)) / 1_000);
  expect(gaps.length).toBeGreaterThanOrEqual(8);
  expect(gaps[0]).toBeGreaterThanOrEqual(5);
  for (const [index, gap] of gaps.entries()) expect(gap).toBeGreaterThanOrEqual(Math.min(5 * 2 ** index, 120));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(150);
});

// A ban is what meets a list, which no client chose, whoever writes the page.
const BANS: [what: string, fault: Fault][] = [
  ['403 with the Error body', fails(403)],
  ['403 of nginx', box(403)],
  ['403 of a CDN', box(403, 'cdn')],
  ['401 with the Error body', fails(401)],
  ['401 of nginx', box(401)],
  ['401 of FastAPI', box(401, 'fastapi')],
];

describe.each(chooseCases(BANS, 3))('a key whose calls are answered %s after a 429', (_what, fault) => {
  test.each([
    ['a list', LIST],
    ['a pet', pet('701')],
    ['a create', undefined],
  ])('is paused as by a ban, with its data, and few calls: %s', async (_which, document) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await pause(world, petql, fault);
    await world.pass(PAUSED_MS);
    world.petApi.log.length = 0;
    await (document ? ask(world, petql, document, NO_CACHE) : create(world, petql));
    await world.pass(1_000);
    for (let second = 0; second < 30; second += 1) {
      expect(await ask(world, petql, LIST)).toBe('stale');
      expect(await create(world, petql, { waitMs: 0 })).toBe('FORBIDDEN');
      await world.pass(1_000);
    }
    expect(world.petApi.log.length).toBeLessThanOrEqual(2);
  });

  test('says in each error when to return', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    await pause(world, petql, fault);
    await world.pass(PAUSED_MS);
    // The read that meets the ban, and those after it.
    for (let turn = 0; turn < 3; turn += 1) {
      const document = '{ pets(status: PENDING) { id } rateLimit { pausedUntil } }';
      const { data, errors = [] } = await world.until(petql.ask(document, { ...NO_CACHE, waitMs: 1_000 }));
      expect(errors).toHaveLength(1);
      const [{ extensions, message } = { extensions: { code: '' }, message: '' }] = errors;
      const waitMs = Date.parse(data.rateLimit.pausedUntil) - world.nowMs;
      expect(extensions.retryAfterMs).toBeGreaterThan(0);
      expect(Math.abs((extensions.retryAfterMs ?? 0) - waitMs)).toBeLessThanOrEqual(1_500);
      expect(Date.parse(extensions.retryAt ?? '') - world.nowMs).toBeLessThanOrEqual(waitMs + 1_500);
      expect(message).not.toMatch(/Check the key/);
      await world.pass(1_000);
    }
  });
});

describe('an unproven key whose first call is a 429', () => {
  test.each([
    ['a list', LIST],
    ['a pet', pet(HIDDEN)],
  ])('is answered after its pause: %s', async (_which, document) => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = times(1, tooMany(5));
    expect(await ask(world, petql, document, { waitMs: 10_000 })).toBe('fresh');
    expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
  });

  test('costs no other key a call', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { maxWaitMs: 60_000 }, ['key']);
    world.petApi.fault = forKey('fourth', times(3, tooMany(5)));
    const first = petql.ask(LIST, { key: 'fourth', waitMs: 60_000 });
    const got = await world.until(work(world, petql, { durationMs: 20_000, keys: ['key'] }));
    expect(got).toMatchObject({ failed: 0, stale: 0, notCreated: 0 });
    expect(resultOf(await world.until(first))).toBe('fresh');
  });
});

test('one stray 429 at 46 of 60 leaves the whole next minute', async () => {
  await using world = await createFailingWorld({
    keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'nothing' } },
  });
  const petql = await world.start({ plan: 'free', maxWaitMs: 60_000 });
  await world.pass(60_000 - (world.nowMs % 60_000));
  for (const count of [30, 15]) await world.until(petql.create(count));
  world.petApi.fault = times(1, tooMany(5));
  await world.until(petql.create(1));
  world.petApi.fault = undefined;
  for (const minutes of [1, 2]) {
    await world.pass(MINUTE_MS - (world.nowMs % MINUTE_MS));
    world.petApi.log.length = 0;
    for (const count of [30, 29]) await world.until(petql.create(count, { waitMs: 50_000 }));
    expect([minutes, world.petApi.log.length]).toEqual([minutes, 59]);
  }
  expect(linesOf(petql).filter(({ level }) => level > 40)).toEqual([]);
});
