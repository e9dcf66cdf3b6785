import { afterAll, describe, expect, test } from 'vitest';
import type { TestContext } from 'vitest';
import { bareNumber, parseLosslessJson } from '../../src/lossless-json.ts';
import { PET_STATUSES } from '../support/pet-seeds.ts';
import { readOpenApi } from './open-api.ts';
import type { Answer, Operation, OperationId } from './open-api.ts';
import { answeredAtMs, rateLimitProblems } from './rate-limit-problems.ts';
import { openService } from './service.ts';
import type { ServiceRequest } from './service.ts';

const NAME = 'petql contract test';
const operations = readOpenApi();
const service = await openService(process.env);
afterAll(() => service.close());

// A category that the service knows, wherever it has any.
const { body: someAnimals } = await ask('listPets', { query: '?limit=1' });
const categoryId = bareNumber(String(someAnimals[0]?.categoryId ?? 1));

describe('createPet', () => {
  test.for(PET_STATUSES)('adds an animal that is %s, and getPet reads it with every field', async (status, context) => {
    const name = `${NAME}: naïve "猫" 🐈`;
    const added = await ask('createPet', { body: JSON.stringify({ name, categoryId, status }) });
    expect(added.status).toBe(201);
    expect(added.body).toMatchObject({ name, status });
    expect(String(added.body.categoryId)).toBe(JSON.stringify(categoryId));
    expect(await getPet(added.body.id, context)).toEqual({ status: 200, body: added.body });
  });

  test('adds an animal without a status', async (context) => {
    const added = await ask('createPet', { body: JSON.stringify({ name: NAME, categoryId }) });
    expect(added).toMatchObject({ status: 201, body: { name: NAME } });
    const { id } = added.body;
    expect(await getPet(id, context)).toMatchObject({ status: 200, body: { id, name: NAME } });
  });

  test('keeps every digit of an int64', async (context) => {
    const added = await ask('createPet', { body: `{"name":"${NAME}","categoryId":9007199254740993}` });
    // Whether an animal can be in a category that the service does not know is not shown.
    if (service.foreign && added.status === 400) {
      context.skip(`this service has no category 9007199254740993: ${added.body.message}`);
    }
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
    expect((await ask('createPet', { body: JSON.stringify(body) })).status).toBe(400);
  });
});

describe('listPets', () => {
  test.for([
    ['gives 20 animals at most when it is not told a limit', '', 20],
    ['gives 1 animal at most when told so', '?limit=1', 1],
    ['gives 100 animals at most when told so', '?limit=100', 100],
  ] as const)('%s', async ([, query, limit]) => {
    const { status, body } = await ask('listPets', { query });
    expect(status).toBe(200);
    expect(body.length).toBeLessThanOrEqual(limit);
    expect(new Set(body.map(({ id }: any) => id)).size).toBe(body.length);
  });

  // The animals added above leave none of these sharedLists empty.
  test.for(PET_STATUSES)('gives only animals that are %s when asked for those', async (wanted) => {
    const { status, body } = await ask('listPets', { query: `?limit=100&status=${wanted}` });
    expect(status).toBe(200);
    expect(body.length).toBeLessThanOrEqual(100);
    expect(new Set(body.map((animal: any) => animal.status))).toEqual(new Set([wanted]));
  });
});

test('getPet answers 404 for an id that no animal has', async (context) => {
  expect((await getPet('9223372036854775807', context)).status).toBe(404);
});

describe.for([
  ['without an API key', null],
  ['with an API key that is none', 'petql-contract-test-no-such-key'],
] as const)('%s', ([, key]) => {
  const body = JSON.stringify({ name: NAME, categoryId });
  test.for([
    ['listPets', {}],
    ['createPet', { body }],
    ['getPet', { petId: '1' }],
  ] as const)('%s answers 401', async ([operationId, request], context) => {
    expect((await ask(operationId, { ...request, key }, context)).status).toBe(401);
  });
});

test('all of this fits into a minute of the Free plan', () => {
  expect(service.requests).toBeGreaterThan(0);
  expect(service.requests).toBeLessThan(40);
});

function getPet(id: bigint | number | string, context: TestContext) {
  return ask('getPet', { petId: String(id) }, context);
}

/**
 * The status of an answer and its body, with every digit of it.
 *
 * @throws Error that names whatever in the answer is not as the contract has it.
 */
async function ask(
  operationId: OperationId,
  request: ServiceRequest = {},
  context?: TestContext,
): Promise<{ status: number; body: any }> {
  const operation = operations[operationId];
  const answer = await service.send(operation, request);
  if (wasRemoved(operation, answer)) {
    context?.skip(`${operation.method} ${operation.path} answers 410: it was removed, as announced`);
  }
  const problems = [...operation.problems(answer), ...rateLimitProblems(answer)];
  if (problems.length > 0) throw new Error(`${operationId}: ${problems.join('; ')}`);
  const { status } = answer;
  const body: any = parseLosslessJson(answer.text);
  if (status >= 400 && body.status !== status) {
    throw new Error(`${operationId}: body.status: expected ${status}, which the status line has, got ${body.status}`);
  }
  return { status, body };
}

function wasRemoved({ sunsetAtMs }: Operation, answer: Answer): boolean {
  return answer.status === 410 && sunsetAtMs !== undefined && answeredAtMs(answer) >= sunsetAtMs;
}
