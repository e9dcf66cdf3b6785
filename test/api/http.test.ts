import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '../support/serve.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { exchange, wireRequest } from '../support/wire.ts';
import type { WireRequest } from '../support/wire.ts';

const BODY = '{"query":"{ __typename }"}';
const READ = '{"query":"{ pets(limit: 1) { id } }"}';
const ANSWERED = /^HTTP\/1\.1 200 .*"__typename":"Query"/s;
const KEY = 'Authorization: Bearer demo-free';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ gateway: { corsOrigins: ['https://a.example'] } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Rows of graphql-http's audit that want HTTP 400 where GraphQL over HTTP has 422 since August 2026. */
const OLDER_THAN_422 = new Set(['423L', '86EE']);

describe('the GraphQL over HTTP audit', () => {
  for (const { id, name, fn } of serverAudits({ url: () => gateway.endpoint })) {
    const isOlder = OLDER_THAN_422.has(id);
    test(isOlder ? `${id} wants 400 and gets 422: ${name}` : `${id} ${name}`, async () => {
      const result = await fn();
      const { reason, status } =
        result.status === 'ok' ? { reason: 'ok' } : { reason: result.reason, status: result.response.status };
      const older = { reason: 'Response status code is not 400', status: 422 };
      expect({ reason, status }).toEqual(isOlder ? older : { reason: 'ok' });
    });
  }
});

interface Post extends WireRequest {
  readonly endpoint?: string;
}

function post({ endpoint = gateway.endpoint, body = BODY, ...request }: Post = {}): Promise<string> {
  return exchange(wireRequest({ ...request, body }), endpoint);
}

/** The same without a body. */
function get(target: string, request: WireRequest = {}): Promise<string> {
  return exchange(wireRequest({ method: 'GET', target, ...request }), gateway.endpoint);
}

test.each([
  ['malformed JSON', '{"query":'],
  ['an empty body', ''],
  ['null', 'null'],
  ['a number', '1'],
  ['an empty batch', '[]'],
  ['a batch', `[${READ}]`],
  ['no query', '{}'],
  ['bytes that are not UTF-8', Buffer.from('{"query":"{ pet(id: \\"1\\") { \xe4: id } }"}', 'latin1')],
])('rejects %s as no GraphQL request, over HTTP and in process', async (_name, body) => {
  const before = gateway.petApi.log.length;
  const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
  for (const send of [fetch, gateway.gateway.fetch]) {
    const response = await send(new Request(gateway.endpoint, { method: 'POST', headers, body }));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  }
  expect(gateway.petApi.log).toHaveLength(before);
});

test.each([
  ['an unknown one', '"foo":1'],
  ['a batch', '"0":{"query":"{ none }"}'],
  ['a status and headers', '"status":200,"headers":{"a":1},"body":null'],
])('ignores members of a request that GraphQL over HTTP does not name: %s', async (_name, members) => {
  expect(await post({ body: `{"query":"{ __typename }",${members}}` })).toMatch(ANSWERED);
});

test.each([
  'Application/JSON',
  'application/json;charset="utf-8"',
  'application/json; charset=utf8',
  'application/json ; charset=utf-8',
  'application/json\t;charset=UTF-8',
  "application/json; charset='utf-8'",
  'application/json; charset=',
  'application/json; charset=us-ascii',
  'application/graphql+json;version=1;CHARSET=ISO-8859-1',
  'application/json; profile="a, b; c"; charset=utf-8',
  'application/GraphQL+json',
])('reads a body of the content type %s', async (type) => {
  expect(await post({ headers: [`Content-Type: ${type}`] })).toMatch(ANSWERED);
});

test.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain; charset=utf-8',
  // Browsers take it for text/plain, and ask nobody before they send it to another origin.
  'text/plain;,application/json',
  'application/json, text/plain',
  '',
])('rejects a body of the content type "%s" with HTTP 415', async (type) => {
  const response = await post({ headers: [`Content-Type: ${type}`] });
  expect(response).toMatch(/^HTTP\/1\.1 415 .*"code":"BAD_USER_INPUT"/s);
});

