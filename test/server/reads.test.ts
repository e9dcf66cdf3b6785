import { afterEach, beforeEach, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

const paths = () => gateway.sandbox.calls.map(({ path }) => path);

test('equal reads in one operation are one, whatever their aliases and limits', async () => {
  const { data, errors } = await gateway.query(`{
    a: pets(status: SOLD, limit: 2) { id }
    b: pets(status: SOLD) { id name }
    c: pets(status: SOLD, limit: 100) { id }
    d: pet(id: "7") { id }
    e: pet(id: 7) { name }
    f: petsById(ids: ["7", "7"]) { id }
  }`);
  expect(errors).toBeUndefined();
  expect([data?.['a'].length, data?.['b'].length, data?.['c'].length]).toEqual([2, 20, 40]);
  expect(data?.['f']).toEqual([{ id: '7' }, { id: '7' }]);
  // The listing of all might have answered both; in a store as large as this one it answers the animal.
  expect(paths()).toEqual(['/pets?limit=100', '/pets?limit=100&status=sold']);
});

test('several ids come in the order asked for, with null in the place of each that does not exist', async () => {
  const { data } = await gateway.query('{ petsById(ids: ["3", "404404", "9007199254740993", "-1"]) { id } }');
  expect(data?.['petsById']).toEqual([{ id: '3' }, null, { id: '9007199254740993' }, null]);
});

test('no ids cost no call', async () => {
  expect((await gateway.query('{ petsById(ids: []) { id } }')).data).toEqual({ petsById: [] });
  expect(paths()).toEqual([]);
});

test('a creation is readable at once, with every digit and character of it', async () => {
  const input = { name: 'Zoë 🐈‍⬛ "quoted" \\ \u2028', categoryId: '9223372036854775807', status: 'PENDING' };
  const created = await gateway.query(
    'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id name categoryId status } } }',
    { variables: { input } },
  );
  const { pet } = created.data?.['createPet'] ?? {};
  expect(pet).toEqual({ id: expect.stringMatching(/^\d+$/), ...input });
  const read = await gateway.query('query ($id: ID!) { pet(id: $id) { id name categoryId status } }', {
    variables: { id: pet.id },
  });
  expect(read.data?.['pet']).toEqual(pet);
});

test("an animal's status is null where the store has none", async () => {
  const { data } = await gateway.query(
    'mutation { createPet(input: { name: "x", categoryId: 1 }) { pet { status } } }',
  );
  expect(data?.['createPet']).toEqual({ pet: { status: null } });
});
