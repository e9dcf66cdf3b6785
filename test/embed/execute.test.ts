import { parse } from 'graphql';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Operation, TypedDocument } from '../../src/index.ts';
import type { Fault } from '../../src/sandbox/fault.ts';
import { graphqlRequest, startEmbedded } from '../support/start-embedded.ts';
import type { EmbeddedGateway } from '../support/start-embedded.ts';

type AnyOperation = Operation<Record<string, any>, Record<string, unknown>>;

const CREATE = `mutation ($input: CreatePetInput!) {
  createPet(input: $input) { pet { id name } userErrors { code message } }
}`;
const FIRST = '{ pets(limit: 1) { id } }';
const apiKey = 'demo-free';

/** Its age is another each time. */
function ageless(body: any): unknown {
  const usage = body.extensions?.petql;
  if (usage?.oldestAgeMs !== undefined) usage.oldestAgeMs = 'some time';
  return body;
}

describe('execute answers what the body of an HTTP answer holds', () => {
  const aliases = (count: number) => `{ ${Array.from({ length: count }, (_, n) => `a${n}: pets { id }`).join(' ')} }`;

  test.each<[string, Omit<AnyOperation, 'apiKey'>, Fault?]>([
    ['a read', { document: '{ pets(limit: 2) { id name categoryId status } }' }],
    ['variables', { document: 'query ($id: ID!) { pet(id: $id) { id } }', variables: { id: '9007199254740993' } }],
    ['a write', { document: CREATE, variables: { input: { name: 'Momo', categoryId: '3' } } }],
    ['a write that the service refuses', { document: CREATE, variables: { input: { name: '', categoryId: '3' } } }],
    ['one of several operations', { document: `query A ${FIRST} query B { __typename }`, operationName: 'B' }],
    ['an operation name that there is not', { document: `query A ${FIRST} query B ${FIRST}`, operationName: 'C' }],
    ['no operation name where one is needed', { document: `query A ${FIRST} query B ${FIRST}` }],
    ['a document without an operation', { document: 'fragment F on Pet { id }' }],
    ['a document that is not GraphQL', { document: '{ pets { id }' }],
    ['an empty document', { document: '' }],
    ['a document that does not fit the schema', { document: '{ pets { wings } dogs { id } }' }],
    ['a subscription', { document: 'subscription { pets { id } }' }],
    ['too many tokens', { document: aliases(10_000) }],
    ['too many fields in an operation', { document: aliases(201) }],
    ['too many levels', { document: `${'{ pets '.repeat(30)} { id ${'}'.repeat(31)}` }],
    ['a number too large', { document: 'query ($id: ID!) { pet(id: $id) { id } }', variables: { id: 2 ** 53 } }],
    ['a variable of a wrong type', { document: 'query ($n: Int) { pets(limit: $n) { id } }', variables: { n: 'x' } }],
    ['a limit out of range', { document: '{ good: pets(limit: 1) { id } bad: pets(limit: 101) { id } }' }],
    ['variables that are a list', { document: FIRST, variables: [] as never }],
    ['variables that are a string', { document: FIRST, variables: '{}' as never }],
    ['an operation name that is a number', { document: FIRST, operationName: 1 as never }],
    ['a service that fails', { document: `{ pets { id } other: __typename }` }, { status: 500 }],
    [
      'a write without a clear answer',
      { document: CREATE, variables: { input: { name: 'Momo', categoryId: '3' } } },
      { reset: true },
    ],
    ['introspection', { document: '{ __schema { queryType { name } } }' }],
  ])('for %s', async (_name, operation, fault) => {
    await using inProcess = await startEmbedded();
    await using overHttp = await startEmbedded();
    for (const { sandbox } of [inProcess, overHttp]) sandbox.setFault(fault && (() => fault));
    const { document: query, variables, operationName } = operation;
    const response = await overHttp.fetch(graphqlRequest({ query, variables, operationName }));
    const body: unknown = await response.json();
    const result: unknown = await inProcess.execute({ ...operation, apiKey });
    expect(ageless(result)).toStrictEqual(ageless(body));
    expect(callsOf(inProcess)).toEqual(callsOf(overHttp));
  });

  test('for a plan that is spent', async () => {
    const small = { keys: { [apiKey]: { name: 'small', perMinute: 1, perDay: 50 } } };
    await using gateway = await startEmbedded({ maxWaitMs: 50 }, small);
    expect(await gateway.execute({ document: FIRST, apiKey })).toMatchObject({ data: { pets: [{ id: '1' }] } });
    expect(await gateway.execute({ document: '{ pet(id: "404404") { id } }', apiKey })).toMatchObject({
      data: { pet: null },
      errors: [
        { path: ['pet'], extensions: { code: 'RATE_LIMITED', retryAfterMs: expect.any(Number), window: 'MINUTE' } },
      ],
    });
    expect(gateway.sandbox.calls).toHaveLength(1);
  });

  test('for a fault of petql, masked, with an id that is in the log', async () => {
    let broken = false;
    await using gateway = await startEmbedded({
      clock: {
        now: Date.now,
        elapsed() {
          if (broken) throw new Error('the inner secret');
          return performance.now();
        },
      },
    });
    broken = true;
    const { data, errors } = await gateway.execute({ document: FIRST, apiKey });
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.any(String) } }]);
    expect(JSON.stringify(errors)).not.toContain('secret');
    expect(gateway.logLines).toContainEqual(
      expect.objectContaining({
        id: errors?.[0]?.extensions?.['id'],
        err: expect.objectContaining({ message: 'the inner secret' }),
      }),
    );
  });
});

