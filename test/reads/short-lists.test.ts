import { describe, expect, test } from 'vitest';
import { LIST, NO_CACHE, SOLD, createFailingWorld, linesOf, pet } from '../support/failing-world.ts';
import { fails, on } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import type { Answer } from '../support/operation.ts';
import { HOUR_MS, MINUTE_MS } from '../support/world.ts';
import type { OperationOptions, Petql, World } from '../support/world.ts';

// A list that has fewer pets than petql asked for is the whole store, unless the pet API has shown otherwise.

const SHORT = 'lists of the pet API lack pets that it has, and prove no absence for a while';
const STORE = 80;

interface Given {
  readonly world: World;
  readonly petql: Petql;
}

async function start(rule: FaultRule): Promise<AsyncDisposable & Given> {
  const world = await createFailingWorld({ pets: STORE });
  const petql = await world.start({ plan: 'business', maxWaitMs: 2_000 });
  world.petApi.fault = rule;
  return { world, petql, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

async function read({ world, petql }: Given, document: string, options: OperationOptions = {}): Promise<Answer> {
  await world.pass(1_000);
  return world.until(petql.ask(document, options));
}

const found = ({ data }: Answer) => data?.['pet']?.id;

const keeps = (isKept: (pet: { id: number; status?: string }, index: number) => boolean): Fault => ({
  body: (body) => (body.startsWith('[') ? JSON.stringify(JSON.parse(body).filter(isKept)) : body),
});
const capped = (size: number): Fault => keeps((_pet, index) => index < size);

/** Clients read these pets and the list, once in each minute. Returns what they found of the pets. */
async function work(given: Given, ids: readonly string[], minutes: number): Promise<unknown[][]> {
  const all: unknown[][] = [];
  for (let minute = 0; minute < minutes; minute += 1) {
    const answers: unknown[] = [];
    for (const id of ids) answers.push(found(await read(given, pet(id), NO_CACHE)));
    await read(given, LIST, NO_CACHE);
    all.push(answers);
    await given.world.pass(MINUTE_MS - (ids.length + 1) * 1_000);
  }
  return all;
}

/** The ways in which a list is less than the store, and pets that only their own calls show. */
const WAYS: [what: string, rule: FaultRule, hidden: readonly [string, string]][] = [
  ['pages of 50 at most', on('list', capped(50)), ['70', '71']],
  ['pages of 5 at most', on('list', capped(5)), ['6', '80']],
  [
    'lists without drafts',
    on(
      'list',
      keeps(({ id }) => id % 2 === 0),
    ),
    ['31', '33'],
  ],
  [
    'a list of all without what is sold',
    on(
      'all',
      keeps(({ status }) => status !== 'sold'),
    ),
    ['3', '6'],
  ],
  ['a list of all that is empty', on('all', capped(0)), ['1', '2']],
];

describe.each(WAYS)('%s:', (_what, rule, [one, other]) => {
  test('a pet that a get has shown stays there, after any number of lists', async () => {
    await using given = await start(rule);
    expect(found(await read(given, pet(one)))).toBe(one);
    for (let list = 0; list < 5; list += 1) {
      await read(given, LIST, NO_CACHE);
      expect(found(await read(given, pet(one)))).toBe(one);
      await given.world.pass(MINUTE_MS);
    }
  });

  test('lists that lacked it twice prove no absence of others, and the log says so', async () => {
    await using given = await start(rule);
    await work(given, [one], 2);
    expect(linesOf(given.petql, SHORT)).toMatchObject([{ level: 40, pets: 1, forMs: 10 * MINUTE_MS }]);
    const got = await work(given, [one, other], 8);
    expect(new Set(got.flat())).toEqual(new Set([one, other]));
    expect((await read(given, pet('81'))).data).toEqual({ pet: null });
  });

  test('two such pets: no list answers another one', async () => {
    await using given = await start(rule);
    await work(given, [one], 2);
    await work(given, [one, other], 3);
    expect(linesOf(given.petql, SHORT).map(({ pets }) => pets)).toEqual([1, 2]);
    given.world.petApi.log.length = 0;
    await read(given, SOLD);
    expect(given.world.petApi.log.map(({ target }) => target)).toEqual(['sold']);
  });
});

test('a pet that a list by a filter has shown stays there, after lists of all without it', async () => {
  await using given = await start(on('all', fails()));
  const { data } = await read(given, SOLD);
  given.world.petApi.fault = on(
    'all',
    keeps(({ status }) => status !== 'sold'),
  );
  const id: string = data?.['pets'][0].id;
  for (let list = 0; list < 3; list += 1) {
    await read(given, LIST, NO_CACHE);
    expect(found(await read(given, pet(id)))).toBe(id);
  }
});

test('after ten minutes lists are believed again, and where they are short again, for twenty', async () => {
  await using given = await start(
    on(
      'all',
      keeps(({ id }) => id !== 70),
    ),
  );
  const doubts = () => linesOf(given.petql, SHORT).map(({ forMs }) => Number(forMs) / MINUTE_MS);
  await work(given, ['70'], 9);
  expect(doubts()).toEqual([10]);
  await work(given, ['70'], 10);
  expect(doubts()).toEqual([10, 20]);
  await work(given, ['70'], 20);
  expect(doubts()).toEqual([10, 20, 40]);

  // The pet API shows whole lists again.
  given.world.petApi.fault = undefined;
  await given.world.pass(HOUR_MS);
  expect(await isProof(given)).toBe(true);
});

describe('a list stays a proof', () => {
  test('where another program has just created the pets', async () => {
    await using given = await start(undefined);
    const store = given.world.petApi.storeOf('key');
    for (let turn = 0; turn < 6; turn += 1) {
      await read(given, LIST, NO_CACHE);
      const body = JSON.stringify({ name: `${turn}`, categoryId: 1 });
      const { id } = JSON.parse(store.serve({ method: 'POST', path: '/pets', body }).body);
      // Another list has not seen it yet, and finds it.
      expect(found(await read(given, pet(id), NO_CACHE))).toBe(String(id));
    }
    expect(await isProof(given)).toBe(true);
  });

  test('where petql has just created the pets, and lists come from a copy that lags', async () => {
    await using given = await start(undefined);
    for (let turn = 0; turn < 6; turn += 1) {
      given.world.petApi.fault = on('list', capped(STORE + turn));
      await given.world.until(given.petql.create(1));
      await read(given, LIST, NO_CACHE);
      given.world.petApi.fault = undefined;
      await work(given, [String(STORE + turn + 1)], 1);
    }
    await given.world.pass(10 * MINUTE_MS);
    expect(await isProof(given)).toBe(true);
  });

  test('where the pets are gone', async () => {
    await using given = await start(undefined);
    await work(given, ['70', '71'], 1);
    given.world.petApi.fault = [on('list', capped(69)), on(['70', '71'], fails(404))];
    const got = await work(given, ['70', '71'], 5);
    expect(new Set(got.flat())).toEqual(new Set([undefined]));
    expect(await isProof(given)).toBe(true);
  });

  test('where one list alone lacked two pets', async () => {
    await using given = await start(undefined);
    await read(given, pet('70'));
    await read(given, pet('70'), NO_CACHE);
    given.world.petApi.fault = on('list', capped(50));
    await read(given, LIST, NO_CACHE);
    await read(given, pet('70'), NO_CACHE);
    given.world.petApi.fault = undefined;
    await work(given, ['70', '71'], 4);
    expect(linesOf(given.petql, SHORT)).toEqual([]);
    expect(await isProof(given)).toBe(true);
  });
});

/** Whether a list proves that there is no such pet: no get is sent for it, and nothing is in doubt. */
async function isProof(given: Given): Promise<boolean> {
  const before = linesOf(given.petql, SHORT).length;
  await read(given, LIST, NO_CACHE);
  given.world.petApi.log.length = 0;
  const { data } = await read(given, pet('404'));
  const gets = given.world.petApi.log.filter(({ kind }) => kind === 'get');
  return data?.['pet'] === null && gets.length === 0 && linesOf(given.petql, SHORT).length === before;
}
