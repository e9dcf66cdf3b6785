import { readFile } from 'node:fs/promises';
import { globSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ErrorCode } from '../../src/common/errors.ts';
import { createGateway } from '../../src/index.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { noticeOf } from '../../schema/recipes/petql.ts';
import { CLIENTS, loadRecipe } from './recipes.ts';

const ROOT = new URL('../../', import.meta.url);
const RETRY_AT = '2030-01-01T12:00:00.000Z';
const PETS = [{ __typename: 'Pet', id: '1', name: 'Ada' }];

interface Body {
  readonly data?: object | null;
  readonly errors?: readonly object[];
  readonly extensions?: object;
}

const errorOf = (code: ErrorCode, more: object = {}, path = ['pets']) => ({
  message: 'what it says',
  path,
  extensions: { code, ...more },
});
const limitedFor = (retryAfterMs: number): Body => ({
  data: { pets: null },
  errors: [errorOf('RATE_LIMITED', { retryAfterMs, retryAt: RETRY_AT })],
});
const WELL: Body = { data: { pets: PETS }, extensions: { petql: { upstreamCalls: 1, savedCalls: 0 } } };
const COME_BACK = `Please come back at ${new Date(RETRY_AT).toLocaleString()}.`;

/** The operations that were sent, with their variables. */
let sent: string[] = [];
/** Names a list that no cache knows. */
let lists = 0;

/** Lets `fetch` be answered by these, one after the other; the last one stays. */
function answerWith(...bodies: readonly Body[]): void {
  vi.stubGlobal('fetch', async (_url: string, init: RequestInit) => {
    sent.push(init.body as string);
    init.signal?.throwIfAborted();
    const body = bodies[Math.min(sent.length, bodies.length) - 1];
    const headers = { 'content-type': 'application/graphql-response+json' };
    return new Response(JSON.stringify(body), { status: body?.data === undefined ? 422 : 200, headers });
  });
}

beforeEach(() => {
  sent = [];
  lists += 1;
});
afterEach(() => void vi.unstubAllGlobals());

const newList = () => `LIST_${lists}`;
const quickly = { interval: 5 };

