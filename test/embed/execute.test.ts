import { parse } from 'graphql';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { TypedDocument } from '../../src/index.ts';
import { slow } from '../support/pet-api/fault.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const FIRST = '{ pets(limit: 1) { id } }';
const SOLD = '{ pets(status: SOLD) { id } }';
const apiKey = 'demo-free';

test('the data is plain, so that React takes it as it stands', async () => {
  await using gateway = await startEmbedded();
  const { data } = await gateway.execute<{ pets: object[] }>({ document: FIRST, apiKey });
  for (const value of [data, data?.pets[0]]) expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
});

describe('a document', () => {
  test('has types, for its variables and the data', async () => {
    await using gateway = await startEmbedded();
    const list: TypedDocument<{ pets: { id: string }[] | null }, { limit?: number | null }> = parse(
      'query ($limit: Int) { pets(limit: $limit) { id } }',
    );
    const { data } = await gateway.execute({ document: list, variables: { limit: 2 }, apiKey });
    expectTypeOf(data).toEqualTypeOf<{ pets: { id: string }[] | null } | null | undefined>();
    expect(data?.pets?.map(({ id }) => id)).toEqual(['1', '2']);
    expect((await gateway.execute({ document: list, apiKey })).data?.pets).toHaveLength(20);

    const onePet: TypedDocument<{ pet: { name: string } | null }, { id: string }> = parse(
      'query ($id: ID!) { pet(id: $id) { name } }',
    );
    // @ts-expect-error -- the variable is required
    expect((await gateway.execute({ document: onePet, apiKey })).errors).toHaveLength(1);
    // @ts-expect-error -- it is a string
    expect((await gateway.execute({ document: onePet, variables: { id: 1 }, apiKey })).data?.pet?.name).toBe('Ada');
  });

  test('can be the TypedDocumentString of GraphQL Code Generator', async () => {
    class FirstDocument extends String {
      __apiType?: (variables: { [key: string]: never }) => { pets: { id: string }[] };
    }
    await using gateway = await startEmbedded();
    const { data } = await gateway.execute({ document: new FirstDocument(FIRST), apiKey });
    expect(data?.pets[0]?.id).toBe('1');
  });

  test('counts against the limits when it is parsed already', async () => {
    await using gateway = await startEmbedded();
    const document = parse(`{ ${'pets { id } '.repeat(2_000)} }`);
    const { errors } = await gateway.execute({ document, apiKey });
    expect(errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED', limit: 'tokens' } }]);
  });
});

test('an id can be a bigint, a wait endless, and an argument null', async () => {
  await using gateway = await startEmbedded();
  const document = 'query ($id: ID!) { pet(id: $id) { id } }';
  const byBigInt = await gateway.execute({ document, variables: { id: 9007199254740993n }, apiKey, waitMs: Infinity });
  expect(byBigInt).toMatchObject({ data: { pet: { id: '9007199254740993' } } });
  const none = { variables: null, waitMs: null, signal: null, cacheControl: null, traceparent: null, dryRun: null };
  const { data } = await gateway.execute({ document: FIRST, apiKey, ...none });
  expect(data).toEqual({ pets: [{ id: '1' }] });
});

test("the API key is the gateway's where none is given", async () => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
  await gateway.execute({ document: FIRST });
  await gateway.execute({ document: SOLD, apiKey });
  expect(gateway.petApi.log.map(({ key }) => key)).toEqual(['demo-pro', apiKey]);
});

describe('an aborted operation rejects with the reason and makes no call', () => {
  test('before it starts', async () => {
    await using gateway = await startEmbedded();
    const signal = AbortSignal.abort(new Error('changed my mind'));
    await expect(gateway.execute({ document: FIRST, apiKey, signal })).rejects.toThrow('changed my mind');
    expect(gateway.petApi.log).toHaveLength(0);
  });

  test('while it waits for the quota', async () => {
    await using gateway = await startEmbedded();
    const abort = new AbortController();
    gateway.petApi.fault = slow(200);
    const first = gateway.execute({ document: FIRST, apiKey });
    await until(() => gateway.petApi.log.length > 0);
    const waiting = gateway.execute({ document: '{ pet(id: "2") { id } }', apiKey, signal: abort.signal });
    abort.abort(new Error('the client left'));
    await expect(waiting).rejects.toThrow('the client left');
    expect((await first).errors).toBeUndefined();
    expect(gateway.petApi.log).toHaveLength(1);
    // petql did nothing wrong.
    expect(gateway.logLines.filter(({ level }) => level >= 50)).toEqual([]);
  });
});

test('after close nothing is called, with a key that was known before and with a new one', async () => {
  await using gateway = await startEmbedded();
  await gateway.execute({ document: FIRST, apiKey });
  await gateway.close();
  for (const key of [apiKey, 'demo-pro']) {
    const { errors } = await gateway.execute({ document: SOLD, apiKey: key });
    const message = expect.stringContaining('stopping');
    expect(errors).toMatchObject([{ message, extensions: { code: 'RATE_LIMITED' } }]);
  }
  expect(gateway.petApi.log).toHaveLength(1);
});
