import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FORBIDS, RESETS, fails, slow, tooMany } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryAnswer, TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway({ gateway: { upstreamTimeoutMs: 300 } });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

const CREATE = `mutation ($input: CreatePetInput!) {
  createPet(input: $input) { pet { id name } userErrors { field code message } }
}`;

function create(
  input: Record<string, unknown> = {},
  headers: Record<string, string | null> = {},
): Promise<QueryAnswer> {
  const variables = { input: { name: 'Momo', categoryId: '3', idempotencyKey: 'momo-1', ...input } };
  return gateway.query(CREATE, { variables, headers });
}

/** The response without its usage. */
const shown = ({ status, data, errors }: QueryAnswer) => ({ status, data, errors });
const posts = () => gateway.petApi.log.filter(({ method }) => method === 'POST').length;
const failBy = (fault: Fault | undefined) => (gateway.petApi.fault = fault);

describe('creates with one idempotency key', () => {
  test('at the same time are one POST and one answer', async () => {
    failBy(slow(100));
    const answers = await Promise.all(Array.from({ length: 8 }, () => create()));
    expect(posts()).toBe(1);
    expect(answers[0]?.data?.['createPet']).toMatchObject({ pet: { id: expect.any(String) }, userErrors: [] });
    for (const answer of answers) expect(shown(answer)).toEqual(shown(answers[0] as QueryAnswer));
    const calls = answers.map(({ extensions }): number => extensions?.['petql'].upstreamCalls);
    expect(calls.filter((made) => made > 0)).toEqual([1]);
  });

  test('in one operation are one POST', async () => {
    const field = 'createPet(input: { name: "Momo", categoryId: 3, idempotencyKey: "k" }) { pet { id } }';
    const { data, errors } = await gateway.query(`mutation { a: ${field} b: ${field} }`);
    expect(errors).toBeUndefined();
    expect(data?.['b']).toEqual(data?.['a']);
    expect(posts()).toBe(1);
  });

  test.each<[string, Record<string, unknown>, Fault | undefined]>([
    ['the pet', {}, undefined],
    ['the userErrors', { name: '' }, undefined],
    ['OUTCOME_UNKNOWN after a reset', {}, RESETS],
    ['OUTCOME_UNKNOWN after a timeout', {}, slow(400)],
    ['OUTCOME_UNKNOWN after a 503', {}, fails()],
    ['OUTCOME_UNKNOWN after half a body', {}, { body: '{' }],
    ...[301, 302, 303].map((status): [string, {}, Fault] => [`OUTCOME_UNKNOWN after a ${status}`, {}, fails(status)]),
  ])('get the outcome of the first: %s', async (_name, input, fault) => {
    failBy(fault);
    const first = await create(input);
    failBy(undefined);
    expect(shown(await create(input))).toEqual(shown(first));
    expect(shown(await create(input))).toEqual(shown(first));
    expect(posts()).toBe(1);
  });

  test.each<[string, Fault | undefined, number]>([
    ['of a pet that it made costs no read a call', undefined, 1],
    ['of an unknown outcome costs the next read a call, once', RESETS, 1],
  ])('whose replay in one process %s', async (_name, fault, calls) => {
    await gateway[Symbol.asyncDispose]();
    gateway = await startGateway({ gateway: { maxAgeMs: 60_000 } });
    failBy(fault);
    await create();
    failBy(undefined);
    for (let replays = 0; replays < 4; replays += 1) {
      await create();
      expect((await gateway.query('{ pets(limit: 100) { id } }')).errors).toBeUndefined();
    }
    expect(gateway.petApi.log.filter(({ kind }) => kind === 'list')).toHaveLength(calls);
  });

  const DOWN = 'DOWNSTREAM_SERVICE_ERROR';
  const FULL = JSON.stringify({ code: 'store_full', message: 'no room for Momo', status: 409 });
  test.each<[string, Fault, string, RegExp]>([
    ['a 403', FORBIDS, 'FORBIDDEN', /does not allow/],
    ['a 404 without a body', fails(404, { body: '' }), DOWN, /base URL/],
    [
      'a 307',
      fails(307, { headers: { location: 'https://secret.test/' } }),
      DOWN,
      /redirects with status 307, .*base URL/,
    ],
    ['a 308', fails(308, { body: '' }), DOWN, /redirects with status 308, .*base URL/],
    ['a 409 with the Error body', fails(409, { body: FULL }), DOWN, /with status 409: no room for Momo$/],
    ['a 413', fails(413, { body: '<html>secret</html>' }), DOWN, /status 413\. The same request will fail again\.$/],
    ['a 422', fails(422, { body: '' }), DOWN, /status 422\. The same request will fail again\.$/],
  ])('may be sent again after %s, whose message says what to do', async (_name, fault, code, message) => {
    failBy(fault);
    const failed = await create();
    expect(failed).toMatchObject({ errors: [{ message: expect.stringMatching(message), extensions: { code } }] });
    expect(JSON.stringify(failed)).not.toMatch(/secret|Try again later/);
    failBy(undefined);
    expect((await create()).errors).toBeUndefined();
    expect(posts()).toBe(2);
  });

  const errorBody = (status: number, message: string) =>
    fails(status, { body: JSON.stringify({ code: 'invalid', message, status }) });
  test.each<[string, number, string, string[] | null]>([
    ['a 400', 400, 'name: expected 1 to 255 characters', ['input', 'name']],
    ['a 422', 422, 'Unknown "categoryId" (status 422)', ['input', 'categoryId']],
    ['a 400 that names two fields', 400, 'name or status is missing', null],
    ['a 422 that names none', 422, 'Status code 422', null],
  ])('and a corrected input are sent after %s with the Error body', async (_name, status, message, field) => {
    failBy(errorBody(status, message));
    const rejected = await create();
    expect(rejected.data?.['createPet']).toEqual({ pet: null, userErrors: [{ field, code: 'invalid', message }] });
    failBy(undefined);
    expect(shown(await create())).toEqual(shown(rejected));

    const corrected = await create({ name: 'Corrected' });
    expect(corrected.data?.['createPet']).toMatchObject({ pet: { name: 'Corrected' }, userErrors: [] });
    expect(shown(await create({ name: 'Corrected' }))).toEqual(shown(corrected));
    for (const input of [{}, { name: 'Third' }]) {
      expect(await create(input)).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
    }
    expect(posts()).toBe(2);
  });

  test.each<[string, Fault, string]>([
    ['a 409 with the Error body', errorBody(409, 'There is such a pet.'), DOWN],
    ['a 409 without it', fails(409, { body: '<html>' }), DOWN],
    ['an unknown outcome', RESETS, 'OUTCOME_UNKNOWN'],
  ])('and another input are BAD_USER_INPUT after %s', async (_name, fault, code) => {
    failBy(fault);
    expect(await create()).toMatchObject({ errors: [{ extensions: { code } }] });
    failBy(errorBody(400, 'name'));
    expect(await create({ name: 'Other' })).toMatchObject({
      errors: [{ extensions: { code: 'BAD_USER_INPUT', argument: 'input.idempotencyKey' } }],
    });
    expect(posts()).toBe(1);
  });

  test('and another input are BAD_USER_INPUT after a 409, whatever a retry met, until it makes the pet once', async () => {
    failBy(errorBody(409, 'There is such a pet.'));
    await create();
    failBy(fails(413));
    expect(await create()).toMatchObject({ errors: [{ extensions: { code: DOWN } }] });
    failBy(undefined);
    const other = { errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] };
    expect(await create({ name: 'Other' })).toMatchObject(other);
    failBy(slow(50));
    const [one, two] = await Promise.all([create(), create()]);
    expect(one.data?.['createPet'].pet.name).toBe('Momo');
    expect(shown(two)).toEqual(shown(one));
    expect(await create({ name: 'Other' })).toMatchObject(other);
    expect(posts()).toBe(3);
  });

  test('of which one is corrected twice at the same time make one pet', async () => {
    failBy(errorBody(400, 'name'));
    await create();
    failBy(slow(100));
    const both = await Promise.all([create({ name: 'One' }), create({ name: 'Two' })]);
    const codes = both.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions.code));
    expect(codes).toEqual(['BAD_USER_INPUT']);
    expect(posts()).toBe(2);
  });

  test('may be sent again after a 429 over the deadline', async () => {
    failBy(tooMany(1));
    const late = await create({}, { prefer: 'wait=1' });
    expect(late).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] });
    failBy(undefined);
    const other = await create({}, { authorization: 'Bearer demo-pro' });
    expect(other.errors).toBeUndefined();
    expect(posts()).toBe(2);
    // Another input shows whether something is stored: the key is paused, and not BAD_USER_INPUT.
    const again = await create({ name: 'Other' }, { prefer: 'wait=0' });
    expect(again).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] });
  });

  test('may be sent again after a 401', async () => {
    const headers = { authorization: 'Bearer stray' };
    expect(await create({}, headers)).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(await create({ name: 'Other' }, headers)).toMatchObject({
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(posts()).toBe(1);
  });

  test('and another input are BAD_USER_INPUT, during the first and after it', async () => {
    failBy(slow(200));
    const first = create();
    await until(() => posts() === 1);
    const wrong = { errors: [{ extensions: { code: 'BAD_USER_INPUT', argument: 'input.idempotencyKey' } }] };
    for (const input of [{ name: 'Mono' }, { categoryId: '4' }, { status: 'SOLD' }]) {
      expect(await create(input)).toMatchObject(wrong);
    }
    expect((await first).errors).toBeUndefined();
    for (const input of [{ name: 'Mono' }, { categoryId: '4' }, { status: 'SOLD' }]) {
      expect(await create(input)).toMatchObject(wrong);
    }
    expect(posts()).toBe(1);
  });

  test('of another API key are another create', async () => {
    const one = await create();
    const other = await create({ name: 'Other' }, { authorization: 'Bearer demo-pro' });
    expect(other.data?.['createPet'].pet.name).toBe('Other');
    expect(one.data?.['createPet'].pet.id).not.toBe(other.data?.['createPet'].pet.id);
  });

  test('whose first client left get its outcome', async () => {
    failBy(slow(200));
    const leaving = new AbortController();
    const left = fetch(gateway.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
      body: JSON.stringify({
        query: CREATE,
        variables: { input: { name: 'Momo', categoryId: '3', idempotencyKey: 'momo-1' } },
      }),
      signal: leaving.signal,
    }).catch(() => 'left');
    await until(() => posts() === 1);
    leaving.abort();
    expect(await left).toBe('left');
    expect((await create()).data?.['createPet'].pet.name).toBe('Momo');
    expect(posts()).toBe(1);
  });

  test('that cannot wait are OUTCOME_PENDING', async () => {
    failBy(slow(300));
    const first = create();
    await until(() => posts() === 1);
    const second = await create({}, { prefer: 'wait=0' });
    expect(second).toMatchObject({
      errors: [{ extensions: { code: 'OUTCOME_PENDING', retryAfterMs: 1_000, retryAt: expect.any(String) } }],
    });
    expect(second.headers.get('retry-after')).toBe('1');
    expect(shown(await create())).toEqual(shown(await first));
    expect(posts()).toBe(1);
  });
});

