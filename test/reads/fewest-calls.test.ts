import { describe, expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { RESETS, fails, on, slow } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { wirePet } from '../support/pet-api/wire-pet.ts';

const LARGE = 400;

/** A gateway over a store with this many pets, whose ids are 1 and up. No entry of its cache expires within a test. */
async function overStore(pets: number, options: Partial<GatewayOptions> = {}) {
  const gateway = await startEmbedded({ maxAgeMs: 60_000, ...options }, { pets: petSeeds(pets) });
  return {
    ...gateway,
    async ask(document: string, variables: object = {}, apiKey = 'demo-business') {
      const { data, errors, extensions } = await gateway.execute({
        document,
        variables: variables as Record<string, unknown>,
        apiKey,
      });
      const usage = extensions?.['petql'] as { upstreamCalls: number };
      return { data: data as Record<string, any>, errors: errors as any[] | undefined, usage };
    },
    paths: () => gateway.petApi.log.map(({ path }) => path),
    fault: (path: string, fault: Fault) => (gateway.petApi.fault = (call) => (call.path === path ? fault : undefined)),
  };
}

const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => String(first + index));
const idsOf = (pets: { id: string }[]) => pets.map(({ id }) => id);
const BY_IDS = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';
const CREATE = 'mutation { createPet(input: { name: "Neo", categoryId: 1, status: SOLD }) { pet { id } } }';
const SOLD = Array.from({ length: 50 }, (_, index) => String(index * 3 + 3));

describe('in a store that one list shows whole', () => {
  test.each([1, 99])('of %d pets, any ids and filters in one operation are one call', async (pets) => {
    await using store = await overStore(pets);
    const { data, errors } = await store.ask(
      `query ($ids: [ID!]!) {
        petsById(ids: $ids) { id }
        pet(id: "1") { id status } none: pet(id: "-5") { id }
        all: pets { id } more: pets(limit: 100) { id }
        available: pets(status: AVAILABLE) { id } pending: pets(status: PENDING, limit: 1) { id } sold: pets(status: SOLD) { id }
      }`,
      { ids: idsFrom(1, 100) },
    );
    expect(errors).toBeUndefined();
    expect(data['petsById'].filter(Boolean)).toHaveLength(pets);
    expect([data['more'].length, data['none']]).toEqual([pets, null]);
    expect(store.paths()).toEqual(['/pets?limit=100']);
  });

  test('200 operations at once, each for another id or filter, cost five calls at most', async () => {
    await using store = await overStore(99);
    const queries = Array.from({ length: 200 }, (_, index) => {
      if (index % 53 >= 50) return `{ pets(status: ${['AVAILABLE', 'PENDING', 'SOLD'][(index % 53) - 50]}) { id } }`;
      return `{ pet(id: "${(index % 53) + 1}") { id } }`;
    });
    const answers = await Promise.all(queries.map((query) => store.ask(query)));
    expect(answers.filter(({ errors }) => errors)).toEqual([]);
    expect(store.paths().length).toBeLessThanOrEqual(5);
    expect(answers.reduce((sum, { usage }) => sum + usage.upstreamCalls, 0)).toBe(store.paths().length);
  });

  test('reads one after another are two calls', async () => {
    await using store = await overStore(50);
    for (const id of idsFrom(1, 60)) await store.ask(`{ pet(id: "${id}") { id } }`);
    await store.ask('{ pets(status: SOLD) { id } }');
    expect(store.paths()).toEqual(['/pets/1', '/pets?limit=100']);
  });

  test('reads that wait for the same are one call', async () => {
    await using store = await overStore(99);
    store.petApi.fault = slow(200);
    const first = store.ask('{ pet(id: "1") { id } }');
    await expect.poll(store.paths).toHaveLength(1);
    const rest = idsFrom(1, 99).map((id) => store.ask(`{ pet(id: "${id}") { id } pets(status: SOLD) { id } }`));
    const answers = await Promise.all([first, ...rest]);
    expect(answers.filter(({ errors }) => errors)).toEqual([]);
    expect(store.paths()).toEqual(['/pets/1', '/pets?limit=100']);
  });
});

