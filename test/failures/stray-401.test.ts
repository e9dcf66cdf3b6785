import { describe, expect, test } from 'vitest';
import { HIDDEN, LIST, NO_CACHE, SOLD, ask, create, createFailingWorld } from '../support/failing-world.ts';
import { linesOf, pet, resultOf, startProven, work } from '../support/failing-world.ts';
import { FORBIDS, HANGS, REJECTS_KEY, box, fails, mixed, on, slow, times } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { OperationOptions, Petql, World } from '../support/world.ts';

const CACHED: OperationOptions = { cacheControl: 'only-if-cached, max-age=3600' };

/** Who says it does not matter. */
const SAID: [what: string, fault: Fault][] = [
  ['with the Error body', REJECTS_KEY],
  ['of FastAPI', box(401, 'fastapi')],
  ['of a CDN', box(401, 'cdn')],
  ['of nginx, with Basic', box(401, 'nginx', { 'www-authenticate': 'Basic realm="staging"' })],
  ['of Express', box(401, 'express')],
  ['of a proxy', box(401, 'proxy')],
];

const listsIn = ({ petApi }: World) => petApi.log.filter(({ kind }) => kind === 'list');

describe.each(chooseCases(SAID, 3))('one 401 %s', (_what, fault) => {
  describe.each([
    ['of a pet', async (world: World, petql: Petql) => ask(world, petql, pet('701'), { visitor: 'first' })],
    ['of a list', async (world: World, petql: Petql) => ask(world, petql, SOLD, { visitor: 'first', ...NO_CACHE })],
    ['of a create', async (world: World, petql: Petql) => create(world, petql, { visitor: 'first' })],
  ] as const)('%s', (_which, meet) => {
    test('costs the other visitors of the key nothing, and one list', async () => {
      await using world = await createFailingWorld();
      const petql = await startProven(world);
      world.petApi.fault = times(1, fault);
      const met = meet(world, petql);
      await met;
      const before = listsIn(world).length;
      const visitor = 'second';
      expect(await ask(world, petql, pet(HIDDEN), { visitor, ...NO_CACHE })).toBe('fresh');
      expect(await create(world, petql, { visitor })).toBe('fresh');
      expect(await ask(world, petql, pet('702'), { visitor })).toBe('fresh');
      expect(listsIn(world).length - before).toBeLessThanOrEqual(1);
      const got = await world.until(work(world, petql, { durationMs: 20_000, keys: ['key'] }));
      expect(got).toMatchObject({ failed: 0, notCreated: 0 });
    });

    test('leaves the cached data', async () => {
      await using world = await createFailingWorld();
      const petql = await startProven(world);
      world.petApi.fault = on(['701', 'sold', 'create'], times(1, fault));
      await meet(world, petql);
      // The list that finds out has an answer by now.
      await world.pass(1_000);
      world.petApi.log.length = 0;
      // A create that happened would make it unusable, and that one did not.
      expect(resultOf(await world.until(petql.ask(LIST, CACHED)))).toMatch(/fresh|stale/);
      expect(world.petApi.log).toEqual([]);
    });
  });

  test('withholds the data until a list has answered, which goes before all other calls', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = [on('701', times(1, fault)), on('list', slow(600))];
    void petql.ask(pet('701'));
    await world.pass(200);
    const waiting = [petql.ask(pet('702')), petql.create(1)];
    await world.pass(300);
    expect(world.petApi.log.map(({ kind }) => kind)).toEqual(['get', 'list']);
    expect(await ask(world, petql, SOLD, CACHED)).not.toMatch(/fresh|stale/);
    expect((await world.until(Promise.all(waiting))).map(resultOf)).toEqual(['fresh', 'fresh']);
  });

  test.each([
    ['does not come within a second', HANGS],
    ['is answered 401 as well', fault],
  ])('rejects the key where the list %s', async (_how, then) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 2_000 });
    world.petApi.fault = [on('701', fault), on('list', then)];
    await ask(world, petql, pet('701'));
    await world.pass(1_100);
    world.petApi.log.length = 0;
    expect(await ask(world, petql, LIST, CACHED)).not.toMatch(/fresh|stale/);
    world.petApi.fault = undefined;
    // What hangs has timed out, and the key is tried again.
    await world.pass(3_000);
    expect(await ask(world, petql, LIST)).toBe('fresh');
  });

  // Two lists confirm each rejection, and the second one in a row drops the data.
  test('gives the data back after a success, but for a second rejection in a row', async () => {
    for (const [rejections, expected] of [
      [3, /fresh|stale/],
      [6, /NOT_CACHED/],
    ] as const) {
      await using world = await createFailingWorld();
      const petql = await startProven(world);
      world.petApi.fault = times(rejections, fault);
      for (let second = 0; second < 20; second += 1) {
        await ask(world, petql, LIST, NO_CACHE);
        await world.pass(1_000);
      }
      expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
      expect([rejections, await ask(world, petql, SOLD, CACHED)]).toEqual([
        rejections,
        expect.stringMatching(expected),
      ]);
    }
  });
});

