import { describe, expect, test } from 'vitest';
import type { Limits } from '../../src/limits.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

describe('a limit that is set', () => {
  test.each<[keyof Limits, number, string, string]>([
    ['maxTokens', 6, '{ pets { id } }', '{ pets { id name } }'],
    ['maxDepth', 2, '{ pets { id } }', '{ __schema { queryType { name } } }'],
    ['maxRootFields', 1, '{ pets { id } }', '{ pets { id } rateLimit { plan } }'],
    ['maxAliases', 1, '{ a: pets { id } }', '{ a: pets { b: id } }'],
    ['maxFields', 2, '{ pets { id } }', '{ pets { id name } }'],
  ])('%s of %d allows as much, and refuses more with its name before any call', async (name, most, good, bad) => {
    await using gateway = await startGateway({ gateway: { [name]: most } });
    expect(await gateway.query(good)).toMatchObject({ status: 200, data: {} });
    const before = gateway.sandbox.calls.length;
    const { data, errors } = await gateway.query(bad);
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED', limit: settingless(name), most } }]);
    expect(gateway.sandbox.calls).toHaveLength(before);
  });

  test('maxBodyBytes refuses what is longer with HTTP 413, whether its length is announced or not', async () => {
    await using gateway = await startGateway({ gateway: { maxBodyBytes: 2_000 } });
    const body = JSON.stringify({ query: `{ __typename } # ${'x'.repeat(2_000)}` });
    const stream = () => new Blob([body]).stream();
    for (const sent of [{ body }, { body: stream(), duplex: 'half' }]) {
      const answer = await post(gateway, sent);
      expect([answer.status, await answer.json()]).toEqual([
        413,
        {
          errors: [
            {
              message: expect.stringContaining('2000 bytes'),
              extensions: { code: 'LIMIT_EXCEEDED', limit: 'bodyBytes', most: 2_000 },
            },
          ],
        },
      ]);
    }
  });
});

describe('a list of operations in one request', () => {
  const list = (length: number) => ({
    body: JSON.stringify(Array.from({ length }, (_, index) => ({ query: `{ a${index}: pets(limit: 1) { id } }` }))),
  });

  test('is refused unless that is switched on', async () => {
    await using gateway = await startGateway();
    const answer = await post(gateway, list(1));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('is answered with a list up to the limit, from one call where one is enough', async () => {
    await using gateway = await startGateway({ gateway: { maxBatch: 3 } });
    const answer = await post(gateway, list(3));
    expect(answer.status).toBe(200);
    const one = { data: expect.anything(), extensions: { petql: expect.anything() } };
    expect(await answer.json()).toEqual([one, one, one]);
    expect(gateway.sandbox.calls).toHaveLength(1);
  });

  test('has its errors each in its place, with their codes', async () => {
    await using gateway = await startGateway({ gateway: { maxBatch: 3 } });
    const queries = ['{ __typename }', '{ nothing }', '{ pet(id: "x") { id } }'];
    const answer = await post(gateway, { body: JSON.stringify(queries.map((query) => ({ query }))) });
    expect(await answer.json()).toMatchObject([
      { data: { __typename: 'Query' } },
      { errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] },
      { data: { pet: null }, errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] },
    ]);
  });

  test('has an error in each place where something else than an operation stands, and no fault is logged', async () => {
    await using gateway = await startGateway({ gateway: { maxBatch: 5 } });
    const body = JSON.stringify([null, { query: '{ __typename }' }, 5, [{ query: '{ __typename }' }], 'x']);
    const answer = await fetch(gateway.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const noOperation = (got: string) => ({
      errors: [
        {
          message: `Expected an operation as an object, got ${got}.`,
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
    expect(await answer.json()).toMatchObject([
      noOperation('null'),
      { data: { __typename: 'Query' } },
      noOperation('number'),
      noOperation('list'),
      noOperation('string'),
    ]);
    expect(gateway.logLines.filter(({ level }) => level > 20)).toEqual([]);
  });

  test('is refused whole past the limit, and where it is empty', async () => {
    await using gateway = await startGateway({ gateway: { maxBatch: 3 } });
    const long = await post(gateway, list(4));
    expect([long.status, await long.json()]).toMatchObject([
      413,
      { errors: [{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'batch', most: 3 } }] },
    ]);
    expect((await post(gateway, list(0))).status).toBe(400);
    expect(gateway.sandbox.calls).toHaveLength(0);
  });
});

function post({ endpoint }: TestGateway, init: object): Promise<Response> {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
  return fetch(endpoint, { method: 'POST', headers, ...init });
}

/** maxRootFields is called rootFields in the error. */
function settingless(name: string): string {
  return name.charAt(3).toLowerCase() + name.slice(4);
}
