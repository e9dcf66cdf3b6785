import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import type { PetStatus } from '../../src/pet.ts';
import { createPetApi } from '../../src/upstream/pet-api.ts';
import type { PetApi, UpstreamOutcome } from '../../src/upstream/pet-api.ts';
import { createTransport } from '../../src/upstream/transport.ts';
import type { Transport } from '../../src/upstream/transport.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';
import type { RecordedSandbox } from '../support/start-recorded-sandbox.ts';

const call = { apiKey: 'demo-enterprise' };
const HUGE = '9223372036854775807' as Int64;

let sandbox: RecordedSandbox;
let transport: Transport;
let petApi: PetApi;

beforeAll(async () => {
  sandbox = await startRecordedSandbox();
  transport = createTransport({ baseUrl: new URL(sandbox.url), timeoutMs: 2_000 });
  petApi = createPetApi(transport, systemClock);
});
afterEach(() => sandbox.setFault(undefined));
afterAll(async () => {
  await transport.close();
  await sandbox.close();
});

test('a listing always asks for a hundred, since it costs the same', async () => {
  const { outcome } = await petApi.listPets('available', call);
  expect(sandbox.calls.at(-1)?.path).toBe('/pets?limit=100&status=available');
  expect(outcome).toMatchObject({ kind: 'ok', value: { complete: false } });
});

test('a listing of fewer than a hundred animals is complete', async () => {
  expect(await petApi.listPets('sold', call)).toMatchObject({ outcome: { kind: 'ok', value: { complete: true } } });
});

test.each(['<https://pets/?page=2>; rel="next"', '</v1/pets?a=b>; rel=next', '<x>; rel="prev", <y>; rel="last next"'])(
  'a listing with the next page %s is not complete, however short',
  async (link) => {
    sandbox.setFault(() => ({ headers: { link } }));
    expect(await petApi.listPets('sold', call)).toMatchObject({ outcome: { kind: 'ok', value: { complete: false } } });
  },
);

test('a listing that has not changed is not read again, and one that has is', async () => {
  const [first, again] = [await listed('sold'), await listed('sold')];
  expect(again).toBe(first);
  await petApi.createPet({ name: 'Ada', categoryId: '1' as Int64, status: 'sold' }, call);
  const grown = await listed('sold');
  expect(grown?.map(({ name }) => name)).toContain('Ada');
  expect(grown).toHaveLength((first?.length ?? 0) + 1);
});

test('what one filter was answered with is not taken for an answer to another', async () => {
  const body = '[{"id":1,"name":"Ada","categoryId":1,"status":"sold"}]';
  sandbox.setFault(() => ({ status: 200, body }));
  expect(await petApi.listPets('sold', call)).toMatchObject({ outcome: { kind: 'ok' } });
  expect(await petApi.listPets('pending', call)).toMatchObject({
    outcome: { kind: 'unreadable', problem: '[0].status: expected the status that was asked for' },
  });
});

test('int64s pass both ways without losing a digit, as bare numbers', async () => {
  const answer = await petApi.createPet({ name: 'Zoë 🐈', categoryId: HUGE, status: undefined }, call);
  expect(sandbox.calls.at(-1)?.body).toBe(`{"name":"Zoë 🐈","categoryId":${HUGE}}`);
  expect(answer.outcome).toMatchObject({ kind: 'ok', value: { name: 'Zoë 🐈', categoryId: HUGE, status: undefined } });
});

test('rate-limit headers are read on every answer, errors included', async () => {
  const answers = [
    await petApi.listPets(undefined, call),
    await petApi.getPet('404404' as Int64, call),
    await petApi.createPet({ name: '', categoryId: HUGE, status: undefined }, call),
  ];
  expect(answers.map(({ outcome }) => outcome.kind)).toEqual(['ok', 'not-found', 'invalid']);
  for (const { rateLimit } of answers) {
    expect(rateLimit).toMatchObject({ limit: 5_000, remaining: expect.any(Number), reset: expect.any(Number) });
  }
  sandbox.setFault(() => ({ status: 503, body: '' }));
  expect((await petApi.listPets(undefined, call)).rateLimit).toMatchObject({ limit: 5_000 });
});

