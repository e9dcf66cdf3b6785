import { expect, test } from 'vitest';
import { seedAnimals } from '../../src/sandbox/seed.ts';
import { startTestSandbox } from './start-test-sandbox.ts';

test('a new store has 250 animals, of which more than one listing can show are available', () => {
  const counts = Map.groupBy(seedAnimals(), ({ status }) => status);
  expect([...counts].map(([status, animals]) => [status, animals.length])).toEqual(
    expect.arrayContaining([
      ['available', 140],
      ['pending', 60],
      ['sold', 40],
      [undefined, 10],
    ]),
  );
});

test('a listing shows the lowest ids first, and 20 of them when it is told no limit', async () => {
  await using sandbox = await startTestSandbox();
  const { body } = await sandbox.call('GET /pets');
  expect(body.map(({ id }: any) => id)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
});

test.for([1, 21, 100])('a listing shows %s animals when it is told so', async (limit) => {
  await using sandbox = await startTestSandbox();
  expect((await sandbox.call(`GET /pets?limit=${limit}`)).body).toHaveLength(limit);
});

test.for([
  ['available', 100],
  ['pending', 60],
  ['sold', 40],
] as const)('a listing of animals that are %s shows those alone, %s of them', async ([status, length]) => {
  await using sandbox = await startTestSandbox();
  const { body } = await sandbox.call(`GET /pets?limit=100&status=${status}`);
  expect(body).toHaveLength(length);
  expect(new Set(body.map((animal: any) => animal.status))).toEqual(new Set([status]));
});

test.for(['limit=0', 'limit=101', 'limit=-1', 'limit=1.5', 'limit=abc', 'limit=', 'limit=1e1', 'limit=9999999999'])(
  'a listing with %s is a 400 that says what was expected',
  async (query) => {
    await using sandbox = await startTestSandbox();
    const answer = await sandbox.call(`GET /pets?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({
      code: 'bad_request',
      message: expect.stringContaining('limit: expected a whole number from 1 to 100'),
      status: 400,
    });
  },
);

test.for(['status=lost', 'status=', 'status=AVAILABLE'])('a listing with %s is a 400', async (query) => {
  await using sandbox = await startTestSandbox();
  const { status, body } = await sandbox.call(`GET /pets?${query}`);
  expect([status, body.message]).toEqual([400, 'status: expected one of available, pending, sold.']);
});

test('the staging address has the same animals at first, and those that are added there alone', async () => {
  await using sandbox = await startTestSandbox();
  const before = await sandbox.call('GET /pets?limit=100');
  expect((await sandbox.call('GET /pets?limit=100', { staging: true })).body).toEqual(before.body);
  const added = await sandbox.call('POST /pets', { staging: true, body: '{"name":"Stage","categoryId":1}' });
  const path = `/pets/${added.body.id}`;
  expect((await sandbox.call(`GET ${path}`, { staging: true })).body).toEqual(added.body);
  expect((await sandbox.call(`GET ${path}`)).status).toBe(404);
});

test('a store starts with the animals it is given, and with none when given none', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  expect((await sandbox.call('GET /pets')).body).toEqual([]);
  expect((await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' })).body.id).toBe(1);
});