describe('in a store too large for one list', () => {
  test('n ids cost n calls and one, and later n', async () => {
    await using store = await overStore(LARGE);
    const { data } = await store.ask(BY_IDS, { ids: idsFrom(201, 20) });
    expect(idsOf(data['petsById'])).toEqual(idsFrom(201, 20));
    expect(store.paths()).toHaveLength(21);
    await store.ask(BY_IDS, { ids: idsFrom(301, 20) });
    expect(store.paths()).toHaveLength(41);
  });

  test('ids that a fresh list shows cost nothing', async () => {
    await using store = await overStore(LARGE);
    await store.ask('{ pets(limit: 1) { id } }');
    expect((await store.ask(BY_IDS, { ids: idsFrom(1, 100) })).data['petsById']).toHaveLength(100);
    expect(store.paths()).toHaveLength(1);
  });

  test.each([
    ['{ pets { id } }', idsFrom(1, 50)],
    ['{ pets(status: SOLD, limit: 100) { id } }', SOLD],
  ])('ids that the stale list %s shows cost that list again, after a write too', async (list, ids) => {
    await using store = await overStore(LARGE, { maxAgeMs: 0 });
    await store.ask('{ pets { id } }');
    await store.ask(list);
    for (const write of [undefined, CREATE]) {
      if (write) await store.ask(write);
      const before = store.paths().length;
      expect(idsOf((await store.ask(BY_IDS, { ids })).data['petsById'])).toEqual(ids);
      expect(store.paths()).toHaveLength(before + 1);
    }
  });

  test('ids that two lists show cost the fewest lists that show them all', async () => {
    await using store = await overStore(150, { maxAgeMs: 0 });
    await store.ask('{ pets { id } }');
    await store.ask('{ pets(status: SOLD) { id } }');
    const before = store.paths().length;
    await store.ask(BY_IDS, { ids: SOLD });
    expect(store.paths().slice(before)).toEqual(['/pets?limit=100&status=sold']);
  });

  test('each operation pays for its own call, though others wait for it', async () => {
    await using store = await overStore(LARGE, { maxAgeMs: 0 });
    await store.ask('{ pets { id } }');
    const answers = await Promise.all([store.ask('{ pet(id: "390") { id } }'), store.ask('{ pets { id } }')]);
    expect(answers.map(({ usage }) => usage.upstreamCalls)).toEqual([1, 1]);
  });

  test('a stale list is one call each time', async () => {
    await using store = await overStore(250, { maxAgeMs: 0 });
    for (let calls = 1; calls <= 3; calls += 1) {
      await store.ask('{ pets(status: AVAILABLE, limit: 2) { id name status } }');
      expect(store.paths()).toHaveLength(calls);
    }
  });

  test('equal reads are one call, whatever their aliases and limits', async () => {
    await using store = await overStore(LARGE);
    const { data, errors } = await store.ask(`{
      a: pets(status: SOLD, limit: 2) { id } b: pets(status: SOLD) { id name } c: pets(status: SOLD, limit: 100) { id }
      d: pet(id: "7") { id } e: pet(id: 7) { name } f: petsById(ids: ["7", "7"]) { id }
    }`);
    expect(errors).toBeUndefined();
    expect([data['a'].length, data['b'].length, data['c'].length]).toEqual([2, 20, 100]);
    expect(data['f']).toEqual([{ id: '7' }, { id: '7' }]);
    expect(store.paths()).toEqual(['/pets?limit=100', '/pets?limit=100&status=sold']);
  });

  test('operations share a call that is under way', async () => {
    await using store = await overStore(LARGE);
    store.petApi.fault = slow(100);
    const answers = await Promise.all(Array.from({ length: 50 }, () => store.ask('{ pet(id: "333") { id } }')));
    expect(new Set(answers.map(({ data }) => data['pet'].id))).toEqual(new Set(['333']));
    expect(store.paths()).toEqual(['/pets/333']);
  });
});

test('ids come in their order, with null for each that does not exist, and no ids cost no call', async () => {
  await using gateway = await startEmbedded();
  const ask = (ids: string[]) => gateway.execute({ document: BY_IDS, variables: { ids }, apiKey: 'demo-free' });
  expect((await ask([])).data).toEqual({ petsById: [] });
  expect(gateway.petApi.log).toHaveLength(0);
  const { data } = await ask(['3', '404404', '9007199254740993', '-1']);
  expect(data).toEqual({ petsById: [{ id: '3' }, null, { id: '9007199254740993' }, null] });
});

test('nothing is shared between API keys', async () => {
  await using store = await overStore(10);
  for (const key of ['demo-free', 'demo-business']) await store.ask('{ pets { id } }', {}, key);
  expect(store.petApi.log.map(({ key }) => key)).toEqual(['demo-free', 'demo-business']);
});