describe.each(CLIENTS)('the recipe for %s', async (name) => {
  const recipe = await loadRecipe(name);

  test('shows when to come back while it is limited twice, then the list', async () => {
    answerWith(limitedFor(400), limitedFor(20), WELL);
    const page = recipe.showPets(newList());
    await expect.poll(() => page.shown()?.notice, quickly).toBe(COME_BACK);
    await expect.poll(() => page.shown(), quickly).toMatchObject({ pets: [{ name: 'Ada' }], notice: undefined });
    expect(sent).toHaveLength(3);
    page.unmount();
  });

  test('sends a query five times at most', async () => {
    answerWith(limitedFor(1));
    const { data } = await recipe.query('query Limited { pets { id name } }');
    expect(data?.['pets'] ?? null).toBeNull();
    expect(sent).toHaveLength(5);
  });

  test('shows partial data, and what went wrong beside it', async () => {
    answerWith({ ...WELL, errors: [errorOf('GATEWAY_TIMEOUT', {}, ['other'])] });
    const page = recipe.showPets(newList());
    const notice = 'That did not work. Please try again later.';
    await expect.poll(() => page.shown(), quickly).toMatchObject({ pets: [{ id: '1' }], notice });
    page.unmount();
  });

  test('shows age and reason beside the list that they belong to', async () => {
    const freshAt = RETRY_AT;
    answerWith({ ...WELL, extensions: { petql: { staleReason: 'PAUSED', oldestAgeMs: 2_000, freshAt } } }, WELL);
    const old = recipe.showPets(`${newList()}_OLD`);
    const notice = `2 s old: the pet API asked for a pause; look again at ${new Date(freshAt).toLocaleString()}`;
    await expect.poll(() => old.shown(), quickly).toMatchObject({ pets: [{ id: '1' }], notice });
    const fresh = recipe.showPets(newList());
    await expect.poll(() => fresh.shown(), quickly).toMatchObject({ pets: [{ id: '1' }], notice: undefined });
    expect(old.shown()?.notice).toBe(notice);
    old.unmount();
    fresh.unmount();
  });

  test('sends nothing for a component that is gone', async () => {
    answerWith(limitedFor(400), WELL);
    const page = recipe.showPets(newList());
    await expect.poll(() => page.shown()?.notice, quickly).toBe(COME_BACK);
    page.unmount();
    await sleep(450);
    expect(sent).toHaveLength(1);
  });

  test('shows that petql cannot be reached', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed')));
    const page = recipe.showPets(newList());
    await expect.poll(() => page.shown()?.notice, quickly).toBe('That did not work. Please try again later.');
    page.unmount();
  });

  test.each<[ErrorCode, object, RegExp]>([
    ['RATE_LIMITED', { retryAfterMs: 20, retryAt: RETRY_AT }, /^Please come back at /],
    ['OUTCOME_UNKNOWN', {}, /look before you try again/],
    ['OUTCOME_PENDING', { retryAfterMs: 20, retryAt: RETRY_AT }, /submit the same again at /],
  ])('sends a create once, whatever comes of it: %s', async (code, details, notice) => {
    answerWith({ data: { createPet: null }, errors: [errorOf(code, details, ['createPet'])] }, WELL);
    expect(await recipe.addPet('Momo', 'key-1')).toMatch(notice);
    await sleep(60);
    expect(sent).toEqual([expect.stringContaining('"idempotencyKey":"key-1"')]);
  });

  test('says that a create whose response is lost may be submitted again, with the same key', async () => {
    vi.stubGlobal('fetch', async (_url: string, init: RequestInit) => {
      sent.push(init.body as string);
      throw new TypeError('fetch failed');
    });
    expect(await recipe.addPet('Momo', 'key-2')).toBe(
      'It may have worked. Please submit the same again later: it happens once.',
    );
    expect(sent).toHaveLength(1);
  });

  test('never repeats creates of which some have succeeded', async () => {
    const pet = { __typename: 'Pet', id: '251' };
    const limited = errorOf('RATE_LIMITED', { retryAfterMs: 10, retryAt: RETRY_AT }, ['b']);
    const a = { __typename: 'CreatePetPayload', pet };
    answerWith({ data: { a, b: null }, errors: [limited] }, WELL);
    const field = (called: string) => `createPet(input: { name: "${called}", categoryId: 3 }) { pet { id } }`;
    const { data, error } = await recipe.mutate(`mutation { a: ${field('Ada')} b: ${field('Balu')} }`);
    expect([data?.['a'].pet.id, data?.['b']]).toEqual(['251', null]);
    expect(error).not.toBeUndefined();
    await sleep(40);
    expect(sent).toHaveLength(1);
  });
});

describe('over the sandbox', () => {
  const sandbox = createSandbox();
  const gateway = createGateway(sandbox.gatewayOptions);
  afterAll(async () => {
    await gateway.close();
    await sandbox.close();
  });

  test.each(CLIENTS)('%s lists, creates, and lists what was created', async (name) => {
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => gateway.fetch(new Request(url, init)));
    const recipe = await loadRecipe(name);
    const page = recipe.showPets('AVAILABLE');
    await expect.poll(() => page.shown()?.pets?.length, quickly).toBe(20);
    expect(await recipe.addPet(`Momo by ${name}`, `key-${name.length}`)).toBeUndefined();
    page.unmount();
    const next = recipe.showPets('AVAILABLE');
    await expect.poll(() => next.shown()?.pets?.[0]?.name, quickly).toBe(`Momo by ${name}`);
    next.unmount();
  });
});