test.each([
  ['is stored for a day', 86_390_000, 1],
  ['is free after a day', 86_410_000, 2],
])('an outcome %s', async (_name, aheadMs, made) => {
  let ahead = 0;
  const clock = { now: () => Date.now() + ahead, elapsed: () => performance.now() + ahead };
  await using own = await startGateway({ gateway: { clock } });
  const variables = { input: { name: 'Momo', categoryId: '3', idempotencyKey: 'k' } };
  const first = await own.query(CREATE, { variables });
  ahead = aheadMs;
  const again = await own.query(CREATE, { variables });
  expect(again.errors).toBeUndefined();
  expect(own.petApi.log).toHaveLength(made);
  expect(again.data?.['createPet'].pet.id === first.data?.['createPet'].pet.id).toBe(made === 1);
});

describe('an idempotency key', () => {
  test.each([
    ['of no character', ''],
    ['of 256 characters', 'k'.repeat(256)],
    ['with a space', 'a key'],
    ['with a line break', 'key\n'],
    ['that is not ASCII', 'kéy'],
  ])('%s is BAD_USER_INPUT, and nothing is sent', async (_name, idempotencyKey) => {
    expect(await create({ idempotencyKey })).toMatchObject({
      errors: [{ extensions: { code: 'BAD_USER_INPUT', argument: 'input.idempotencyKey' } }],
    });
    expect(gateway.petApi.log).toHaveLength(0);
  });

  test('may have 255 visible characters', async () => {
    expect((await create({ idempotencyKey: '~!"'.repeat(85) })).errors).toBeUndefined();
  });

  test('that is null counts as none', async () => {
    expect((await create({ idempotencyKey: null })).errors).toBeUndefined();
    expect((await create({ idempotencyKey: null })).errors).toBeUndefined();
    expect(posts()).toBe(2);
  });
});
