import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { startGateway } from '../support/start-gateway.ts';

const FIRST = 'query First($limit: Int = 1) {\n  pets(limit: $limit) { id }\n}';
const ADD = 'mutation Add { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
/** As Relay and GraphQL Code Generator write it: with MD5, SHA-1 or SHA-256, and no prefix. */
const MANIFEST = { d1d1d1d1: FIRST, [sha256(ADD)]: ADD };
const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };

async function start(options: object = {}) {
  const gateway = await startGateway({ gateway: { trustedDocuments: MANIFEST, ...options } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const answer = async (response: Promise<Response>) => {
    const { data, errors } = (await (await response).json()) as Record<string, any>;
    return { data, code: errors?.[0].extensions.code as string | undefined };
  };
  return {
    ...gateway,
    answer,
    post: (body: object) => answer(fetch(gateway.endpoint, { method: 'POST', headers, body: JSON.stringify(body) })),
    get: (query: string) => answer(fetch(`${gateway.endpoint}?${query}`, { headers })),
  };
}

describe('a trusted document', () => {
  test.each<[string, object]>([
    ['its id in the manifest', { documentId: 'd1d1d1d1' }],
    ['the hash of its text', { documentId: `sha256:${sha256(FIRST)}` }],
    ['the hash without its prefix', { documentId: sha256(FIRST) }],
    ["Apollo's extension", { extensions: { persistedQuery: { version: 1, sha256Hash: 'd1d1d1d1' } } }],
  ])('runs by %s, with variables', async (_name, params) => {
    const { data, code } = await (await start()).post({ ...params, variables: { limit: 2 } });
    expect([data, code]).toEqual([{ pets: [{ id: '1' }, { id: '2' }] }, undefined]);
  });

  test('runs by GET, unless it is a mutation', async () => {
    const { get, petApi } = await start();
    const { data } = await get(`documentId=sha256:${sha256(FIRST)}&variables={"limit":3}`);
    expect(data.pets).toHaveLength(3);
    expect((await get(`documentId=${sha256(ADD)}`)).code).toBe('BAD_USER_INPUT');
    expect(petApi.log.map(({ method }) => method)).toEqual(['GET']);
  });

  test.each([{}, { trustedDocuments: undefined }])('with an unknown id is one error, with %j', async (options) => {
    const { post } = await start(options);
    for (const documentId of ['sha256:abc', 'toString', '__proto__']) {
      expect((await post({ documentId })).code).toBe('PERSISTED_DOCUMENT_NOT_FOUND');
    }
  });

  test.each<[string, object]>([
    ['an empty query', { query: '' }],
    ['null as query', { query: null }],
    ['an empty hash', { extensions: { persistedQuery: { version: 1, sha256Hash: '' } } }],
    ['an empty name', { operationName: '' }],
  ])('runs beside %s, by POST and GET', async (_name, params) => {
    const { post, get } = await start({ requireTrustedDocuments: true });
    expect((await post({ documentId: 'd1d1d1d1', ...params })).data).toEqual({ pets: [{ id: '1' }] });
    const entries = Object.entries(params).map(([name, value]) => [
      name,
      typeof value === 'object' && value ? JSON.stringify(value) : (value ?? ''),
    ]);
    const query = new URLSearchParams({ documentId: 'd1d1d1d1', ...Object.fromEntries(entries) });
    expect((await get(query.toString())).data).toEqual({ pets: [{ id: '1' }] });
  });

  test.each<[string, object]>([
    ['an empty id', { documentId: '' }],
    ['an empty hash', { extensions: { persistedQuery: { version: 1, sha256Hash: '' } } }],
  ])('is not meant by a query with %s', async (_name, params) => {
    const { post } = await start();
    expect((await post({ query: '{ pets(limit: 1) { name } }', ...params })).data).toEqual({ pets: [{ name: 'Ada' }] });
    expect((await post(params)).code).toBe('BAD_USER_INPUT');
  });

  test("lets Apollo's clients of other apps send texts, unless only trusted documents run", async () => {
    const params = { extensions: { persistedQuery: { version: 1, sha256Hash: sha256('{ __typename }') } } };
    const message = async (options: object) => {
      const { endpoint } = await start(options);
      const response = await fetch(endpoint, {
        method: 'POST',
        headers,
        body: JSON.stringify({ query: '', ...params }),
      });
      return ((await response.json()) as { errors: { message: string }[] }).errors[0]?.message;
    };
    expect(await message({ trustedDocuments: undefined })).toBe('PersistedQueryNotSupported');
    expect(await message({})).toBe('PersistedQueryNotSupported');
    expect(await message({ requireTrustedDocuments: true })).toContain('manifest');
  });

  test('rejects a query beside a document id, and an id that is no string', async () => {
    const { post } = await start();
    for (const params of [{ query: '{ __typename }', documentId: 'd1d1d1d1' }, { documentId: 4 }, { documentId: {} }]) {
      expect((await post(params)).code).toBe('BAD_USER_INPUT');
    }
  });
});

test('where only trusted documents run, others do not run over HTTP, and do in process', async () => {
  const { post, get, petApi, gateway } = await start({ requireTrustedDocuments: true });
  const query = '{ pets { id } }';
  const extensions = { persistedQuery: { version: 1, sha256Hash: sha256(query) } };
  for (const answer of [await post({ query }), await post({ query, extensions }), await get('query={__typename}')]) {
    expect(answer).toEqual({ data: undefined, code: 'PERSISTED_DOCUMENT_REQUIRED' });
  }
  expect(petApi.log).toHaveLength(0);
  expect((await post({ documentId: 'd1d1d1d1' })).code).toBeUndefined();
  expect((await post({ query: FIRST })).code).toBeUndefined();
  const { errors } = await gateway.execute({ document: '{ pets { name } }', apiKey: 'demo-free' });
  expect(errors).toBeUndefined();
});

test('no trick runs another document where only trusted ones run', async () => {
  const { post, get, answer, endpoint, petApi } = await start({ requireTrustedDocuments: true });
  const query = '{ pets { name } }';
  const documentId = 'd1d1d1d1';
  const persistedQuery = { version: 1, sha256Hash: documentId };
  const answers = [
    await post({ query, documentId }),
    await post({ query, id: documentId }),
    await post({ query, extensions: { persistedQuery } }),
    await post({ query: [FIRST, query] }),
    await post({ query: { toString: FIRST } }),
    await post({ query: `${FIRST} ${query}` }),
    await post({ query: ` ${FIRST}` }),
    await post({ documentId: [documentId, query] }),
    await post({ documentId: 'constructor', query: null }),
    await post({ documentId: query }),
    await post([{ documentId }, { query }]),
    await get(new URLSearchParams({ query, documentId }).toString()),
    await get(`documentId=${documentId}&query=${encodeURIComponent(query)}`),
    await get(`query=${encodeURIComponent(query)}&extensions=${JSON.stringify({ persistedQuery })}`),
  ];
  for (const body of [`{"__proto__":{"query":${JSON.stringify(query)}}}`, `{"query":"{ a }","query":"${query}"}`]) {
    answers.push(
      await answer(fetch(endpoint, { method: 'POST', headers: { ...headers, 'petql-dry-run': '1' }, body })),
    );
  }
  const rejected = /^(?:BAD_USER_INPUT|PERSISTED_DOCUMENT_(?:NOT_FOUND|REQUIRED))$/;
  expect(answers).toEqual(answers.map(() => ({ data: undefined, code: expect.stringMatching(rejected) })));
  expect(petApi.log).toEqual([]);
  // A POST ignores what its address says.
  const url = `${endpoint}?query=${encodeURIComponent(query)}`;
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ documentId }) });
  expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
});

