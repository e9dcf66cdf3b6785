import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Fault } from '../../src/sandbox/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryAnswer, TestGateway } from '../support/start-gateway.ts';

const MEDIA_TYPES = ['application/json', 'application/graphql-response+json'] as const;
const CREATE =
  'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } userErrors { code message } } }';

let gateway: TestGateway;
let broken = false;

beforeEach(async () => {
  broken = false;
  gateway = await startGateway({
    gateway: {
      upstreamTimeoutMs: 300,
      clock: { now: () => unlessBroken(systemClock.now()), elapsed: () => unlessBroken(systemClock.elapsed()) },
    },
  });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

function unlessBroken<T>(value: T): T {
  if (broken) throw new Error('the inner secret');
  return value;
}

describe.each(MEDIA_TYPES)('for a client that accepts %s', (accept) => {
  const ask = (query: string, headers: Record<string, string | null> = {}): Promise<QueryAnswer> =>
    gateway.query(query, { headers: { accept, ...headers } });

  /** What a read answers while every call to the upstream goes wrong like this. */
  const askWith = (fault: Fault, query = '{ pets { id } other: __typename }') => {
    gateway.sandbox.setFault(() => fault);
    return ask(query);
  };

  test.each([
    ['no key', null],
    ['an empty header', ''],
    ['another scheme', 'Basic ZGVtbzpmcmVl'],
    ['no key behind Bearer', 'Bearer'],
    ['a key with a space', 'Bearer demo free'],
    ['two keys', 'Bearer demo-free, Bearer demo-pro'],
    ['a key of 600 characters', `Bearer ${'x'.repeat(600)}`],
  ])('%s is UNAUTHENTICATED with HTTP 401 and no upstream call', async (_name, authorization) => {
    const answer = await ask('{ pets { id } }', { authorization });
    expect(answer).toMatchObject({ status: 401, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(answer.data).toBeUndefined();
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('without a key, what needs none is answered all the same', async () => {
    expect(await ask('{ __typename pets { id } }', { authorization: null })).toMatchObject({
      status: 200,
      data: { __typename: 'Query', pets: null },
      errors: [{ path: ['pets'], extensions: { code: 'UNAUTHENTICATED' } }],
    });
    const { status, errors } = await ask('{ __schema { queryType { name } } }', { authorization: null });
    expect({ status, errors }).toEqual({ status: 200, errors: undefined });
  });

  test('a key that the upstream refuses is UNAUTHENTICATED, and is then refused without a call', async () => {
    const headers = { authorization: 'Bearer stray' };
    expect(await ask('{ pets { id } }', headers)).toMatchObject({
      data: { pets: null },
      errors: [{ path: ['pets'], extensions: { code: 'UNAUTHENTICATED' } }],
    });
    for (let again = 0; again < 100; again += 1) {
      expect(await ask('{ pets { id } }', headers)).toMatchObject({
        status: 401,
        errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
      });
    }
    expect(gateway.sandbox.calls.map(({ key, status }) => ({ key, status }))).toEqual([{ key: 'stray', status: 401 }]);
    expect((await ask('{ pets(limit: 1) { id } }')).errors).toBeUndefined();
  });

  test('an upstream 403 is FORBIDDEN', async () => {
    expect(await askWith({ status: 403 })).toMatchObject({
      status: 200,
      data: { pets: null, other: 'Query' },
      errors: [{ path: ['pets'], extensions: { code: 'FORBIDDEN' } }],
    });
  });

  test('an upstream 400 on a creation stands in userErrors with its code and message', async () => {
    const answer = await ask(CREATE.replace('Momo', ''));
    expect(answer.errors).toBeUndefined();
    expect(answer.data?.['createPet']).toMatchObject({ pet: null, userErrors: [{ code: 'bad_request' }] });
    expect(answer.data?.['createPet'].userErrors[0].message).toMatch(/^name: expected/);
  });

  test('an upstream 404 with its Error body is null', async () => {
    expect(await ask('{ pet(id: "404404") { id } }')).toMatchObject({ status: 200, data: { pet: null } });
  });

  test('an upstream 404 without its Error body is no answer but a withdrawn route', async () => {
    expect(await askWith({ status: 404, body: '<h1>Not Found</h1>' }, '{ pet(id: "1") { id } }')).toMatchObject({
      data: { pet: null },
      errors: [{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR', upstream: { status: 404 } } }],
    });
  });

  test('over the plan is RATE_LIMITED with the time to come back', async () => {
    const inAMinute = String(Math.floor(Date.now() / 1000) + 42);
    const headers = { 'retry-after': '42', 'x-ratelimit-reset': inAMinute };
    const answer = await askWith({ status: 429, headers }, '{ pets { id } }');
    expect(answer).toMatchObject({
      data: { pets: null },
      errors: [{ extensions: { code: 'RATE_LIMITED', retryAfterMs: expect.any(Number), window: 'MINUTE' } }],
    });
    const { retryAfterMs, retryAt }: Record<string, any> = answer.errors?.[0]?.extensions ?? {};
    expect(retryAfterMs).toBeGreaterThanOrEqual(42_000);
    expect(Date.parse(retryAt)).toBeGreaterThan(Date.now());
    expect(answer.headers.get('retry-after')).toBe(String(Math.ceil(retryAfterMs / 1000)));
  });

  test.each<[string, Fault, object]>([
    [
      'a 500',
      { status: 500, body: '{"code":"oops","message":"a secret","status":500}' },
      { status: 500, code: 'oops' },
    ],
    ['a 503 without a body', { status: 503, body: '' }, { status: 503 }],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:9/' } }, { status: 302 }],
    ['HTML with 200', { body: '<html>secret</html>' }, { status: 200 }],
    ['half of a JSON body', { body: '[{"id":1,' }, { status: 200 }],
    ['a wrong type', { body: '[{"id":"1","name":"a secret","categoryId":1}]' }, { status: 200 }],
    ['a missing field', { body: '[{"id":1,"categoryId":1}]' }, { status: 200 }],
    ['an answer cut short', { cutAfterBytes: 10 }, {}],
    ['a reset connection', { reset: true }, {}],
  ])('%s is DOWNSTREAM_SERVICE_ERROR, and never shows the body', async (_name, fault, upstream) => {
    const answer = await askWith(fault);
    expect(answer).toMatchObject({
      status: 200,
      data: { pets: null, other: 'Query' },
      errors: [{ path: ['pets'], extensions: { code: 'DOWNSTREAM_SERVICE_ERROR', upstream } }],
    });
    expect(JSON.stringify(answer)).not.toMatch(/secret|127\.0\.0\.1/);
  });

  test('an upstream too slow is GATEWAY_TIMEOUT', async () => {
    expect(await askWith({ delayMs: 1_000 })).toMatchObject({
      data: { pets: null },
      errors: [{ extensions: { code: 'GATEWAY_TIMEOUT' } }],
    });
  });

  test.each<[string, Fault]>([
    ['a timeout', { delayMs: 1_000 }],
    ['a reset', { reset: true }],
    ['a 500', { status: 500 }],
    ['a 503 that was carried out', { status: 503, body: '' }],
    ['a 201 that nobody can read', { body: '{"id":' }],
    ['an answer cut short', { cutAfterBytes: 5 }],
  ])('a creation with %s is OUTCOME_UNKNOWN, is sent once, and says what to check', async (_name, fault) => {
    const answer = await askWith(fault, CREATE);
    expect(answer).toMatchObject({ data: { createPet: null }, errors: [{ extensions: { code: 'OUTCOME_UNKNOWN' } }] });
    expect(answer.errors?.[0]?.message).toMatch(/pets query/);
    expect(gateway.sandbox.calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test.each([401, 403, 404, 409, 413, 422])('a creation refused with %i has a clear outcome', async (status) => {
    const answer = await askWith({ refused: true, status }, CREATE);
    expect(answer.data?.['createPet']).toBeNull();
    expect(answer.errors?.[0]?.extensions.code).not.toBe('OUTCOME_UNKNOWN');
  });

  test('anything else is INTERNAL_SERVER_ERROR, masked, with an id that is in the log', async () => {
    broken = true;
    const answer = await ask('{ pets { id } }');
    expect(answer).toMatchObject({ status: 500, errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] });
    expect(JSON.stringify(answer)).not.toContain('the inner secret');
    const id = answer.errors?.[0]?.extensions['id'];
    expect(gateway.logLines).toContainEqual(
      expect.objectContaining({ id, err: expect.objectContaining({ message: 'the inner secret' }) }),
    );
    broken = false;
    expect((await ask('{ pets { id } }')).errors).toBeUndefined();
  });

  test('one failing alias leaves the data of the others standing', async () => {
    gateway.sandbox.setFault(({ path }) => (path.includes('status=sold') ? { status: 500 } : undefined));
    const answer = await ask(
      '{ good: pets(limit: 1) { id } bad: pets(status: SOLD) { id } wrong: pet(id: "x") { id } none: pet(id: "404404") { id } }',
    );
    expect(answer).toMatchObject({ status: 200, data: { good: [{ id: '1' }], bad: null, wrong: null, none: null } });
    expect(answer.errors?.map(({ path, extensions }) => [path, extensions.code])).toEqual(
      expect.arrayContaining([
        [['wrong'], 'BAD_USER_INPUT'],
        [['bad'], 'DOWNSTREAM_SERVICE_ERROR'],
      ]),
    );
  });
});
