import { describe, expect, test } from 'vitest';
import { FORBIDS, RESETS, fails, on, slow, tooMany } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import { TRANSPORTS, codesOf, headerOf, sendBy } from '../support/transports.ts';
import type { Transport } from '../support/transports.ts';

const LIST = '{ pets { id } other: __typename }';
const CREATE =
  'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } userErrors { code message } } }';

/** petql's clock, which a test can break. */
function breakableClock() {
  const state = { isBroken: false };
  const unlessBroken = <T>(value: T): T => {
    if (state.isBroken) throw new Error('the inner secret');
    return value;
  };
  const clock = { now: () => unlessBroken(Date.now()), elapsed: () => unlessBroken(performance.now()) };
  return { state, clock };
}

async function start(transport: Transport, fault?: Fault) {
  const { state, clock } = breakableClock();
  const upstreamTimeoutMs = fault?.delayMs ? 250 : 5_000;
  const gateway = await startGateway({ gateway: { upstreamTimeoutMs, clock } });
  if (fault) gateway.petApi.fault = fault;
  return { ...gateway, state, send: sendBy(transport, gateway) };
}

const READ_FAILURES: [name: string, fault: Fault, extensions: object][] = [
  ['a 403', FORBIDS, { code: 'FORBIDDEN' }],
  ['a 500', { status: 500, body: error(500, 'oops') }, down({ status: 500, code: 'oops' })],
  ['a 503 without a body', { status: 503, body: '' }, down({ status: 503 })],
  ['HTML with 200', { body: '<html>secret</html>' }, down({ status: 200 })],
  ['a body that is cut', { cutAfterBytes: 10 }, down()],
  ['a reset connection', RESETS, down()],
  ['a response that is too slow', slow(400), { code: 'GATEWAY_TIMEOUT' }],
];

function down(upstream: object = {}): object {
  return { code: 'DOWNSTREAM_SERVICE_ERROR', upstream };
}

function error(status: number, code: string): string {
  return JSON.stringify({ code, message: 'a secret', status });
}