/** What people are told, and never the same for what has another remedy. */
test.each<[ErrorCode, object, string | RegExp]>([
  ['RATE_LIMITED', { retryAt: RETRY_AT }, COME_BACK],
  ['UNAUTHENTICATED', {}, 'The API key is not valid. Please check it.'],
  ['UNAUTHENTICATED', { retryAt: RETRY_AT }, COME_BACK],
  ['FORBIDDEN', {}, 'This API key has no right to do that.'],
  ['FORBIDDEN', { retryAt: RETRY_AT }, COME_BACK],
  ['BAD_USER_INPUT', {}, 'Please correct this: what it says'],
  ['DOWNSTREAM_SERVICE_ERROR', { retryAt: RETRY_AT }, /^That did not work\. Please try again at /],
  ['DOWNSTREAM_SERVICE_ERROR', { upstream: { status: 409 } }, 'Please correct this: what it says'],
  ['GATEWAY_TIMEOUT', {}, 'That did not work. Please try again later.'],
  ['NOT_CACHED', {}, 'Nothing is stored yet. Please load it anew.'],
  ['OUTCOME_UNKNOWN', {}, 'It may have worked. Please look before you try again.'],
  [
    'OUTCOME_PENDING',
    { retryAt: RETRY_AT },
    /^It may have worked\. Please submit the same again at .*: it happens once\.$/,
  ],
  ['IDEMPOTENCY_UNAVAILABLE', { retryAt: RETRY_AT }, /^Nothing was sent\. Please submit the same again at /],
  ['INTERNAL_SERVER_ERROR', { id: 'abc' }, 'Something broke. Please tell us its id: abc'],
  ['LIMIT_EXCEEDED', {}, /^This page has an error/],
  ['GRAPHQL_PARSE_FAILED', {}, /^This page has an error/],
  ['GRAPHQL_VALIDATION_FAILED', {}, /^This page has an error/],
  ['PERSISTED_DOCUMENT_NOT_FOUND', {}, /^This page has an error/],
  ['PERSISTED_DOCUMENT_REQUIRED', {}, /^This page has an error/],
])('people are told what to do after %s with %o', (code, details, notice) => {
  expect(noticeOf({ errors: [errorOf(code, details)] })).toMatch(notice);
});

test('each code of the reference has a notice', async () => {
  const reference = await readFile(new URL('schema/README.md', ROOT), 'utf8');
  const rows = /^\| Code \| Meaning.*?\n\n/ms.exec(reference)?.[0] ?? '';
  const codes = [...rows.matchAll(/`([A-Z_]{6,})`(?=[^|]*\|[^|]*\|[^|]*\|$)/gm)].map(([, code = '']) => code);
  expect(codes).toHaveLength(16);
  const unknown = noticeOf({ errors: [{ message: '', extensions: { code: 'NEW_CODE' } }] });
  const general = codes.filter((code) => noticeOf({ errors: [errorOf(code as ErrorCode)] }) === unknown);
  expect(general).toEqual(['DOWNSTREAM_SERVICE_ERROR', 'GATEWAY_TIMEOUT']);
});

test('the worst of several errors is told first', () => {
  const errors = (['RATE_LIMITED', 'OUTCOME_UNKNOWN', 'GATEWAY_TIMEOUT'] as const).map((code) => errorOf(code));
  expect(noticeOf({ errors })).toMatch(/^It may have worked/);
});

test.each([
  [2, 'SAVING_QUOTA', '1 s old: calls are saved for later'],
  [59_000, 'QUOTA_EXHAUSTED', '59 s old: the calls of now are used up'],
  [175_000, 'UPSTREAM_FAILED', '3 min old: the pet API fails'],
  [7_000_000, 'ONLY_IF_CACHED', '2 h old: no call was allowed'],
])('data of %d ms with the reason %s is as old as people say', (oldestAgeMs, staleReason, notice) => {
  expect(noticeOf({ extensions: { petql: { staleReason, oldestAgeMs } } })).toBe(notice);
});

test('RECIPES.md shows the recipes as they are in the files', async () => {
  const page = await readFile(new URL('schema/RECIPES.md', ROOT), 'utf8');
  const shown = [...page.matchAll(/^<!-- (schema\/recipes\/.+?) -->\n+```ts\n(.*?)^```$/gms)];
  for (const [, path = '', code] of shown) expect(code).toBe(await readFile(new URL(path, ROOT), 'utf8'));
  const files = globSync('schema/recipes/*', { cwd: ROOT.pathname });
  expect(new Set(shown.map(([, path]) => path))).toEqual(new Set(files));
});
