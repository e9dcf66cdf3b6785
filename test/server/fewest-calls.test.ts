import { describe, expect, test } from 'vitest';
import { PET_STATUSES } from '../../src/pet.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { modelPet } from '../caller/model-store.ts';

const BUSINESS = { authorization: 'Bearer demo-business' };

/**
 * A gateway over a store of so many animals, whose ids are 1 and up.
 *
 * @param maxAgeMs so long that a burst is answered by what it shares, however slowly it comes in.
 */
function overStore(animals: number, maxAgeMs = 1_000): Promise<TestGateway> {
  const seeds = Array.from({ length: animals }, (_, index) => {
    const { id: _taken, ...seed } = modelPet(index + 1, PET_STATUSES[index % 3]);
    return seed;
  });
  return startGateway({ sandbox: { seeds }, gateway: { maxAgeMs } });
}

const paths = ({ sandbox }: TestGateway) => sandbox.calls.map(({ path }) => path);
const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => String(first + index));
const byIds = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';

describe('in a store that one listing shows whole', () => {
  test.each([1, 99])(
    'of %d animals, any ids and filters in one operation are one call, whether the ids exist or not',
    async (animals) => {
      await using gateway = await overStore(animals);
      const { data, errors } = await gateway.query(
        `query ($ids: [ID!]!) {
        petsById(ids: $ids) { id }
        pet(id: "1") { id status }
        none: pet(id: "-5") { id }
        all: pets { id } more: pets(limit: 100) { id }
        available: pets(status: AVAILABLE) { id } pending: pets(status: PENDING, limit: 1) { id } sold: pets(status: SOLD) { id }
      }`,
        { variables: { ids: idsFrom(1, 100) } },
      );
      expect(errors).toBeUndefined();
      expect(data?.['petsById'].filter(Boolean)).toHaveLength(animals);
      expect(data?.['more']).toHaveLength(animals);
      expect(data?.['none']).toBeNull();
      expect(paths(gateway)).toEqual(['/pets?limit=100']);
    },
  );

  test('a thousand operations at one moment, each for another id or filter, cost five calls at most', async () => {
    await using gateway = await overStore(99, 60_000);
    const queries = Array.from({ length: 1_000 }, (_, index) => {
      if (index % 53 >= 50) return `{ pets(status: ${['AVAILABLE', 'PENDING', 'SOLD'][(index % 53) - 50]}) { id } }`;
      return `{ pet(id: "${(index % 53) + 1}") { id } }`;
    });
    const answers = await Promise.all(queries.map((query) => gateway.query(query, { headers: BUSINESS })));
    expect(answers.filter(({ errors }) => errors)).toEqual([]);
    expect(gateway.sandbox.calls.length).toBeLessThanOrEqual(5);
    const made = answers.map(({ extensions }) => extensions?.['petql'].upstreamCalls as number);
    expect(made.reduce((sum, calls) => sum + calls)).toBe(gateway.sandbox.calls.length);
  });

  test('asked for one thing after the other, it is known after two calls', async () => {
    await using gateway = await overStore(50, 60_000);
    for (const id of idsFrom(1, 60)) await gateway.query(`{ pet(id: "${id}") { id } }`);
    await gateway.query('{ pets(status: SOLD) { id } }');
    expect(paths(gateway)).toEqual(['/pets/1', '/pets?limit=100']);
  });

  test('what waits for the plan is a set: it grows by no call when more of the same is asked for', async () => {
    await using gateway = await overStore(99, 60_000);
    gateway.sandbox.setFault(() => ({ delayMs: 200 }));
    const first = gateway.query('{ pet(id: "1") { id } }');
    await expect.poll(() => gateway.sandbox.calls.length).toBe(1);
    const rest = idsFrom(1, 200).map((id) => gateway.query(`{ pet(id: "${id}") { id } pets(status: SOLD) { id } }`));
    const answers = await Promise.all([first, ...rest]);
    expect(answers.filter(({ errors }) => errors)).toEqual([]);
    expect(paths(gateway)).toEqual(['/pets/1', '/pets?limit=100']);
  });
});