describe.each(TRANSPORTS)('by %s', (transport) => {
  test.each(READ_FAILURES)('%s fails its read alone and never shows the body', async (_name, fault, extensions) => {
    await using gateway = await start(transport, fault);
    const answer = await gateway.send(LIST);
    expect(answer).toMatchObject({ data: { pets: null, other: 'Query' }, errors: [{ path: ['pets'], extensions }] });
    expect(answer.status ?? 200).toBe(200);
    expect(JSON.stringify(answer)).not.toMatch(/secret|127\.0\.0\.1/);
    gateway.petApi.fault = undefined;
    expect((await gateway.send(LIST, { cacheControl: 'no-cache' })).errors).toBeUndefined();
  });

  test.each<[string, string | null]>([
    ['no key', null],
    ['an empty key', ''],
    ['a key with a space', 'demo free'],
    ['a key of 600 characters', 'x'.repeat(600)],
  ])('%s is UNAUTHENTICATED without a call, and what needs no key is answered', async (_name, apiKey) => {
    await using gateway = await start(transport);
    const nothing = await gateway.send('{ pets { id } }', { apiKey });
    expect(codesOf(nothing)).toEqual(['UNAUTHENTICATED']);
    expect(nothing.data).toBeUndefined();
    expect(nothing.status ?? 401).toBe(401);
    expect(headerOf(nothing, 'www-authenticate', 'Bearer')).toMatch(/^Bearer/);
    const some = await gateway.send('{ __schema { queryType { name } } pets { id } }', { apiKey });
    expect(some).toMatchObject({ data: { pets: null }, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(some.status ?? 200).toBe(200);
    expect(gateway.petApi.log).toHaveLength(0);
  });

  test('a key that the upstream rejects is UNAUTHENTICATED, then without a call and with HTTP 401', async () => {
    await using gateway = await start(transport);
    const first = await gateway.send('{ pets { id } }', { apiKey: 'stray' });
    expect(first).toMatchObject({ data: { pets: null }, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    for (let again = 0; again < 20; again += 1) {
      const rejected = await gateway.send('{ pets { id } }', { apiKey: 'stray' });
      expect([codesOf(rejected), rejected.status ?? 401]).toEqual([['UNAUTHENTICATED'], 401]);
    }
    expect(gateway.petApi.log.map(({ status }) => status)).toEqual([401]);
    expect((await gateway.send(LIST)).errors).toBeUndefined();
  });

  test('an upstream 400 on a create stands in userErrors with its code and message', async () => {
    await using gateway = await start(transport);
    const { data, errors } = await gateway.send(CREATE.replace('Momo', ''));
    expect(errors).toBeUndefined();
    const userErrors = [{ code: 'bad_request', message: expect.stringMatching(/^name: /) }];
    expect(data).toEqual({ createPet: { pet: null, userErrors } });
  });

  test('a 404 without the Error body proves nothing', async () => {
    await using gateway = await start(transport, { status: 404, body: '<h1>Not Found</h1>' });
    const answer = await gateway.send('{ pet(id: "1") { id } }');
    expect(answer).toMatchObject({ data: { pet: null }, errors: [{ extensions: down({ status: 404 }) }] });
  });

  test('a 429 is RATE_LIMITED with the time to come back, in Retry-After too', async () => {
    await using gateway = await start(transport, tooMany(42));
    const answer = await gateway.send('{ pets { id } }');
    expect(answer.data).toEqual({ pets: null });
    const extensions = answer.errors?.[0]?.extensions ?? ({} as Record<string, any>);
    expect(extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'MINUTE' });
    expect(extensions['retryAfterMs']).toBeGreaterThanOrEqual(42_000);
    expect(Date.parse(extensions['retryAt'])).toBeGreaterThan(Date.now() + 40_000);
    const retryAfter = String(Math.ceil(extensions['retryAfterMs'] / 1000));
    expect(headerOf(answer, 'retry-after', retryAfter)).toBe(retryAfter);
  });

  test.each<[string, Fault]>([
    ['a timeout', slow(400)],
    ['a reset', RESETS],
    ['a 500', fails(500)],
    ['a 503', { status: 503, body: '' }],
    ['a 408', fails(408)],
    ['a 200', { status: 200, body: '{"id":7,"name":"Momo","categoryId":3}' }],
    ['a 201 that is no JSON', { body: '{"id":' }],
    ['a body that is cut', { cutAfterBytes: 5 }],
  ])('a create that ends with %s is OUTCOME_UNKNOWN, and is sent once', async (_name, fault) => {
    await using gateway = await start(transport, fault);
    const answer = await gateway.send(CREATE);
    expect([answer.data, codesOf(answer)]).toEqual([{ createPet: null }, ['OUTCOME_UNKNOWN']]);
    expect(answer.errors?.[0]?.message).toMatch(/Look for it before/);
    expect(gateway.petApi.log.map(({ method }) => method)).toEqual(['POST']);
  });

  test.each([401, 403, 404, 409, 413])('a create refused with %i has a clear outcome', async (status) => {
    await using gateway = await start(transport, fails(status));
    const answer = await gateway.send(CREATE);
    expect(answer.data).toEqual({ createPet: null });
    expect(codesOf(answer)[0]).toMatch(/^(?:UNAUTHENTICATED|FORBIDDEN|DOWNSTREAM_SERVICE_ERROR)$/);
  });

  test('a 201 with a pet is a success, whatever the pet says', async () => {
    const pet = { id: 7, name: 'MOMO', categoryId: 9, status: 'pending' };
    await using gateway = await start(transport, { body: JSON.stringify(pet) });
    const { data, errors } = await gateway.send(CREATE.replace('pet { id }', 'pet { id name categoryId status }'));
    expect(errors).toBeUndefined();
    expect(data?.['createPet'].pet).toEqual({ id: '7', name: 'MOMO', categoryId: '9', status: 'PENDING' });
  });

  test('anything else is INTERNAL_SERVER_ERROR, masked, with an id that is in the log', async () => {
    await using gateway = await start(transport);
    gateway.state.isBroken = true;
    const answer = await gateway.send('{ pets { id } }');
    gateway.state.isBroken = false;
    expect([codesOf(answer), answer.status ?? 500]).toEqual([['INTERNAL_SERVER_ERROR'], 500]);
    expect(JSON.stringify(answer)).not.toContain('secret');
    const id: unknown = answer.errors?.[0]?.extensions['id'];
    expect(id).toEqual(expect.any(String));
    const logged = gateway.logLines.filter((line) => line['id'] === id && line['err']);
    expect(logged).toMatchObject([{ level: 50, err: { message: 'the inner secret' } }]);
    expect((await gateway.send('{ pets { id } }')).errors).toBeUndefined();
  });

  test('an upstream 404 with its Error body is null', async () => {
    await using gateway = await start(transport);
    const { data, errors } = await gateway.send('{ pet(id: "404404") { id } }');
    expect([data, errors]).toEqual([{ pet: null }, undefined]);
  });

  test('one failing alias leaves the data of the others', async () => {
    await using gateway = await start(transport);
    gateway.petApi.fault = on('sold', fails(500));
    const { data, errors } = await gateway.send(
      '{ good: pets(limit: 1) { id } bad: pets(status: SOLD) { id } wrong: pet(id: "x") { id } none: pet(id: "404404") { id } }',
    );
    expect(data).toEqual({ good: [{ id: '1' }], bad: null, wrong: null, none: null });
    const codes = Object.fromEntries((errors ?? []).map(({ path, extensions }) => [path?.[0], extensions.code]));
    expect(codes).toMatchObject({ wrong: 'BAD_USER_INPUT', bad: 'DOWNSTREAM_SERVICE_ERROR' });
  });
});