describe('a read after a write of the same key', () => {
  const NAMES = '{ pets(limit: 100) { name } }';
  const neo = { name: 'Neo' };

  test.each<[string, Fault | undefined]>([
    ['succeeded', undefined],
    ['has an unknown outcome', RESETS],
  ])('sees it though a fresh answer is cached, where the write %s', async (_outcome, fault) => {
    await using store = await overStore(10);
    await store.ask(NAMES);
    store.petApi.fault = on('create', fault);
    const { errors } = await store.ask(CREATE);
    expect(errors?.[0].extensions.code).toBe(fault && 'OUTCOME_UNKNOWN');
    expect((await store.ask(NAMES)).data['pets']).toContainEqual(neo);
  });

  test('does not share a call that was sent before the write was over', async () => {
    await using store = await overStore(10);
    await store.ask('{ pet(id: "1") { id } }');
    // The upstream reads its store at once and answers late.
    store.petApi.fault = on(['list', 'get'], slow(200));
    const early = store.ask(NAMES);
    await expect.poll(store.paths).toHaveLength(2);
    await store.ask(CREATE);
    const late = store.ask(NAMES);
    expect((await early).data['pets']).not.toContainEqual(neo);
    expect((await late).data['pets']).toContainEqual(neo);
    expect((await store.ask(NAMES)).data['pets']).toContainEqual(neo);
  });
});

describe('a failed call', () => {
  const WRONG = { body: `[${wirePet({ status: '1' })}]` };

  test('fails only the reads that need it, and is not cached longer than data', async () => {
    await using store = await overStore(LARGE, { maxAgeMs: 0 });
    await store.ask('{ pets { id } }');
    store.fault('/pets/350', fails(500));
    const some = await store.ask(
      '{ a: pet(id: "349") { id } b: pet(id: "350") { id } c: pets(status: SOLD, limit: 1) { id } }',
    );
    expect(some.data).toEqual({ a: { id: '349' }, b: null, c: [{ id: '3' }] });
    expect(some.errors).toMatchObject([{ path: ['b'], extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
    store.petApi.fault = undefined;
    expect((await store.ask('{ pet(id: "350") { id } }')).data).toEqual({ pet: { id: '350' } });
  });

  test.each<[string, Fault]>([
    ['breaks the contract', WRONG],
    ['is a 404', { status: 404, body: '' }],
  ])('that was to save others leaves each its own call where it %s', async (_why, fault) => {
    await using store = await overStore(20);
    store.fault('/pets?limit=100', fault);
    // Before any call has worked, a 404 is about the base URL.
    await store.ask('{ pet(id: "9") { id } }');
    const { data, errors } = await store.ask(
      '{ pet(id: "7") { id } none: pet(id: "77") { id } pets(status: SOLD) { id } }',
    );
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ pet: { id: '7' }, none: null });
    expect(data['pets']).toHaveLength(6);
    // The list is tried twice.
    expect(store.paths()).toHaveLength(6);
  });

  test.each<[string, Fault]>([
    ['a redirect', { status: 302, body: '' }],
    ['HTML', { body: '<html>Closed for today</html>' }],
  ])('that was to save others fails them all with few calls where each call is %s', async (_why, fault) => {
    await using store = await overStore(20);
    store.petApi.fault = fault;
    const { data, errors } = await store.ask(BY_IDS, { ids: idsFrom(1, 20) });
    expect(data['petsById']).toEqual(Array.from({ length: 20 }, () => null));
    expect(errors?.[0].extensions.code).toBe('DOWNSTREAM_SERVICE_ERROR');
    // The list twice, and one other call that finds out whether anything works.
    expect(store.paths()).toMatchObject(['/pets?limit=100', '/pets?limit=100', expect.stringMatching(/^\/pets\/\d+$/)]);
  });

  test.each<[string, Fault, number]>([
    ['fails', fails(), 3],
    ['breaks the contract', WRONG, 0],
  ])('of a list is not used to save calls for a while where it %s', async (_why, fault, mostErrors) => {
    await using store = await overStore(LARGE, { maxAgeMs: 0 });
    store.fault('/pets?limit=100', fault);
    const answers = [];
    for (const id of idsFrom(301, 20)) answers.push(await store.ask(`{ pet(id: "${id}") { id } }`));
    expect(answers.filter(({ errors }) => errors).length).toBeLessThanOrEqual(mostErrors);
    expect(store.paths().filter((path) => path === '/pets?limit=100').length).toBeLessThan(6);
    expect((await store.ask('{ pets(status: SOLD) { id } }')).errors).toBeUndefined();
    expect((await store.ask('{ pets { id } }')).errors).toHaveLength(1);
  });
});