describe('in a store too large for one listing', () => {
  test('so many ids cost at most so many calls and one, and later no more than so many', async () => {
    await using gateway = await overStore(400);
    const first = await gateway.query(byIds, { variables: { ids: idsFrom(201, 20) }, headers: BUSINESS });
    expect(first.data?.['petsById'].map(({ id }: { id: string }) => id)).toEqual(idsFrom(201, 20));
    expect(gateway.sandbox.calls).toHaveLength(21);
    await gateway.query(byIds, { variables: { ids: idsFrom(301, 20) }, headers: BUSINESS });
    expect(gateway.sandbox.calls).toHaveLength(41);
  });

  test('ids that a fresh listing shows cost nothing', async () => {
    await using gateway = await overStore(400);
    await gateway.query('{ pets(limit: 1) { id } }');
    const { data } = await gateway.query(byIds, { variables: { ids: idsFrom(1, 100) } });
    expect(data?.['petsById']).toHaveLength(100);
    expect(gateway.sandbox.calls).toHaveLength(1);
  });

  test.each([
    ['all', '{ pets { id } }', idsFrom(1, 50)],
    [
      'the sold ones',
      '{ pets(status: SOLD, limit: 100) { id } }',
      Array.from({ length: 50 }, (_, n) => String(n * 3 + 3)),
    ],
  ])(
    'ids that an aged listing of %s has shown cost that listing again, after a write too',
    async (_what, list, ids) => {
      await using gateway = await overStore(400, 0);
      await gateway.query('{ pets { id } }', { headers: BUSINESS });
      await gateway.query(list, { headers: BUSINESS });
      for (const write of ['', 'mutation { createPet(input: { name: "Neo", categoryId: 1 }) { pet { id } } }']) {
        if (write) await gateway.query(write, { headers: BUSINESS });
        const { length } = gateway.sandbox.calls;
        const { data } = await gateway.query(byIds, { variables: { ids }, headers: BUSINESS });
        expect(data?.['petsById'].map(({ id }: { id: string }) => id)).toEqual(ids);
        expect(gateway.sandbox.calls).toHaveLength(length + 1);
      }
    },
  );

  test('one that others wait for is paid by whoever asked for it', async () => {
    await using gateway = await overStore(400, 0);
    await gateway.query('{ pets { id } }', { headers: BUSINESS });
    const answers = await Promise.all(
      ['{ pet(id: "390") { id } }', '{ pets { id } }'].map((query) => gateway.query(query, { headers: BUSINESS })),
    );
    expect(answers.map(({ extensions }) => extensions?.['petql'].upstreamCalls)).toEqual([1, 1]);
  });

  test('reads of one filter with different limits are one call, and its animals cost no other', async () => {
    await using gateway = await overStore(400);
    await gateway.query('{ pets { id } }');
    const { data } = await gateway.query(
      '{ a: pets(status: SOLD, limit: 1) { id } b: pets(status: SOLD, limit: 100) { id } pet(id: "3") { id } }',
    );
    expect([data?.['a'].length, data?.['b'].length]).toEqual([1, 100]);
    expect(paths(gateway)).toEqual(['/pets?limit=100', '/pets?limit=100&status=sold']);
  });
});

test('equal reads of different operations share the call that is under way', async () => {
  await using gateway = await overStore(400);
  gateway.sandbox.setFault(() => ({ delayMs: 100 }));
  const answers = await Promise.all(Array.from({ length: 50 }, () => gateway.query('{ pet(id: "333") { id } }')));
  expect(new Set(answers.map(({ data }) => data?.['pet'].id))).toEqual(new Set(['333']));
  expect(paths(gateway)).toEqual(['/pets/333']);
});

test('nothing is shared between API keys', async () => {
  await using gateway = await overStore(10);
  await gateway.query('{ pets { id } }');
  await gateway.query('{ pets { id } }', { headers: BUSINESS });
  expect(gateway.sandbox.calls.map(({ key }) => key)).toEqual(['demo-free', 'demo-business']);
});

describe('a read that begins after a write of the same key', () => {
  const CREATE = 'mutation { createPet(input: { name: "Neo", categoryId: 1, status: SOLD }) { pet { id } } }';
  const NAMES = '{ pets(limit: 100) { name } }';

  test('sees it, though a younger answer than maxAge was known', async () => {
    await using gateway = await overStore(10);
    await gateway.query(NAMES);
    await gateway.query(CREATE);
    const { data } = await gateway.query(NAMES);
    expect(data?.['pets']).toContainEqual({ name: 'Neo' });
  });

  test('does not share a call that was sent before the write was over', async () => {
    await using gateway = await overStore(10);
    await gateway.query('{ pet(id: "1") { id } }');
    // The service reads the store at once and answers late.
    gateway.sandbox.setFault(({ method }) => (method === 'GET' ? { delayMs: 300 } : undefined));
    const early = gateway.query(NAMES);
    await expect.poll(() => gateway.sandbox.calls.length).toBe(2);
    await gateway.query(CREATE);
    const late = gateway.query(NAMES);
    expect((await early).data?.['pets']).not.toContainEqual({ name: 'Neo' });
    expect((await late).data?.['pets']).toContainEqual({ name: 'Neo' });
    const again = await gateway.query(NAMES);
    expect(again.data?.['pets']).toContainEqual({ name: 'Neo' });
  });

  test('is not served from memory where nobody knows what became of the write', async () => {
    await using gateway = await overStore(10);
    await gateway.query(NAMES);
    gateway.sandbox.setFault(({ method }) => (method === 'POST' ? { reset: true } : undefined));
    expect((await gateway.query(CREATE)).errors?.[0]?.extensions.code).toBe('OUTCOME_UNKNOWN');
    const { data } = await gateway.query(NAMES);
    expect(data?.['pets']).toContainEqual({ name: 'Neo' });
  });
});