describe('the data', () => {
  test('is plain, so that React takes it as it stands', async () => {
    await using gateway = await startEmbedded();
    const { data } = await gateway.execute<{ pets: object[] }>({ document: FIRST, apiKey });
    for (const value of [data, data?.pets[0]]) expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test("has the types of its document, and the document's variables have theirs", async () => {
    await using gateway = await startEmbedded();
    const listing: TypedDocument<{ pets: { id: string }[] | null }, { limit?: number | null }> = parse(
      'query ($limit: Int) { pets(limit: $limit) { id } }',
    );
    const { data } = await gateway.execute({ document: listing, variables: { limit: 2 }, apiKey });
    expectTypeOf(data).toEqualTypeOf<{ pets: { id: string }[] | null } | null | undefined>();
    expect(data?.pets?.map(({ id }) => id)).toEqual(['1', '2']);
    expect((await gateway.execute({ document: listing, apiKey })).data?.pets).toHaveLength(20);

    const animal: TypedDocument<{ pet: { name: string } | null }, { id: string }> = parse(
      'query ($id: ID!) { pet(id: $id) { name } }',
    );
    // @ts-expect-error -- the variable is required
    expect((await gateway.execute({ document: animal, apiKey })).errors).toHaveLength(1);
    // @ts-expect-error -- it is a string
    expect((await gateway.execute({ document: animal, variables: { id: 1 }, apiKey })).data?.pet?.name).toBe('Ada');
  });
});

describe('a document', () => {
  test('can be the TypedDocumentString of GraphQL Code Generator', async () => {
    class FirstDocument extends String {
      __apiType?: (variables: { [key: string]: never }) => { pets: { id: string }[] };
    }
    const document = new FirstDocument(FIRST);
    await using gateway = await startEmbedded();
    const { data } = await gateway.execute({ document, apiKey });
    expect(data?.pets[0]?.id).toBe('1');
  });

  test('counts against the limits when it is parsed already', async () => {
    await using gateway = await startEmbedded();
    const document = parse(`{ ${'pets { id } '.repeat(2_000)} }`);
    expect((await gateway.execute({ document, apiKey })).errors).toMatchObject([
      { extensions: { code: 'LIMIT_EXCEEDED', limit: 'tokens' } },
    ]);
  });

  test.each([undefined, null, 3, {}, { kind: 'Dog' }])('such as %j is a TypeError', async (document) => {
    await using gateway = await startEmbedded();
    await expect(gateway.execute({ document: document as never, apiKey })).rejects.toThrow(
      new TypeError('execute: document: expected GraphQL as text, or parsed to a DocumentNode'),
    );
  });
});

test('an id can be a bigint', async () => {
  await using gateway = await startEmbedded();
  const document = 'query ($id: ID!) { pet(id: $id) { id } }';
  expect(await gateway.execute({ document, variables: { id: 9007199254740993n }, apiKey })).toMatchObject({
    data: { pet: { id: '9007199254740993' } },
  });
});

describe('the API key', () => {
  test.each([
    ['no key', undefined],
    ['null, as a header that is not there', null],
    ['an empty key', ''],
    ['a key with a space', 'demo free'],
    ['a key of 600 characters', 'x'.repeat(600)],
  ])('that is %s is UNAUTHENTICATED, at no call', async (_name, key) => {
    await using gateway = await startEmbedded();
    expect(await gateway.execute({ document: FIRST, apiKey: key })).toEqual({
      errors: [{ message: expect.any(String), extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect((await gateway.execute({ document: '{ __typename }', apiKey: key })).errors).toBeUndefined();
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test("is the gateway's own where none is given", async () => {
    await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
    await gateway.execute({ document: FIRST });
    await gateway.execute({ document: '{ pets(status: SOLD) { id } }', apiKey });
    expect(gateway.sandbox.calls.map(({ key }) => key)).toEqual(['demo-pro', apiKey]);
  });
});

describe('an operation that is given up', () => {
  test('before it starts is never called', async () => {
    await using gateway = await startEmbedded();
    const signal = AbortSignal.abort(new Error('changed my mind'));
    await expect(gateway.execute({ document: FIRST, apiKey, signal })).rejects.toThrow('changed my mind');
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('while it waits for the plan is never called, and ends with the reason at once', async () => {
    await using gateway = await startEmbedded();
    const abort = new AbortController();
    const reached = new Promise<void>((resolve) => {
      gateway.sandbox.setFault(() => {
        resolve();
        return { delayMs: 200 };
      });
    });
    const probe = gateway.execute({ document: FIRST, apiKey });
    await reached;
    const waiting = gateway.execute({ document: '{ pet(id: "2") { id } }', apiKey, signal: abort.signal });
    abort.abort(new Error('the visitor is gone'));
    await expect(waiting).rejects.toThrow('the visitor is gone');
    expect((await probe).errors).toBeUndefined();
    expect(gateway.sandbox.calls).toHaveLength(1);
    // It is no fault of petql's.
    expect(gateway.logLines.filter(({ level }) => level >= 50)).toEqual([]);
  });
});

describe('waitMs', () => {
  test('bounds how long an operation waits for the plan', async () => {
    await using gateway = await startEmbedded();
    gateway.sandbox.setFault(() => ({ delayMs: 100 }));
    const probe = gateway.execute({ document: FIRST, apiKey });
    await expect.poll(() => gateway.sandbox.calls.length).toBe(1);
    // A read might be answered by the call under way; a write waits for a turn of its own.
    const input = { name: 'Momo', categoryId: '3' };
    const hasty = await gateway.execute({ document: CREATE, variables: { input }, apiKey, waitMs: 0 });
    expect(hasty.errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED' } }]);
    await probe;
    expect(gateway.sandbox.calls).toHaveLength(1);
  });

  test('may be endless, which is as long as the gateway allows', async () => {
    await using gateway = await startEmbedded();
    expect((await gateway.execute({ document: FIRST, apiKey, waitMs: Infinity })).errors).toBeUndefined();
  });
});

describe('an argument of a wrong type is a TypeError that says what was expected and what came', () => {
  test.each<[string, Record<string, unknown>, string]>([
    ['a negative wait', { waitMs: -1 }, 'waitMs: expected milliseconds from 0, got -1'],
    ['a wait that is no number', { waitMs: Number.NaN }, 'waitMs: expected milliseconds from 0, got NaN'],
    ['a wait as a text', { waitMs: 'soon' }, 'waitMs: expected milliseconds from 0, got "soon"'],
    ['a wait as a bigint', { waitMs: 5n }, 'waitMs: expected milliseconds from 0, got 5n'],
    ['a freshness that is a number', { cacheControl: 5 }, 'cacheControl: expected a text such as max-age=5, got 5'],
    ['several freshnesses', { cacheControl: ['no-cache'] }, 'cacheControl: expected a text such as max-age=5, got ['],
    [
      'a trace that is an object',
      { traceparent: {} },
      'traceparent: expected the text of a traceparent header, got {}',
    ],
    ['a signal that is none', { signal: {} }, 'signal: expected an AbortSignal, got {}'],
    ['a signal that is a text', { signal: 'x' }, 'signal: expected an AbortSignal, got "x"'],
    ['a dry run as a text', { dryRun: 'false' }, 'dryRun: expected true or false, got "false"'],
    ['a key that is a number', { apiKey: 5 }, 'apiKey: expected a string, got number'],
    ['a key in a list', { apiKey: ['demo-free'] }, 'apiKey: expected a string, got list'],
    ['a key as bytes', { apiKey: Buffer.from('demo-free') }, 'apiKey: expected a string, got object'],
    [
      'several at once',
      { apiKey: ['demo-free'], dryRun: 0 },
      'apiKey: expected a string, got list; dryRun: expected true or false, got 0',
    ],
  ])('for %s', async (_name, wrong, problem) => {
    await using gateway = await startEmbedded();
    const answered = gateway.execute({ document: FIRST, apiKey, ...wrong });
    await expect(answered).rejects.toThrow(TypeError);
    await expect(answered).rejects.toThrow(`execute: ${problem}`);
    await expect(answered).rejects.not.toThrow('demo-free');
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('for no operation at all', async () => {
    await using gateway = await startEmbedded();
    await expect(gateway.execute(undefined as never)).rejects.toThrow(
      new TypeError('execute: expected an operation as an object, got undefined'),
    );
  });

  test('but null is as good as nothing, as headers that are not there are', async () => {
    await using gateway = await startEmbedded();
    const none = { variables: null, waitMs: null, signal: null, cacheControl: null, traceparent: null, dryRun: null };
    expect(await gateway.execute({ document: FIRST, apiKey, ...none })).toMatchObject({
      data: { pets: [{ id: '1' }] },
    });
  });
});

describe('after close', () => {
  test('nothing is called, with a key that was known before and with a new one', async () => {
    await using gateway = await startEmbedded();
    await gateway.execute({ document: FIRST, apiKey });
    await gateway.close();
    for (const key of [apiKey, 'demo-pro']) {
      const { errors } = await gateway.execute({ document: '{ pets(status: SOLD) { id } }', apiKey: key });
      expect(errors?.[0]?.message).toContain('petql is stopping');
    }
    expect(gateway.sandbox.calls).toHaveLength(1);
  });

  test('closing again does no harm', async () => {
    await using gateway = await startEmbedded();
    await gateway.close();
    await gateway.close();
    expect(gateway.sandbox.calls).toHaveLength(0);
  });
});

test('the schema is that of the answers', async () => {
  await using gateway = await startEmbedded();
  expect(gateway.schema.getMutationType()?.getFields()).toHaveProperty('createPet');
});

function callsOf({ sandbox }: EmbeddedGateway) {
  return sandbox.calls.map(({ method, path, key, body }) => ({ method, path, key, body }));
}
