import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { listen } from '../../src/server/listener.ts';
import type { Listener } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';

interface Side {
  readonly sandbox: Sandbox;
  readonly gateway: Gateway;
  readonly listener: Listener;
}

/** The same gateway twice: one may answer by itself what it understands, the other hands everything to Yoga. */
let both: Side;
let yogaAlone: Side;

beforeAll(async () => {
  both = await startSide(({ handle }) => handle);
  yogaAlone = await startSide(({ fetch }) => createNodeHandler(fetch));
});
afterAll(async () => {
  for (const { listener, gateway, sandbox } of [both, yogaAlone]) {
    await listener.stop(0);
    await gateway.close();
    await sandbox.close();
  }
});

const LIST = 'query ($limit: Int = 2) { pets(limit: $limit) { id name status } }';
const TWO = 'query A { pets(limit: 1) { id } } query B { pet(id: "2") { name } }';

/** What is sent: a body, and how. */
interface Sent {
  readonly body?: Buffer | string | object;
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly method?: string;
  readonly path?: string;
}

const BODIES: Record<string, Sent['body']> = {
  'a list': { query: LIST },
  'a list again, from memory': { query: LIST, variables: { limit: 3 } },
  'variables of null': { query: LIST, variables: null },
  'a limit out of bounds': { query: LIST, variables: { limit: 101 } },
  'a variable of another type': { query: LIST, variables: { limit: 'x' } },
  'a number that is not exact':
    '{"query":"query ($id: ID!) { pet(id: $id) { id } }","variables":{"id":9007199254740993}}',
  'variables that are a list': { query: LIST, variables: [1] },
  'a variable that nobody declared': { query: LIST, variables: { other: 1 } },
  'ids of all kinds': { query: '{ petsById(ids: ["1", "404404", "3"]) { id name categoryId status __typename } }' },
  'a wrong id beside a good one': { query: '{ wrong: pet(id: "x") { id } good: pet(id: "1") { id } }' },
  'a wrong id alone': { query: '{ pet(id: "x") { id } }' },
  'the plan': { query: '{ rateLimit { plan queued closedUntil windows { window limit used } } }' },
  'the name of a type': { query: '{ __typename }' },
  introspection: { query: '{ __schema { queryType { name } } pets(limit: 1) { id } }' },
  'fragments and conditions': {
    query:
      'query ($no: Boolean!) { pets(limit: 1) { ...f name @skip(if: $no) } } fragment f on Pet { id ... @include(if: $no) { status } }',
    variables: { no: true },
  },
  'one of two operations': { query: TWO, operationName: 'B' },
  'none of two operations': { query: TWO },
  'an operation that is not there': { query: TWO, operationName: 'C' },
  'an operation name of null': { query: LIST, operationName: null },
  'an empty operation name': { query: LIST, operationName: '' },
  'an operation name that is a number': { query: LIST, operationName: 1 },
  'a document that is not GraphQL': { query: '{ pets {' },
  'a document that does not fit the schema': { query: '{ dogs { id } }' },
  'a document past a limit': {
    query: `{ ${Array.from({ length: 201 }, (_, index) => `a${index}: pet(id: "1") { id }`).join(' ')} }`,
  },
  'a document with too many tokens': { query: `{ ${'pets { id } '.repeat(2_000)} }` },
  'an empty document': { query: '' },
  'no document': {},
  'a document that is a number': { query: 1 },
  'a parameter that nobody knows': { query: LIST, other: 1 },
  'a parameter that nobody knows, of null': { query: LIST, other: null },
  extensions: { query: LIST, extensions: { clientLibrary: { name: 'a client' } } },
  'extensions that ask for something': { query: LIST, extensions: { persistedQuery: { version: 1 } } },
  'extensions that are a text': { query: LIST, extensions: 'x' },
  'a batch': [{ query: LIST }],
  'no JSON': '{"query":',
  'JSON of null': 'null',
  'JSON of a text': '"x"',
  'a byte order mark': `\ufeff${JSON.stringify({ query: LIST })}`,
  'bytes that are no UTF-8': Buffer.from([
    ...Buffer.from('{"query":"{ pets(limit: 1) { id } } #'),
    0xff,
    ...Buffer.from('"}'),
  ]),
  'a prototype': '{"__proto__":{"query":"{ __typename }"}}',
  'variables with a prototype': `{"query":${JSON.stringify(LIST)},"variables":{"__proto__":{"limit":1}}}`,
  'no body': '',
  'a body past a limit': { query: `{ __typename } #${'x'.repeat(300_000)}` },
  'a subscription': { query: 'subscription { pets { id } }' },
  'a mutation that is refused': {
    query: 'mutation { createPet(input: { name: "", categoryId: "x" }) { pet { id } } }',
  },
};

const HEADERS: Record<string, Sent> = {
  'no key': { headers: { authorization: undefined } },
  'a malformed key': { headers: { authorization: 'Basic x' } },
  'two keys': { headers: { authorization: ['Bearer demo-free', 'Bearer demo-pro'] } },
  'a key that nobody knows': { headers: { authorization: 'Bearer nobody' } },
  'no content type': { headers: { 'content-type': undefined } },
  'a content type of a form': { headers: { 'content-type': 'text/plain' } },
  'a content type with a character set': { headers: { 'content-type': 'application/json; charset=utf-8' } },
  'a content type of another character set': { headers: { 'content-type': 'application/json; charset=latin1' } },
  'a content type with two values': { headers: { 'content-type': ['application/json', 'text/plain'] } },
  'no Cache-Control to use': { headers: { 'cache-control': 'nonsense' } },
  'Cache-Control: max-age=60': { headers: { 'cache-control': 'max-age=60' } },
  'Prefer: wait=1': { headers: { prefer: 'wait=1' } },
  'an origin': { headers: { origin: 'https://pets.example' } },
  'the method PUT': { method: 'PUT' },
  'the method GET with a body': { method: 'GET' },
  'a preflight': {
    method: 'OPTIONS',
    headers: { origin: 'https://pets.example', 'access-control-request-method': 'POST' },
  },
  'another path': { path: '/other' },
  'a path with a query': { path: '/graphql?query={__typename}' },
  'a path with a slash': { path: '/graphql/' },
};