describe('a call that fails inside a plan of calls', () => {
  test('fails only what needed that call, and is not remembered', async () => {
    await using gateway = await overStore(400);
    await gateway.query('{ pets { id } }', { headers: BUSINESS });
    gateway.sandbox.setFault(({ path }) => (path === '/pets/350' ? { status: 500 } : undefined));
    const some = await gateway.query(
      '{ a: pet(id: "349") { id } b: pet(id: "350") { id } c: pets(status: SOLD, limit: 1) { id } }',
      {
        headers: BUSINESS,
      },
    );
    expect(some.data).toEqual({ a: { id: '349' }, b: null, c: [{ id: '3' }] });
    expect(some.errors).toMatchObject([{ path: ['b'], extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
    gateway.sandbox.setFault(undefined);
    expect((await gateway.query('{ pet(id: "350") { id } }', { headers: BUSINESS })).data).toEqual({
      pet: { id: '350' },
    });
  });

  test.each([
    ['one animal of it breaks the contract', { body: '[{"id":1,"name":"Ada","categoryId":1,"status":"adopted"}]' }],
    ['the service has no such listing', { status: 404, body: '' }],
  ])('that was to save others lets them go their own way where %s', async (_why, fault) => {
    await using gateway = await overStore(20);
    gateway.sandbox.setFault(({ path }) => (path === '/pets?limit=100' ? fault : undefined));
    const { data, errors } = await gateway.query(
      '{ pet(id: "7") { id } none: pet(id: "77") { id } pets(status: SOLD) { id } }',
    );
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ pet: { id: '7' }, none: null });
    expect(data?.['pets']).toHaveLength(6);
    expect(paths(gateway)[0]).toBe('/pets?limit=100');
    expect(gateway.sandbox.calls).toHaveLength(4);
  });

  test('that does not come again and again is left to those who want it, and asked for soon by those that it would save', async () => {
    await using gateway = await overStore(400, 0);
    gateway.sandbox.setFault(({ path }) => (path === '/pets?limit=100' ? { status: 503 } : undefined));
    const failed: string[] = [];
    for (const id of idsFrom(301, 12)) {
      const { errors } = await gateway.query(`{ pet(id: "${id}") { id } }`, { headers: BUSINESS });
      if (errors) failed.push(id);
    }
    expect(failed.length).toBeLessThanOrEqual(3);
    expect((await gateway.query('{ pets(status: SOLD) { id } }', { headers: BUSINESS })).errors).toBeUndefined();
    expect((await gateway.query('{ pets { id } }', { headers: BUSINESS })).errors).toHaveLength(1);
  });

  test('that breaks the contract costs a call now and then, and not one for each that it would save', async () => {
    await using gateway = await overStore(400, 0);
    const broken = { body: '[{"id":1,"name":"Ada","categoryId":1,"status":"adopted"}]' };
    gateway.sandbox.setFault(({ path }) => (path === '/pets?limit=100' ? broken : undefined));
    for (const id of idsFrom(301, 30)) {
      const { errors } = await gateway.query(`{ pet(id: "${id}") { id } }`, { headers: BUSINESS });
      expect(errors).toBeUndefined();
    }
    expect(paths(gateway).filter((path) => path === '/pets?limit=100').length).toBeLessThan(6);
  });

  test.each([
    ['the service fails', { status: 503 }],
    ['the connection breaks', { reset: true }],
    ['the way leads elsewhere', { status: 302, body: '' }],
    ['somebody else answers', { body: '<html>Closed for today</html>' }],
  ])('that was to save others keeps them from asking one by one where %s', async (_why, fault) => {
    await using gateway = await overStore(20);
    gateway.sandbox.setFault(() => fault);
    const { data, errors } = await gateway.query(byIds, { variables: { ids: idsFrom(1, 20) } });
    expect(data?.['petsById']).toEqual(Array.from({ length: 20 }, () => null));
    expect(errors?.[0]?.extensions.code).toBe('DOWNSTREAM_SERVICE_ERROR');
    expect(paths(gateway)).toEqual(['/pets?limit=100']);
  });

  test.each([
    ['cut short', { cutAfterBytes: 20 }],
    ['of a wrong type', { body: '[{"id":1,"name":7,"categoryId":1}]' }],
    ['of a wrong status', { status: 500 }],
  ])('by an answer that is %s leaves nothing behind', async (_what, fault) => {
    await using gateway = await overStore(20);
    gateway.sandbox.setFault(() => fault);
    expect((await gateway.query('{ pets { id } }')).errors).toHaveLength(1);
    gateway.sandbox.setFault(undefined);
    expect((await gateway.query('{ pets { id } }')).data?.['pets']).toHaveLength(20);
    expect(gateway.sandbox.calls).toHaveLength(2);
  });
});
