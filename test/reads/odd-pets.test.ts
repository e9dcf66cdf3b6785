import { describe, expect, test } from 'vitest';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { on } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';

interface WirePet {
  id: unknown;
  name?: unknown;
  categoryId?: unknown;
  status?: unknown;
}
const FRESH = { headers: { 'cache-control': 'no-cache' } };

/** Changes what lists show. */
const changed = (change: (pets: WirePet[]) => unknown[]): Fault => ({
  body: (body) => JSON.stringify(change(JSON.parse(body) as WirePet[])),
});
const idsOf = (pets: readonly { id: string }[]) => pets.map(({ id }) => id);

/** Over the pets 1 to 9; their statuses are available, pending, sold, and so on. */
const overNine = () => startGateway({ petApi: { pets: petSeeds(9) }, gateway: { admin: true } });

describe.each<[what: string, problem: string, change: (pet: WirePet) => unknown]>([
  ['has no name', 'name: expected a string', ({ name: _name, ...pet }) => pet],
  ['has a name that is no text', 'name: expected a string', (pet) => ({ ...pet, name: 7 })],
  ['has no category', 'categoryId: expected an int64', (pet) => ({ ...pet, categoryId: null })],
  ['has an id that is no int64', 'id: expected an int64', (pet) => ({ ...pet, id: 1.5 })],
  ['has a status that is no text', 'status: expected a string', (pet) => ({ ...pet, status: 1 })],
  ['is null', 'id: expected an int64', () => null],
  ['is a list', 'id: expected an int64', () => []],
  ['has the id of another', 'id: expected different ids', (pet) => ({ ...pet, id: 1 })],
])('a pet that %s', (_what, problem, change) => {
  test('is left out of its list, counted, and in one line of the log', async () => {
    await using gateway = await overNine();
    gateway.petApi.fault = on(
      'list',
      changed((pets) => pets.map((pet) => (pet.id === 4 ? change(pet) : pet))),
    );
    for (let call = 0; call < 3; call += 1) {
      const { data, errors } = await gateway.query('{ pets { id } }', FRESH);
      expect([errors, idsOf(data?.['pets'])]).toEqual([undefined, ['1', '2', '3', '5', '6', '7', '8', '9']]);
    }
    const lines = gateway.logLines.filter(({ level }) => level >= 40);
    expect(lines).toMatchObject([{ level: 40, problem, msg: expect.stringContaining('served without them') }]);
    const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text();
    expect(metrics).toContain('petql_pets_left_out_total 3\n');
  });

  test('proves no absence: a pet that the list does not show is called for', async () => {
    await using gateway = await overNine();
    gateway.petApi.fault = on(
      'list',
      changed((pets) => pets.map((pet) => (pet.id === 4 ? change(pet) : pet))),
    );
    const { data, errors } = await gateway.query('{ pets { id } petsById(ids: ["1", "4", "404404"]) { id } }');
    expect(errors).toBeUndefined();
    expect(data?.['petsById']).toEqual([{ id: '1' }, { id: '4' }, null]);
    expect(gateway.petApi.log.map(({ target }) => target).toSorted()).toEqual(['4', '404404', 'all']);
  });
});

test('a pet that shows another status than its list is left out of it', async () => {
  await using gateway = await overNine();
  gateway.petApi.fault = on(
    'sold',
    changed((pets) => [...pets, { ...pets[0], id: 4, status: 'available' }]),
  );
  const { data, errors } = await gateway.query('{ pets(status: SOLD) { id status } }');
  expect([errors, idsOf(data?.['pets'])]).toEqual([undefined, ['3', '6', '9']]);
});

test('equal twins, as pages that shift make them, are one pet and no breach', async () => {
  await using gateway = await overNine();
  gateway.petApi.fault = on(
    'list',
    changed((pets) => [...pets, ...pets.slice(0, 5)]),
  );
  const { data } = await gateway.query('{ pets { id } pet(id: "404404") { id } }');
  expect(idsOf(data?.['pets'])).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9']);
  expect([data?.['pet'], gateway.petApi.log.length]).toEqual([null, 1]);
  expect(gateway.logLines.filter(({ level }) => level >= 40)).toEqual([]);
});

test.each([
  [4, true],
  [5, false],
  [9, false],
])('of nine pets %i cannot be read: the list is served: %s', async (count, isServed) => {
  await using gateway = await overNine();
  gateway.petApi.fault = on(
    'list',
    changed((pets) => pets.map((pet, index) => (index < count ? { id: pet.id } : pet))),
  );
  const { data, errors } = await gateway.query('{ pets { id } }');
  expect(data?.['pets']?.length).toBe(isServed ? 9 - count : undefined);
  expect(errors?.[0]?.message ?? '').toMatch(isServed ? /^$/ : /\[0\]\.name: expected a string/);
});

test('statuses in capitals are read, and a list of one status is the same however it was read', async () => {
  await using gateway = await overNine();
  gateway.petApi.fault = on(
    'list',
    changed((pets) => pets.map((pet) => ({ ...pet, status: String(pet.status).toUpperCase() }))),
  );
  const sold = '{ pets(status: SOLD) { id status } }';
  const alone = await gateway.query(sold, FRESH);
  await gateway.query('{ pets { id } }', FRESH);
  expect((await gateway.query(sold)).data).toEqual(alone.data);
  expect(alone.data?.['pets'][0]).toEqual({ id: '3', status: 'SOLD' });
});

describe('a created pet that lists do not show yet', () => {
  test('is there for some seconds after its 201, and gone when a later list does not show it', async () => {
    let passedMs = 0;
    const clock = { now: () => Date.now() + passedMs, elapsed: () => performance.now() + passedMs };
    await using gateway = await startGateway({ petApi: { pets: petSeeds(9) }, gateway: { clock } });
    gateway.petApi.fault = on(
      'list',
      changed((pets) => pets.filter(({ id }) => Number(id) < 10)),
    );
    const created = await gateway.query('mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } } }');
    expect(created.data?.['createPet'].pet).toEqual({ id: '10' });

    const read = '{ pets(limit: 100) { id } pet(id: "10") { id name } }';
    for (const pauseMs of [0, 1_200, 1_200, 1_200]) {
      passedMs += pauseMs;
      const { data, errors } = await gateway.query(read, { headers: { 'cache-control': 'max-age=1' } });
      expect([errors, data?.['pet']]).toEqual([undefined, { id: '10', name: 'Ada' }]);
    }
    // By now a list has caught up.
    passedMs += 4_000;
    const { data } = await gateway.query(read, { headers: { 'cache-control': 'max-age=1' } });
    expect(data?.['pet']).toBeNull();
  });
});