const ACCEPTS = [
  undefined,
  '',
  '*/*',
  'application/*',
  'application/json',
  'Application/JSON',
  'application/graphql-response+json',
  'application/graphql-response+json, application/json;q=0.9',
  'application/json;q=0.1, application/graphql-response+json',
  'application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed',
  'text/event-stream, application/json',
  'text/html, */*;q=0.1',
  'text/html',
  '*/json, application/graphql-response+json',
  'application/json; charset=utf-8',
  'application/json; charset=latin1',
  'application/json; charset=latin1, application/graphql-response+json',
];

describe('Yoga alone and the way past it answer the same', () => {
  test.each(Object.entries(BODIES))('to %s', async (_name, body = '') => {
    const answers = await answersTo({ body }, { body, headers: { accept: 'application/graphql-response+json' } });
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
  test.each(Object.entries(HEADERS))('to %s', async (_name, sent) => {
    const answers = await answersTo({ body: { query: LIST }, ...sent }, { body: { query: '{ __typename }' }, ...sent });
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
  test.each(ACCEPTS)('to whoever accepts %s', async (accept) => {
    const headers = { accept };
    const wrong = { query: '{ pet(id: "x") { id } }' };
    const answers = await answersTo({ body: { query: LIST }, headers }, { body: wrong, headers });
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
  test('to only-if-cached with nothing to serve, alone and beside what is known', async () => {
    const headers = { 'cache-control': 'only-if-cached', authorization: 'Bearer demo-business' };
    const body = { query: '{ rateLimit { plan } pets { id } }' };
    const answers = await answersTo({ body: { query: LIST }, headers }, { body, headers });
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
  test('when the service fails', async () => {
    for (const { sandbox } of [both, yogaAlone]) sandbox.setFault(() => ({ status: 500 }));
    const body = { query: '{ one: pet(id: "5") { id } all: pets { id } __typename }' };
    const answers = await answersTo({ body, headers: { authorization: 'Bearer demo-pro' } });
    for (const { sandbox } of [both, yogaAlone]) sandbox.setFault(() => undefined);
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
});

test.each([
  { query: LIST, variables: { limit: 1 } },
  { query: TWO, operationName: 'A' },
  { query: '{ petsById(ids: ["1", "2"]) { id } rateLimit { plan } wrong: pet(id: "x") { id } }' },
])('%j makes no Request on its way past Yoga', async (body) => {
  const made = vi.spyOn(globalThis, 'Request');
  await send(both.listener.origin, { body });
  expect(made).not.toHaveBeenCalled();
  await send(both.listener.origin, { body: { query: '{ __schema { queryType { name } } }' } });
  expect(made).toHaveBeenCalled();
  made.mockRestore();
});

async function startSide(handlerOf: (gateway: Gateway) => Gateway['handle']): Promise<Side> {
  const sandbox = await startSandbox();
  const gateway = createGateway({ petApiUrl: sandbox.url, freshUpstream: true, maxAgeMs: 600_000 });
  return { sandbox, gateway, listener: await listen(handlerOf(gateway), { host: '127.0.0.1', port: 0 }) };
}

/** One request after the other, to either side. */
async function answersTo(...all: readonly Sent[]) {
  const [pastYoga, ofYoga]: [object[], object[]] = [[], []];
  for (const sent of all) {
    pastYoga.push(await send(both.listener.origin, sent));
    ofYoga.push(await send(yogaAlone.listener.origin, sent));
  }
  return { pastYoga, ofYoga };
}

/** A raw exchange: `fetch` would not send some of this, and would tidy up the rest. */
async function send(origin: string, { body = '', headers, method = 'POST', path = '/graphql' }: Sent): Promise<object> {
  const bytes =
    Buffer.isBuffer(body) || typeof body === 'string' ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  const request = httpRequest(origin + path, { method });
  const all = {
    'content-type': 'application/json',
    authorization: 'Bearer demo-free',
    'content-length': String(bytes.length),
    ...headers,
  };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) request.setHeader(name, value);
  request.end(bytes);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const text = Buffer.concat((await response.toArray()) as Buffer[]).toString();
  return { status: response.statusCode, headers: steadyHeaders(response.headersDistinct), body: steady(text) };
}

/** Without what the time decides: what it is, and how long some text of it is. */
function steadyHeaders({ date: _date, age, ...headers }: Record<string, string[] | undefined>) {
  return {
    ...headers,
    age: age !== undefined,
    'x-ratelimit-reset': 'x-ratelimit-reset' in headers,
    'content-length': undefined,
  };
}

function steady(text: string): string {
  return text
    .replaceAll(/"(oldestAgeMs|retryAfterMs)":\d+/g, '"$1":0')
    .replaceAll(/"retryAt":"[^"]+"/g, '"retryAt":""')
    .replaceAll(/in \d+ s\b/g, 'in 0 s');
}