test('creates no pet from a body that is not UTF-8, also behind a body parser that leaves bytes', async () => {
  await using framework = await serve((request, response) => {
    void buffer(request).then((body) => gateway.gateway.handle(Object.assign(request, { body }), response));
  });
  const create = '{"query":"mutation { createPet(input: { name: \\"Zo\xeb\\", categoryId: 3 }) { pet { id } } }"}';
  for (const endpoint of [gateway.endpoint, framework.origin]) {
    const before = gateway.petApi.log.length;
    const response = await post({ headers: [KEY], body: Buffer.from(create, 'latin1'), endpoint });
    expect(response).toMatch(/^HTTP\/1\.1 400 .*UTF-8.*"code":"BAD_USER_INPUT"/s);
    expect(gateway.petApi.log).toHaveLength(before);
    expect(await post({ headers: [KEY], body: create, endpoint })).toMatch(/"pet":\{"id":/);
  }
});

test.each([
  ['gzip', gzipSync(BODY)],
  ['gzip', BODY],
  ['br', brotliCompressSync(BODY)],
  ['identity, gzip', gzipSync(BODY)],
])('rejects a body with the Content-Encoding %s, and says what it takes', async (encoding, body) => {
  const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
  const response = await post({ headers: [`Content-Encoding: ${encoding}`], body });
  expect(response).toMatch(/^HTTP\/1\.1 415 .*without a Content-Encoding.*"code":"BAD_USER_INPUT"/s);
  expect(response).toMatch(/^accept-encoding: identity\r$/im);
  const inProcess = await gateway.gateway.fetch(new Request(gateway.endpoint, { method: 'POST', headers, body }));
  expect([inProcess.status, inProcess.headers.get('accept-encoding')]).toEqual([415, 'identity']);
});

test.each(['Identity', 'identity, identity', 'UTF-8', ''])(
  'reads a body with the Content-Encoding "%s"',
  async (encoding) => {
    expect(await post({ headers: [`Content-Encoding: ${encoding}`] })).toMatch(ANSWERED);
  },
);

test('says of a body that is no JSON no more than that', async () => {
  expect(await post({ body: '{bad' })).toMatch(/^HTTP\/1\.1 400 .*"message":"The body is not valid JSON\."/s);
});

test('reads a body that a framework has decoded', async () => {
  await using framework = await serve((request, response) => {
    request.resume().once('end', () => {
      gateway.gateway.handle(Object.assign(request, { body: JSON.parse(BODY) }), response);
    });
  });
  const endpoint = framework.origin;
  expect(await post({ headers: ['Content-Encoding: gzip'], body: gzipSync(BODY), endpoint })).toMatch(ANSWERED);
});

test.each([
  'text/html',
  'text/event-stream',
  'multipart/mixed',
  'image/*',
  'text/plain;a="application/json, application/json"',
  'x',
  'application/json;q=0',
  'text/html, application/* ; q = 0.000, */*;Q=0',
])('rejects Accept: %s with HTTP 406 before any call', async (accept) => {
  const before = gateway.petApi.log.length;
  const response = await post({ headers: [KEY, `Accept: ${accept}`], body: READ });
  expect(response).toMatch(/^HTTP\/1\.1 406 .*"code":"BAD_USER_INPUT"/s);
  expect(response).toMatch(/^cache-control: private, no-store/im);
  expect(gateway.petApi.log).toHaveLength(before);
});

test.each([
  '*/*',
  'application/*',
  'text/html, */*;q=0.1',
  'text/event-stream,application/json',
  'text/html;q=0, application/json;q=0.001',
  'application/json; charset=utf8',
  "application/json;charset='utf-8'",
  'application/json; charset=ISO-8859-1',
  'text/plain, application/json;charset=utf8',
  'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2',
  '*',
  'application/graphql+json',
  'text/x;a="b, c;q=0";q=0.1, application/json',
  '',
])('answers Accept: %s with JSON, in one piece', async (accept) => {
  const response = await post({ headers: [KEY, `Accept: ${accept}`], body: READ });
  expect(response).toMatch(/^HTTP\/1\.1 200 .*\ncontent-type: application\/json.*"data"/is);
  expect(response).not.toMatch(/^transfer-encoding/im);
});

const JSON_TYPE = 'application/json';
const GRAPHQL_TYPE = 'application/graphql-response+json';

test.each([
  ['*/*', JSON_TYPE],
  ['application/*', JSON_TYPE],
  [GRAPHQL_TYPE, GRAPHQL_TYPE],
  [`${GRAPHQL_TYPE}, ${JSON_TYPE}`, GRAPHQL_TYPE],
  [`${JSON_TYPE}, ${GRAPHQL_TYPE}`, JSON_TYPE],
  [`${JSON_TYPE};q=0.1, ${GRAPHQL_TYPE}`, GRAPHQL_TYPE],
  [`${GRAPHQL_TYPE};q=0.8,${JSON_TYPE};q=0.9`, JSON_TYPE],
  [`${JSON_TYPE};q=0, */*`, GRAPHQL_TYPE],
  [`*/*;q=0.1, ${GRAPHQL_TYPE};q=0.2`, GRAPHQL_TYPE],
  [`application/*, ${JSON_TYPE};charset=utf-8;q=0.5`, GRAPHQL_TYPE],
  [`${GRAPHQL_TYPE};q=x, ${JSON_TYPE};Q=0.001`, JSON_TYPE],
])('answers Accept: %s with %s, from the cache too', async (accept, type) => {
  for (let asked = 0; asked < 2; asked += 1) {
    const response = await post({ headers: [KEY, `Accept: ${accept}`], body: READ });
    expect(/^content-type: (.*)\r$/im.exec(response)?.[1]).toBe(`${type}; charset=utf-8`);
  }
});

test.each<[string, string[]]>([
  ['an empty one behind it', [KEY, 'Authorization:']],
  ['an empty one before it', ['Authorization: ', KEY]],
  ['two keys', [KEY, 'Authorization: Bearer demo-pro']],
  ['the same twice and another', [KEY, KEY, 'Authorization: Bearer demo-pro']],
  ['two halves', ['Authorization: Bearer', 'Authorization: demo-free']],
  ['two keys in one', ['Authorization: Bearer demo-free, Bearer demo-pro']],
  ['another scheme', ['Authorization: Basic ZGVtbzpmcmVl']],
  ['no key behind Bearer', ['Authorization: Bearer']],
  ['a tab', ['Authorization: Bearer demo-free\tdemo-pro']],
  [
    'many headers between two',
    [KEY, ...Array.from({ length: 1_000 }, (_, index) => `X-${index}:`), 'Authorization: x'],
  ],
])('rejects malformed Authorization: %s', async (_name, headers) => {
  const before = gateway.petApi.log.length;
  for (const more of [[], ['petql-dry-run: 1']]) {
    const response = await post({ headers: [...headers, ...more], body: READ });
    expect(response).toMatch(/^HTTP\/1\.1 (?:401 .*"code":"UNAUTHENTICATED"|431 )/s);
  }
  expect(gateway.petApi.log).toHaveLength(before);
});

test.each<[string, string[]]>([
  ['its key', [KEY]],
  ['its key and its type', [KEY, 'Content-Type: application/json']],
  ['a dry run of 0', [KEY, 'petql-dry-run: 0']],
])('takes %s that came twice for one', async (_name, headers) => {
  const response = await post({ headers: headers.flatMap((line) => [line, line]), body: READ });
  expect(response).toMatch(/^HTTP\/1\.1 200 .*"data":\{"pets":\[\{"id":"1"\}\]\}/s);
});

test('shows the id of a request that came twice', async () => {
  const id = 'X-Request-Id: my-id';
  expect(await post({ headers: [id, id] })).toMatch(/^x-request-id: my-id\r$/im);
});

test('other methods, broken GETs and mutations by GET get their errors', async () => {
  const before = gateway.petApi.log.length;
  const put = await fetch(gateway.endpoint, { method: 'PUT', body: '{}' });
  expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
  const headers = { authorization: 'Bearer demo-free' };
  const ask = (query: string) => fetch(`${gateway.endpoint}?${query}`, { headers });
  expect((await ask('query={__typename}&variables={x')).status).toBe(400);
  const mutation = await ask('query=mutation{createPet(input:{name:"x",categoryId:1}){pet{id}}}');
  expect(mutation.status).toBe(405);
  expect(await (await ask('query={pets(limit:1){id}}')).json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
  expect(gateway.petApi.log.slice(before).filter(({ method }) => method === 'POST')).toEqual([]);
});

test('a request target may be a whole address (RFC 9112, section 3.2.2)', async () => {
  for (const target of ['http://petql/graphql', 'HTTPS://petql.example:8443/graphql'])
    expect(await post({ target })).toMatch(ANSWERED);
  expect(await get('http://petql/graphql?query={__typename}')).toMatch(ANSWERED);
  expect(await get('http://petql', { headers: ['Accept: text/html'] })).toMatch(/^HTTP\/1\.1 302 /);
  expect(await get('ftp://petql/graphql')).toMatch(/^HTTP\/1\.1 404 /);
});

test('headers may be 150, and not more than 16 KiB', async () => {
  expect(await post({ headers: Array.from({ length: 146 }, (_, index) => `X-${index}:`) })).toMatch(ANSWERED);
  expect(await post({ headers: [`X-Long: ${'x'.repeat(16_384)}`] })).toMatch(/^HTTP\/1\.1 431 /);
});

test('Expect: 100-continue is answered', async () => {
  expect(await post({ headers: ['Expect: 100-continue'] })).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
});

test('a response to a preflight has no length of a body (RFC 9110, section 8.6)', async () => {
  const headers = ['Origin: https://a.example', 'Access-Control-Request-Method: POST'];
  const response = await get('/graphql', { method: 'OPTIONS', headers });
  expect(response).toMatch(/^HTTP\/1\.1 204 .*\r\n\r\n$/s);
  expect(response).not.toMatch(/^content-length|^transfer-encoding/im);
});

test.each([1, 100, 30_000])('a body may come in chunks of %i bytes', async (bytes) => {
  const pieces = BODY.padEnd(bytes === 1 ? 5_000 : 60_000).match(new RegExp(`.{1,${bytes}}`, 'gs')) ?? [];
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('');
  const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
  const head = wireRequest({ headers });
  expect(await exchange(`${head.toString()}${chunks}0\r\n\r\n`, gateway.endpoint)).toMatch(ANSWERED);
});

describe('the status', () => {
  const QUERY = { query: '{ __typename }' };
  const idsFrom = (first: number) => Array.from({ length: 100 }, (_, index) => `"${first + index}"`);
  const lists = [1_000, 2_000, 3_000].map((first) => `p${first}: petsById(ids: [${idsFrom(first).join(' ')}]) { id }`);
  const THREE_HUNDRED_IDS = `{ ${lists.join(' ')} }`;
  const ID = 'query ($id: ID!) { pet(id: $id) { id } }';

  /** By `application/graphql-response+json`, and by `application/json`, which is as without an Accept. */
  test.each<[string, number, number, string]>([
    ['data', 200, 200, BODY],
    ['data beside errors', 294, 200, JSON.stringify({ query: '{ __typename pets(limit: 0) { id } }' })],
    ['null as data', 294, 200, JSON.stringify({ query: '{ pets(limit: 0) { id } }' })],
    ['half a JSON', 400, 400, '{"query":'],
    ['an empty body', 400, 400, ''],
    ['a list', 422, 400, `[${BODY}]`],
    ['a text', 422, 400, '"{ __typename }"'],
    ['null as request', 422, 400, 'null'],
    ['no query', 422, 400, '{}'],
    ['a query that is a number', 422, 400, '{"query":1}'],
    ['a name that is a list', 422, 400, JSON.stringify({ ...QUERY, operationName: ['a'] })],
    ['variables that are a list', 422, 400, JSON.stringify({ ...QUERY, variables: [7] })],
    ['variables that are a text', 422, 400, JSON.stringify({ ...QUERY, variables: '{}' })],
    ['extensions that are a number', 422, 400, JSON.stringify({ ...QUERY, extensions: 1 })],
    ['a hash that is a number', 422, 400, '{"extensions":{"persistedQuery":{"sha256Hash":1}}}'],
    ['a document and an id', 422, 400, JSON.stringify({ ...QUERY, documentId: 'a' })],
    ['half a document', 400, 200, '{"query":"{"}'],
    ['an unknown field', 422, 200, '{"query":"{ cats }"}'],
    ['an unknown operation', 422, 200, JSON.stringify({ ...QUERY, operationName: 'Nobody' })],
    ['one of two operations', 422, 200, JSON.stringify({ query: 'query A { __typename } query B { __typename }' })],
    ['an unknown document', 422, 200, '{"documentId":"sha256:00"}'],
    ['a variable of another type', 422, 200, JSON.stringify({ query: ID, variables: { id: {} } })],
    ['a variable that is not there', 422, 200, JSON.stringify({ query: ID })],
    ['an id that JSON rounds', 422, 200, JSON.stringify({ query: ID, variables: { id: 2 ** 60 } })],
    ['too many levels', 422, 200, JSON.stringify({ query: `${'{ a '.repeat(21)}${'}'.repeat(21)}` })],
    ['too many calls', 422, 200, JSON.stringify({ query: THREE_HUNDRED_IDS })],
    ['no key', 401, 401, READ],
  ])('of %s is %i, and %i for clients of application/json alone', async (_name, status, jsonStatus, body) => {
    for (const [accept, expected] of [
      [GRAPHQL_TYPE, status],
      [JSON_TYPE, jsonStatus],
      ['', jsonStatus],
    ] as const) {
      const headers = body === READ ? [] : [KEY];
      const response = await post({ headers: [...headers, ...(accept ? [`Accept: ${accept}`] : [])], body });
      expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${expected} `));
      expect(response).toContain(`content-type: ${accept || JSON_TYPE}; charset=utf-8`);
    }
  });

  test('is the same by GET, by fetch and by HEAD', async () => {
    const headers = { accept: GRAPHQL_TYPE, authorization: 'Bearer demo-free' };
    const statuses = ['query={cats}', 'query={', 'query={__typename}&variables={x', 'query={pets(limit:0){id}}', 'x=1'];
    for (const [index, status] of [422, 400, 400, 294, 422].entries()) {
      const url = `${gateway.endpoint}?${statuses[index]}`;
      expect((await fetch(url, { headers })).status).toBe(status);
      expect((await fetch(url, { headers, method: 'HEAD' })).status).toBe(status);
      expect((await gateway.gateway.fetch(new Request(url, { headers }))).status).toBe(status);
    }
  });
});