describe('a key that may not create', () => {
  test.each([
    ['each second', 1_000],
    ['each 10 s', 10_000],
  ])('reads all the time, and is rejected %s', async (_when, everyMs) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on('create', REJECTS_KEY);
    const load = { keys: ['key'], durationMs: 2 * MINUTE_MS };
    const creates = work(world, petql, { ...load, everyMs, wants: ['create'] });
    const got = await world.until(work(world, petql, { ...load, wants: ['list', 'pet'] }));
    expect(got).toMatchObject({ failed: 0 });
    expect(got.stale).toBeLessThanOrEqual(2);
    expect([...(await world.until(creates)).codes]).toEqual(['UNAUTHENTICATED']);
  });

  test('is confirmed by one list for ten minutes', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on('create', REJECTS_KEY);
    await world.until(
      work(world, petql, { keys: ['key'], durationMs: 9 * MINUTE_MS, everyMs: 10_000, wants: ['create'] }),
    );
    expect(listsIn(world)).toHaveLength(1);
  });
});

test.each(
  chooseCases(
    [
      ['one of three', mixed([[1 / 3, REJECTS_KEY]])],
      ['one of four', mixed([[1 / 4, box(401)]])],
      ['one of ten', mixed([[1 / 10, box(401, 'fastapi')]])],
    ] as const,
    3,
  ),
)('where %s nodes answers 401, seven of ten reads are served', async (_what, rule) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = rule;
  const got = await world.until(work(world, petql, { durationMs: 5 * MINUTE_MS, everyMs: 1_250 }));
  expect(got.fresh + got.stale).toBeGreaterThanOrEqual(0.7 * 480);
  expect(got.created).toBeGreaterThanOrEqual(240 / 3);
});

describe.each(chooseCases(SAID, 3))('a key that is revoked by a 401 %s', (_what, fault) => {
  test('gets no data from its first 401 on, and few calls', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = fault;
    expect(await ask(world, petql, LIST, NO_CACHE)).toBe('UNAUTHENTICATED');
    const got = await world.until(work(world, petql, { keys: ['key'], durationMs: 4 * MINUTE_MS }));
    expect(got).toMatchObject({ fresh: 0, stale: 0, created: 0 });
    expect([...got.codes]).toEqual(['UNAUTHENTICATED']);
    expect(world.petApi.log.length).toBeLessThanOrEqual(40);
  });

  test('and that was never accepted is rejected for 10 s by one call', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = fault;
    for (let second = 0; second < 10; second += 1) {
      const { errors } = await world.until(petql.ask(LIST));
      expect(errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
      await world.pass(900);
    }
    expect(world.petApi.log).toHaveLength(1);
  });
});

test('errors of a rejected key say when it is tried again', async () => {
  await using world = await createFailingWorld();
  const petql = await world.start({ plan: 'business' });
  world.petApi.fault = REJECTS_KEY;
  await ask(world, petql, LIST);
  await world.pass(2_000);
  const { errors } = await world.until(petql.ask(LIST));
  expect(errors?.[0]?.extensions.retryAfterMs).toBeGreaterThan(0);
  expect(errors?.[0]?.extensions.retryAfterMs).toBeLessThanOrEqual(10_000);
  expect(errors?.[0]?.extensions.retryAt).toMatch(/^2026-/);
});

describe('where the key of the server itself is wrong', () => {
  const send = (petql: Petql) =>
    petql.fetch(
      new Request('http://localhost/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: LIST }),
      }),
    );

  test.each(chooseCases(SAID, 3))('one warning says so, and health is degraded: 401 %s', async (_what, fault) => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business', petApiKey: 'a-wrong-key' });
    world.petApi.fault = fault;
    for (let second = 0; second < 60; second += 1) {
      const { status } = await world.until(send(petql));
      expect(status).not.toBe(500);
      await world.pass(1_000);
    }
    expect(linesOf(petql).map(({ level }) => level)).toEqual([40]);
    expect(JSON.stringify(linesOf(petql))).not.toContain('a-wrong-key');
    expect(JSON.parse(await petql.page('/health/ready'))).toMatchObject({ status: 'degraded' });
    world.petApi.fault = undefined;
  });

  test('one warning says that it forbids all, and health is degraded until it works again', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business', petApiKey: 'key' });
    world.petApi.fault = FORBIDS;
    for (let second = 0; second < 30; second += 1) {
      await world.until(send(petql));
      await world.pass(1_000);
    }
    expect(linesOf(petql).map(({ level }) => level)).toEqual([40]);
    expect(JSON.parse(await petql.page('/health/ready'))).toMatchObject({
      status: 'degraded',
      upstream: { key: 'rejected' },
    });
    world.petApi.fault = undefined;
    for (let turn = 0; turn < 5; turn += 1) {
      await world.until(send(petql));
      await world.pass(10_000);
    }
    expect(JSON.parse(await petql.page('/health/ready')).status).toBe('ok');
  });

  test.each([
    ['creates alone', on('create', FORBIDS)],
    ['one node of three', mixed([[1 / 3, REJECTS_KEY]])],
  ])('is not wrong where %s are rejected', async (_what, fault) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { petApiKey: 'key' }, ['key']);
    world.petApi.fault = fault;
    for (let second = 0; second < 30; second += 1) {
      await world.until(send(petql));
      await world.pass(1_000);
    }
    world.petApi.fault = undefined;
    await world.pass(30_000);
    await world.until(send(petql));
    expect(JSON.parse(await petql.page('/health/ready')).status).toBe('ok');
  });

  test('is no line for keys that clients send: anybody can make them up', async () => {
    await using world = await createFailingWorld();
    const petql = await world.start({ plan: 'business' });
    world.petApi.fault = fails(401);
    for (let call = 0; call < 20; call += 1) await ask(world, petql, LIST, { key: `made up ${call}` });
    expect(linesOf(petql)).toEqual([]);
  });
});