describe('a manifest', () => {
  const create = (trustedDocuments: unknown, more: object = {}) =>
    createGateway({ petApiUrl: 'http://127.0.0.1:9/v1', trustedDocuments, ...more } as GatewayOptions);

  test("may be Apollo's", async () => {
    const operations = [{ id: 'one', name: 'First', type: 'query', body: FIRST }];
    const manifest = { format: 'apollo-persisted-query-manifest', version: 1, operations };
    const { post } = await start({ trustedDocuments: manifest });
    expect((await post({ documentId: 'one' })).code).toBeUndefined();
  });

  test.each<[string, unknown, RegExp, object?]>([
    ['a list', [FIRST], /trustedDocuments/],
    ['a document that is no string', { a: 4 }, /trustedDocuments: .*"a"/],
    ['a syntax error', { a: '{' }, /"a": Syntax Error/],
    ['an unknown field', { a: '{ cats { id } }' }, /"a": Cannot query field/],
    ['the hash of another text', { 'sha256:00': FIRST }, /"sha256:00"/],
    ['a document over maxDepth', { a: ADD }, /"a": .*\b2\b/, { maxDepth: 2 }],
    ['a document over maxTokens', { a: ADD }, /\b20 tokens/, { maxTokens: 20 }],
    ['introspection that is off', { a: '{ __schema { __typename } }' }, /"a": /, { introspection: false }],
    ['nothing where it is required', undefined, /requireTrustedDocuments/, { requireTrustedDocuments: true }],
  ])('with %s keeps petql from starting', (_name, manifest, problem, options) => {
    expect(() => create(manifest, options)).toThrow(TypeError);
    expect(() => create(manifest, options)).toThrow(problem);
  });
});
