import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const FIRST = 'query First($limit: Int = 1) {\n  pets(limit: $limit) { id }\n}';
const ADD = 'mutation Add { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
/** As Relay and GraphQL Code Generator write theirs: with MD5, SHA-1 or SHA-256, and no prefix. */
const MANIFEST = { d1d1d1d1: FIRST, [sha256(ADD)]: ADD };

let gateway: TestGateway;

afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

async function start(options: object = {}): Promise<void> {
  gateway = await startGateway({ gateway: { trustedDocuments: MANIFEST, ...options } });
}

async function ask(body: object) {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
  const answer = await fetch(gateway.endpoint, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: answer.status, ...((await answer.json()) as { data?: object; errors?: object[] }) };
}

const refused = (code: string) => [{ message: expect.any(String), extensions: { code } }];

describe('a trusted document', () => {
  test.each<[string, object]>([
    ['its id in the manifest', { documentId: 'd1d1d1d1' }],
    ['the hash of its text', { documentId: `sha256:${sha256(FIRST)}` }],
    ['the hash without its prefix', { documentId: sha256(FIRST) }],
    ["Apollo's extension", { extensions: { persistedQuery: { version: 1, sha256Hash: 'd1d1d1d1' } } }],
  ])('runs by %s, with variables', async (_name, params) => {
    await start();
    const { data, errors } = await ask({ ...params, variables: { limit: 2 } });
    expect(errors).toBeUndefined();
    expect(data).toEqual({ pets: [{ id: '1' }, { id: '2' }] });
  });

  test('runs by a GET, unless it is a mutation', async () => {
    await start();
    const headers = { authorization: 'Bearer demo-free' };
    const get = (query: string) => fetch(`${gateway.endpoint}?${query}`, { headers });
    expect(await (await get(`documentId=sha256:${sha256(FIRST)}&variables={"limit":3}`)).json()).toMatchObject({
      data: { pets: [{}, {}, {}] },
    });
    expect((await get(`documentId=${sha256(ADD)}`)).status).toBe(405);
    expect(gateway.sandbox.calls.map(({ method }) => method)).toEqual(['GET']);
  });

  test.each([{}, { trustedDocuments: undefined }])('that nobody knows is one error, with %j too', async (options) => {
    await start(options);
    for (const documentId of ['sha256:abc', 'toString', '__proto__', '']) {
      expect((await ask({ documentId })).errors).toEqual(refused('PERSISTED_DOCUMENT_NOT_FOUND'));
    }
  });

  test('is not asked for beside another one, nor by what is no text', async () => {
    await start();
    for (const params of [{ query: '{ __typename }', documentId: 'd1d1d1d1' }, { documentId: 4 }, { documentId: {} }]) {
      expect(await ask(params)).toMatchObject({ errors: refused('BAD_USER_INPUT') });
    }
  });
});

describe('where only trusted documents run', () => {
  test('others do not, in a list and by GET neither, and nothing is called', async () => {
    await start({ requireTrustedDocuments: true, maxBatch: 5 });
    expect((await ask({ query: '{ pets { id } }' })).errors).toEqual(refused('PERSISTED_DOCUMENT_REQUIRED'));
    expect(await ask([{ query: '{ pets { id } }' }, { query: `${FIRST} ` }])).toMatchObject({
      0: { errors: refused('PERSISTED_DOCUMENT_REQUIRED') },
      1: { errors: refused('PERSISTED_DOCUMENT_REQUIRED') },
    });
    const get = await fetch(`${gateway.endpoint}?query={__typename}`, {
      headers: { authorization: 'Bearer demo-free' },
    });
    expect(await get.json()).toMatchObject({ errors: refused('PERSISTED_DOCUMENT_REQUIRED') });
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test('those run by their ids and by their texts, under the limits of all', async () => {
    await start({ requireTrustedDocuments: true, maxDepth: 2 });
    expect((await ask({ documentId: 'd1d1d1d1' })).errors).toBeUndefined();
    expect((await ask({ query: FIRST })).errors).toBeUndefined();
    expect((await ask({ documentId: sha256(ADD) })).errors).toMatchObject([{ extensions: { code: 'LIMIT_EXCEEDED' } }]);
  });

  test('whoever embeds petql runs any', async () => {
    await start({ requireTrustedDocuments: true });
    const { errors } = await gateway.gateway.execute({ document: '{ pets { name } }', apiKey: 'demo-free' });
    expect(errors).toBeUndefined();
  });
});

describe('a manifest', () => {
  const create =
    (trustedDocuments: unknown, more: object = {}) =>
    () =>
      createGateway({ petApiUrl: 'http://127.0.0.1:9/v1', trustedDocuments, ...more } as GatewayOptions);

  test("is Apollo's too", async () => {
    const operations = [{ id: 'one', name: 'First', type: 'query', body: FIRST }];
    await start({ trustedDocuments: { format: 'apollo-persisted-query-manifest', version: 1, operations } });
    expect((await ask({ documentId: 'one' })).errors).toBeUndefined();
  });

  test.each<[string, unknown, string]>([
    ['a list', [FIRST], 'trustedDocuments: expected an object of documents by their ids'],
    ['a text that is none', { a: 4 }, 'trustedDocuments: the document "a": expected a text'],
    ['what is no GraphQL', { a: '{' }, 'trustedDocuments: the document "a": Syntax Error'],
    [
      'a document of another schema',
      { a: '{ cats { id } }' },
      'trustedDocuments: the document "a": Cannot query field',
    ],
    [
      'a hash of another text',
      { 'sha256:00': FIRST },
      'trustedDocuments: the document "sha256:00": its text has another hash',
    ],
  ])('with %s keeps petql from starting', async (_name, manifest, problem) => {
    await start();
    expect(create(manifest)).toThrow(TypeError);
    expect(create(manifest)).toThrow(problem);
  });

  test('is required where only its documents run', async () => {
    await start();
    expect(create(undefined, { requireTrustedDocuments: true })).toThrow('requireTrustedDocuments: expected');
  });

  test('is a file for the program, which says what is wrong with it', async () => {
    await start();
    const folder = await mkdtemp(join(tmpdir(), 'petql-documents-'));
    try {
      const file = join(folder, 'manifest.json');
      await writeFile(file, JSON.stringify(MANIFEST));
      const flags = ['--trusted-documents', file, '--require-trusted-documents'];
      const petql = await startPetql(['--port', '0', ...flags]);
      const answer = await fetch(petql.address, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
        body: JSON.stringify({ documentId: 'd1d1d1d1' }),
      });
      petql.kill('SIGKILL');
      expect(await answer.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });

      await writeFile(file, '{ "a": "{ cats }" }');
      const bad = await runPetql(['--port', '0', ...flags]);
      expect([bad.code, bad.stderr]).toEqual([
        1,
        expect.stringMatching(/--trusted-documents .*"a": Cannot query field/),
      ]);
      const alone = await runPetql(['--require-trusted-documents']);
      expect([alone.code, alone.stderr]).toEqual([
        1,
        expect.stringContaining('--trusted-documents (TRUSTED_DOCUMENTS)'),
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