describe('an answer that breaks the contract says which field, and not the body', () => {
  const animal = { id: 1, name: 'secret', categoryId: 2, status: 'sold' };
  test.each<[string, string, string]>([
    ['no JSON', '<html>secret</html>', 'the body: expected JSON'],
    ['bytes that are no UTF-8', '\u0000', 'the body: expected JSON'],
    ['no array', '{"secret":1}', 'the body: expected an array'],
    ['an id that is a string', JSON.stringify([{ ...animal, id: 'secret' }]), '[0].id: expected an int64'],
    ['an id with a fraction', JSON.stringify([{ ...animal, id: 1.5 }]), '[0].id: expected an int64'],
    ['an id past int64', '[{"id":9223372036854775808,"name":"secret","categoryId":1}]', '[0].id: expected an int64'],
    ['no name', JSON.stringify([animal, { ...animal, id: 2, name: undefined }]), '[1].name: expected a string'],
    ['a category that is null', JSON.stringify([{ ...animal, categoryId: null }]), '[0].categoryId: expected an int64'],
    ['an unknown status', JSON.stringify([{ ...animal, status: 'secret' }]), '[0].status: expected one of'],
    ['an id twice', JSON.stringify([animal, animal]), '[1].id: expected an id of its own'],
    ['another status', JSON.stringify([{ ...animal, status: 'pending' }]), '[0].status: expected the status that was'],
    [
      'more values than are looked at one by one',
      `[${JSON.stringify({ ...animal, id: 1, extra: Array.from({ length: 20_001 }, () => 1) })},9007199254740993]`,
      'the body: expected at most 20000 values',
    ],
    [
      'more animals than were asked for',
      JSON.stringify(Array.from({ length: 101 }, (_, id) => ({ ...animal, id }))),
      'the body: expected at most 100 animals',
    ],
  ])('such as %s', async (_name, body, problem) => {
    sandbox.setFault(() => ({ body }));
    const { outcome } = await petApi.listPets('sold', call);
    expect(outcome).toMatchObject({ kind: 'unreadable', status: 200, problem: expect.stringContaining(problem) });
    expect(JSON.stringify(outcome)).not.toContain('secret');
  });

  test('such as invalid UTF-8', async () => {
    sandbox.setFault(() => ({ body: Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]) }));
    const { outcome } = await petApi.listPets('sold', call);
    expect(outcome).toMatchObject({ kind: 'unreadable', problem: 'the body: expected UTF-8' });
  });

  test('such as a compressed body that nobody asked for', async () => {
    sandbox.setFault(() => ({ headers: { 'content-encoding': 'gzip' } }));
    expect((await petApi.listPets('sold', call)).outcome).toMatchObject({ kind: 'unreadable' });
  });

  test('such as another animal than the one asked for', async () => {
    sandbox.setFault(() => ({ body: JSON.stringify(animal) }));
    const { outcome } = await petApi.getPet('7' as Int64, call);
    expect(outcome).toMatchObject({ kind: 'unreadable', problem: 'id: expected the id that was asked for' });
  });
});

test('unknown fields are kept out, and a status of null is none', async () => {
  sandbox.setFault(() => ({ body: '[{"id":1,"name":"x","categoryId":2,"status":null,"owner":"y"}]' }));
  const { outcome } = await petApi.listPets(undefined, call);
  expect(outcome).toEqual({
    kind: 'ok',
    value: { pets: [{ id: '1', name: 'x', categoryId: '2', status: undefined }], complete: true },
  });
});

test.each([
  [401, 'unauthenticated'],
  [403, 'forbidden'],
  [404, 'not-found'],
  [405, 'route-gone'],
  [410, 'route-gone'],
  [429, 'rate-limited'],
  [500, 'failed'],
  [302, 'failed'],
])('a %i is %s', async (status, kind) => {
  const body = JSON.stringify({ code: 'x', message: 'y', status });
  sandbox.setFault(() => ({ status, body }));
  expect((await petApi.getPet('1' as Int64, call)).outcome.kind).toBe(kind);
});

test.each(['nothing here', '{"code":"x","message":"no route"}', '{"code":"x","message":"no route","status":400}'])(
  'a 404 without the Error body is a route that is gone: %s',
  async (body) => {
    sandbox.setFault(() => ({ status: 404, body }));
    expect((await petApi.getPet('1' as Int64, call)).outcome).toEqual({ kind: 'route-gone', status: 404 });
  },
);

test.each<[number, UpstreamOutcome<unknown>]>([
  [200, { kind: 'no-answer', reason: 'broken' }],
  [401, { kind: 'unauthenticated' }],
  [403, { kind: 'forbidden' }],
  [429, { kind: 'rate-limited' }],
  [400, { kind: 'failed', status: 400, code: undefined }],
  [404, { kind: 'failed', status: 404, code: undefined }],
  [500, { kind: 'failed', status: 500, code: undefined }],
])('a %i whose body is cut says what its status and its headers say', async (status, outcome) => {
  sandbox.setFault(() => ({ status, cutAfterBytes: 1, headers: { 'retry-after': '9' } }));
  expect(await petApi.getPet('1' as Int64, call)).toMatchObject({
    outcome,
    sent: true,
    status,
    rateLimit: { limit: 5_000, retryAfterMs: 9_000 },
  });
});

describe('an answer to a creation', () => {
  const asked = { name: 'Ada', categoryId: '3' as Int64, status: 'sold' } as const;
  const added = { id: 7, name: asked.name, categoryId: 3, status: 'sold' };
  test.each<[string, number, object]>([
    ['the animal itself', 201, added],
    ['the animal itself, as a 200', 200, added],
    ['its name tidied up', 201, { ...added, name: 'ADA' }],
    ['no status', 201, { ...added, status: undefined }],
    ['a status of its own', 201, { ...added, status: 'pending' }],
  ])('with %s is its success', async (_name, status, body) => {
    sandbox.setFault(() => ({ status, body: JSON.stringify(body) }));
    expect((await petApi.createPet(asked, call)).outcome).toMatchObject({ kind: 'ok', value: { id: '7' } });
  });
  test.each<[string, number, object]>([
    ['name', 200, { ...added, name: 'Somebody else' }],
    ['categoryId', 200, { ...added, categoryId: 9 }],
    ['categoryId', 201, { ...added, categoryId: 9 }],
  ])('that is about another call, with another %s and %i, says nothing of it', async (field, status, body) => {
    sandbox.setFault(() => ({ status, body: JSON.stringify(body) }));
    expect((await petApi.createPet(asked, call)).outcome).toMatchObject({
      kind: 'unreadable',
      problem: `${field}: expected that of the animal that was to be added`,
    });
  });
});

async function listed(status: PetStatus) {
  const { outcome } = await petApi.listPets(status, call);
  return outcome.kind === 'ok' ? outcome.value.pets : undefined;
}
