import { afterAll, describe, expect, test } from 'vitest';
import type { TestContext } from 'vitest';
import { bareNumber, parseLosslessJson } from '../../src/common/lossless-json.ts';
import { LISTS, OPERATION_NAMES, STATUSES, filterOf, isListed } from '../support/pet-api/contract.ts';
import type { Filter, ListName, OperationName } from '../support/pet-api/contract.ts';
import { readOpenApi } from './open-api.ts';
import { answeredAtMs, openTestedApi, rateLimitProblems } from './tested-api.ts';
import type { Call } from './tested-api.ts';

const NAME = 'petql contract test';
const operations = readOpenApi();
const api = await openTestedApi(process.env);
afterAll(() => api.close());

// A category that the pet API knows, wherever it has any.
const { body: somePets } = await call('listPets', { query: '?limit=1' });
const categoryId = bareNumber(String(somePets[0]?.categoryId ?? 1));

/** The ids of the pets that were added. */
const addedIds: (bigint | number)[] = [];

async function create(pet: object) {
  const added = await call('createPet', { body: JSON.stringify(pet) });
  if (added.status === 201) addedIds.push(added.body.id);
  return added;
}

describe('createPet', () => {
  test.for(STATUSES)('adds a pet that is %s, and getPet reads it with every field', async (status, context) => {
    const name = `${NAME}: naïve "猫" 🐈`;
    const added = await create({ name, categoryId, status });
    expect(added).toMatchObject({ status: 201, body: { name, status } });
    expect(String(added.body.categoryId)).toBe(JSON.stringify(categoryId));
    expect(await getPet(added.body.id, context)).toEqual({ status: 200, body: added.body });
  });

  test('adds a pet without a status', async (context) => {
    const added = await create({ name: NAME, categoryId });
    expect(added).toMatchObject({ status: 201, body: { name: NAME } });
    const { id } = added.body;
    expect(await getPet(id, context)).toMatchObject({ status: 200, body: { id, name: NAME } });
  });

  test('keeps every digit of an int64', async (context) => {
    const added = await call('createPet', { body: `{"name":"${NAME}","categoryId":9007199254740993}` });
    // The contract does not say whether a pet can be in a category that does not exist.
    if (api.isForeign && added.status === 400) context.skip(`there is no such category: ${added.body.message}`);
    expect(added).toMatchObject({ status: 201, body: { categoryId: 9007199254740993n } });
    expect((await getPet(added.body.id, context)).body.categoryId).toBe(9007199254740993n);
  });

  test.for([
    ['without a name', { categoryId }],
    ['without a categoryId', { name: NAME }],
    ['whose name is no string', { name: 7, categoryId }],
    ['whose categoryId is no number', { name: NAME, categoryId: 'cats' }],
    ['whose categoryId is no whole number', { name: NAME, categoryId: 1.5 }],
    ['whose status is not one of the three', { name: NAME, categoryId, status: 'lost' }],
  ] as const)('refuses a body %s', async ([, body]) => {
    expect((await create(body)).status).toBe(400);
  });
});

// The pets added above leave none of these lists empty.
test.for([
  ['', 20, 'all'],
  ['?limit=1', 1, 'all'],
  ...LISTS.map((list) => [`?limit=100${queryOf(list)}`, 100, list] as const),
] as const)('listPets with "%s" gives at most %i pets, each once, of the list %s', async ([query, limit, list]) => {
  const { status, body } = await call('listPets', { query });
  expect(status).toBe(200);
  expect(body.length).toBeGreaterThan(0);
  expect(body.length).toBeLessThanOrEqual(limit);
  expect(new Set(body.map(({ id }: any) => id)).size).toBe(body.length);
  expect(body.filter((pet: Filter) => !isListed(pet, list))).toEqual([]);
});

test('listPets with fewer pets than asked for has all of them', async (context) => {
  const { body } = await call('listPets', { query: '?limit=100' });
  if (body.length >= 100) context.skip('there are 100 pets or more');
  const listed = new Set(body.map(({ id }: any) => String(id)));
  expect(addedIds.filter((id) => !listed.has(String(id)))).toEqual([]);
});

test('getPet answers 404 for an id that no pet has', async (context) => {
  expect((await getPet('9223372036854775807', context)).status).toBe(404);
});

/** A call of each operation: one that is missing does not compile. */
const CALLS: Readonly<Record<OperationName, Call>> = {
  listPets: {},
  createPet: { body: JSON.stringify({ name: NAME, categoryId }) },
  getPet: { petId: '1' },
};

test.for(
  [null, 'petql-contract-test-no-such-key'].flatMap((key) => OPERATION_NAMES.map((name) => [key, name] as const)),
)('with the API key %s, %s answers 401', async ([key, name], context) => {
  expect((await call(name, { ...CALLS[name], key }, context)).status).toBe(401);
});

test('all of this fits into a minute of the Free plan', () => {
  expect(api.calls).toBeGreaterThan(0);
  expect(api.calls).toBeLessThan(40);
});

/** The parameters of a list, each with its ampersand. */
function queryOf(list: ListName): string {
  return Object.entries(filterOf(list))
    .map(([name, value]) => `&${name}=${value}`)
    .join('');
}

function getPet(id: bigint | number | string, context: TestContext) {
  return call('getPet', { petId: String(id) }, context);
}

/**
 * Returns the status of a response and its body, with every digit of it.
 *
 * @throws Error that names what in the response is not as the contract has it.
 */
async function call(operationId: OperationName, more: Call = {}, context?: TestContext) {
  const operation = operations[operationId];
  const answer = await api.send(operation, more);
  const isPastSunset = answeredAtMs(answer) >= (operation.sunsetAtMs ?? Infinity);
  if (answer.status === 410 && isPastSunset) context?.skip(`${operationId} answers 410: it was removed, as announced`);
  const problems = [...operation.problems(answer), ...rateLimitProblems(answer)];
  if (problems.length > 0) throw new Error(`${operationId}: ${problems.join('; ')}`);
  const { status } = answer;
  const body: any = parseLosslessJson(answer.text);
  if (status >= 400 && body.status !== status) {
    throw new Error(`${operationId}: body.status: expected ${status}, which the status line has, got ${body.status}`);
  }
  return { status, body };
}
