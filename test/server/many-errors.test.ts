import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { PetqlError } from '../../src/errors.ts';
import { graphqlRequest, startEmbedded } from '../support/start-embedded.ts';
import type { EmbeddedGateway } from '../support/start-embedded.ts';

let gateway: EmbeddedGateway;

beforeAll(async () => {
  gateway = await startEmbedded();
});
afterAll(() => gateway[Symbol.asyncDispose]());

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => one(index)).join('\n');

const WRONG: [name: string, query: string][] = [
  ['lists', `query {\n${times(199, (k) => `a${k}: pets(limit: 0) { id }`)}\n}`],
  [
    'creations',
    `mutation {\n${times(120, (k) => `a${k}: createPet(input: {name: "", categoryId: "z"}) { __typename }`)}\n}`,
  ],
];

// It was most of what they cost: each was made four times over, and noted its stack each time.
test.each(WRONG)(
  'a hundred and more wrong %s note no stacks for the copies of their errors, and say where they are',
  async (_name, query) => {
    const noted = vi.spyOn(Error, 'captureStackTrace');
    onTestFinished(() => noted.mockRestore());
    const answer = await gateway.fetch(graphqlRequest({ query }));
    const { errors } = (await answer.json()) as { errors: unknown[] };
    const executed = await gateway.execute({ document: query, apiKey: 'demo-free' });
    // Some are not of a field.
    expect(noted.mock.calls.length).toBeLessThan(20);
    expect(errors.length).toBeGreaterThan(100);
    for (const [index, error] of errors.entries()) {
      expect(Object.keys(error as object)).toEqual(['message', 'locations', 'path', 'extensions']);
      expect(error).toMatchObject({
        locations: [{ line: index + 2, column: 1 }],
        path: [`a${index}`],
        extensions: { code: 'BAD_USER_INPUT' },
      });
    }
    expect(executed.errors).toEqual(errors);
  },
);

test('an error that its reader may see has no stack, and leaves that of others as it is', () => {
  const limit = Error.stackTraceLimit;
  expect(new PetqlError('BAD_USER_INPUT', 'wrong').stack).not.toContain('\n');
  expect(Error.stackTraceLimit).toBe(limit);
  expect(new Error('other').stack).toContain('\n');
});
