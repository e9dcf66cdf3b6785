import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Clock } from '../../src/clock.ts';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { GatewayOptions } from '../../src/gateway-options.ts';
import { LIMITS } from '../../src/limits.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { listen } from '../../src/server/listener.ts';
import type { Listener } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import type { LogLine } from '../support/memory-log.ts';

interface Side {
  readonly sandbox: Sandbox;
  readonly gateway: Gateway;
  readonly listener: Listener;
  readonly adminListener: Listener;
  readonly logLines: readonly LogLine[];
}

/** The same gateway twice: one may answer by itself what it understands, the other hands everything to Yoga. */
interface Sides {
  readonly both: Side;
  readonly yogaAlone: Side;
  [Symbol.asyncDispose](): Promise<void>;
}

const PAGE = 'https://pets.example';

/** A minute begins with the tests: one that ended between two sides would tell them apart. */
const intoMinuteMs = systemClock.now() % 60_000;
const clock: Clock = { now: () => systemClock.now() - intoMinuteMs, elapsed: systemClock.elapsed };

let sides: Sides;

beforeAll(async () => {
  sides = await startSides({ corsOrigins: [PAGE] });
});
afterAll(() => sides[Symbol.asyncDispose]());

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
  'more values of variables than there may be': { query: LIST, variables: { other: Array(5_001).fill(0) } },
  'a body of a hundred kilobytes': { query: `{ pets(limit: 2) { id } } #${'x'.repeat(100_000)}` },
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
  'a content type in capitals': { headers: { 'content-type': 'Application/JSON' } },
  'a content type with white space': { headers: { 'content-type': 'application/json ; charset=utf-8' } },
  'a content type of another character set': { headers: { 'content-type': 'application/json; charset=latin1' } },
  'a content type with two values': { headers: { 'content-type': ['application/json', 'text/plain'] } },
  'no Cache-Control to use': { headers: { 'cache-control': 'nonsense' } },
  'Cache-Control: max-age=60': { headers: { 'cache-control': 'max-age=60' } },
  'Prefer: wait=1': { headers: { prefer: 'wait=1' } },
  'a page that may ask': { headers: { origin: PAGE } },
  'a page that may not ask': { headers: { origin: 'https://other.example' } },
  'two pages': { headers: { origin: [PAGE, 'https://other.example'] } },
  'a dry run': { headers: { 'petql-dry-run': '1' } },
  'no dry run': { headers: { 'petql-dry-run': '0' } },
  'an id of its own': { headers: { 'x-request-id': 'mine' } },
  'a trace': { headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'c=d' } },
  'the method PUT': { method: 'PUT' },
  'the method GET with a body': { method: 'GET' },
  'a preflight': {
    method: 'OPTIONS',
    headers: { origin: PAGE, 'access-control-request-method': 'POST' },
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

/** What is the server's alone: what it is sent, and the options that make it so. */
const SERVERS: Record<string, { readonly options?: Partial<GatewayOptions>; readonly sent: Sent }> = {
  'a dry run': { sent: { headers: { 'petql-dry-run': '1' }, body: { query: LIST } } },
  'the id of a trusted document': {
    options: { trustedDocuments: { one: LIST } },
    sent: { body: { documentId: 'one', variables: { limit: 1 } } },
  },
  'a trusted document where no others run': {
    options: { trustedDocuments: { one: LIST }, requireTrustedDocuments: true },
    sent: { body: { query: LIST } },
  },
  'another document where only trusted ones run': {
    options: { trustedDocuments: { one: LIST }, requireTrustedDocuments: true },
    sent: { body: { query: '{ pets(limit: 2) { id } }' } },
  },
  'a list of operations': {
    options: { maxBatch: 2 },
    sent: { body: [{ query: LIST }, { query: TWO, operationName: 'A' }] },
  },
  'an operation that can cost more than it may': {
    options: { maxUpstreamCalls: 4 },
    sent: { body: { query: '{ petsById(ids: ["1", "2", "3", "4", "5", "6"]) { id } pets(status: SOLD) { id } }' } },
  },
  'an operation that could cost more with other variables': {
    options: { maxUpstreamCalls: 4 },
    sent: { body: { query: 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', variables: { ids: ['1'] } } },
  },
  'the schema where it is hidden': {
    options: { introspection: false },
    sent: { body: { query: '{ pets(limit: 1) { id } __type(name: "Pet") { name } }' } },
  },
  'a wrong name where the schema is hidden': {
    options: { introspection: false },
    sent: { body: { query: '{ pets { nam } }' } },
  },
  'a wrong value where the schema is hidden': {
    options: { introspection: false },
    sent: { body: { query: 'query ($s: PetStatus) { pets(status: $s) { id } }', variables: { s: 'SOL' } } },
  },
  'a body that is longer than it may be': {
    options: { maxBodyBytes: 1_024 },
    sent: { body: { query: `{ pets { id } } #${'x'.repeat(1_024)}` } },
  },
  'a document of more tokens than it may have': {
    options: { maxTokens: 5 },
    sent: { body: { query: '{ pets { id name } }' } },
  },
  'a document of more fields than it may have': {
    options: { maxFields: 2 },
    sent: { body: { query: '{ pets { id name } }' } },
  },
};

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
    const { both, yogaAlone } = sides;
    for (const { sandbox } of [both, yogaAlone]) sandbox.setFault(() => ({ status: 500 }));
    const body = { query: '{ one: pet(id: "5") { id } all: pets { id } __typename }' };
    const answers = await answersTo({ body, headers: { authorization: 'Bearer demo-pro' } });
    for (const { sandbox } of [both, yogaAlone]) sandbox.setFault(() => undefined);
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
  test('to whoever asks for more data than one answer may hold', async () => {
    const { both, yogaAlone } = sides;
    // No more than is read of the service, and shown once no more than may be.
    const animals = Array.from({ length: 100 }, (_, id) => ({ id, name: 'é"'.repeat(1_500), categoryId: 1 }));
    for (const { sandbox } of [both, yogaAlone]) sandbox.setFault(() => ({ body: JSON.stringify(animals) }));
    const headers = { authorization: 'Bearer demo-business', accept: 'application/graphql-response+json' };
    const lists = (count: number) =>
      `{ ${Array.from({ length: count }, (_, list) => `a${list}: pets(limit: 100) { name }`).join(' ')} }`;
    const names = `{ pets(limit: 100) { ${Array.from({ length: 30 }, (_, name) => `n${name}: name`).join(' ')} } }`;
    const answers = await answersTo(
      ...[lists(9), lists(10), lists(10), names].map((query) => ({ body: { query }, headers })),
      { body: { query: lists(10) } },
    );
    for (const { sandbox } of [both, yogaAlone]) sandbox.setFault(() => undefined);
    const shown = (all: object[]) =>
      all.map((one: any) => ({ ...one, body: `${one.body.length} ${one.body.slice(-500)}` }));
    expect(shown(answers.pastYoga)).toEqual(shown(answers.ofYoga));
    const [most, ...tooLong] = answers.pastYoga as { status: number; body: string }[];
    expect(most?.body).not.toContain('errors');
    const error = {
      message: expect.any(String),
      extensions: { code: 'LIMIT_EXCEEDED', limit: 'answer', most: 2 ** 22 },
    };
    for (const { status, body } of tooLong.slice(0, 3)) {
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject({ data: null, errors: [error], extensions: { petql: {} } });
    }
  });
  test('where the pages of any origin may ask', async () => {
    await using others = await startSides({ corsOrigins: ['*'] });
    const answers = await answersOf(others, [
      { body: { query: LIST }, headers: { origin: PAGE } },
      { body: { query: LIST } },
    ]);
    expect(answers.pastYoga).toEqual(answers.ofYoga);
  });
  test.each(Object.entries(SERVERS))('to %s, which goes past nothing', async (_name, { options, sent }) => {
    await using others = await startSides(options);
    // Whatever was learned from one with more rights is of no use to the next.
    const answers = await answersOf(others, [sent, sent]);
    expect(answers.pastYoga).toEqual(answers.ofYoga);
    expect(await makesRequest(others, sent)).toBe(true);
  });
});

test('both ways count and log every operation, once and alike, under the id that its answer has', async () => {
  await using others = await startSides();
  const stale = { 'cache-control': 'only-if-cached, max-age=0, max-stale' };
  const all: Sent[] = [
    { body: { query: LIST } },
    // From its third time on it is given its last answer.
    ...Array.from({ length: 4 }, () => ({ body: { query: LIST, variables: { limit: 1 } } })),
    { body: { query: LIST, variables: { limit: 'x' } } },
    { body: { query: TWO, operationName: 'B' } },
    { body: { query: '{ wrong: pet(id: "x") { id } pets(limit: 1) { id } }' } },
    { body: { query: '{ pets(limit: 1) { id } pet(id: "2") { id } }' }, headers: stale },
    { body: { query: '{ pets { id } }' }, headers: { 'cache-control': 'only-if-cached', authorization: 'Bearer new' } },
    { body: { query: LIST }, headers: { authorization: undefined } },
    { body: { query: '{ __schema { queryType { name } } }' } },
    { body: { query: '{ dogs }' } },
    { body: 'no JSON' },
  ];
  const counted = await Promise.all([others.both, others.yogaAlone].map((side) => countsOf(side, all)));
  const [pastYoga, ofYoga] = counted;
  expect(pastYoga).toEqual(ofYoga);
  expect(pastYoga?.operations).toHaveLength(all.length);
  expect(pastYoga?.operations.slice(0, 2)).toMatchObject([
    { outcome: 'OK', upstreamCalls: 1 },
    { outcome: 'OK', upstreamCalls: 0, servedWithoutCall: 1 },
  ]);
  expect(pastYoga?.metrics).toContain('petql_operations_total{type="query",outcome="OK"} 8');
  expect(pastYoga?.metrics).toContain('petql_stale_operations_total{reason="ONLY_IF_CACHED"} 1');
  expect(pastYoga?.saved).toEqual([expect.stringMatching(/^[1-9]/)]);
});

test.each([
  { query: LIST, variables: { limit: 1 } },
  { query: TWO, operationName: 'A' },
  { query: '{ petsById(ids: ["1", "2"]) { id } }' },
  { query: '{ rateLimit { plan } wrong: pet(id: "x") { id } }' },
])('%j makes no Request on its way past Yoga', async (body) => {
  expect(await makesRequest(sides, { body })).toBe(false);
  expect(await makesRequest(sides, { body: { query: '{ __schema { queryType { name } } }' } })).toBe(true);
});

test('what a page of another origin asks makes no Request either, and has an id', async () => {
  const sent = { body: { query: LIST }, headers: { origin: PAGE } };
  expect(await makesRequest(sides, sent)).toBe(false);
  const { headers } = await exchange(sides.both.listener.origin, sent);
  expect(headers['access-control-allow-origin']).toEqual([PAGE]);
  expect(headers['vary']).toEqual(['Authorization, Origin']);
  expect(headers['x-request-id']?.[0]).toMatch(UUID);
});

async function startSides(options: Partial<GatewayOptions> = {}): Promise<Sides> {
  const { maxBodyBytes = LIMITS.maxBodyBytes.fallback } = options;
  const both = await startSide(options, ({ handle }) => handle);
  const yogaAlone = await startSide(options, ({ fetch }) => createNodeHandler(fetch, maxBodyBytes));
  return {
    both,
    yogaAlone,
    async [Symbol.asyncDispose]() {
      for (const { listener, adminListener, gateway, sandbox } of [both, yogaAlone]) {
        await listener.stop(0);
        await adminListener.stop(0);
        await gateway.close();
        await sandbox.close();
      }
    },
  };
}

async function startSide(
  options: Partial<GatewayOptions>,
  handlerOf: (gateway: Gateway) => Gateway['handle'],
): Promise<Side> {
  const sandbox = await startSandbox({ clock });
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({
    petApiUrl: sandbox.url,
    clock,
    freshUpstream: true,
    maxAgeMs: 600_000,
    admin: true,
    log,
    ...options,
  });
  const anywhere = { host: '127.0.0.1', port: 0 };
  const listener = await listen(handlerOf(gateway), anywhere);
  const adminListener = await listen(gateway.admin as Gateway['handle'], anywhere);
  return { sandbox, gateway, listener, adminListener, logLines: lines };
}

/** Sends all of it, and gives what operators then see of it, but for the times. */
async function countsOf(side: Side, all: readonly Sent[]) {
  const ids: unknown[] = [];
  for (const sent of all) ids.push((await exchange(side.listener.origin, sent)).headers['x-request-id']?.[0]);
  const logged = side.logLines.filter(({ msg }) => msg === 'operation');
  expect(logged.map(({ id }) => id)).toEqual(ids);
  const operations = logged.map(({ operation, type, outcome, upstreamCalls, servedWithoutCall, staleReason }) => ({
    operation,
    type,
    outcome,
    upstreamCalls,
    servedWithoutCall,
    staleReason,
  }));
  const admin = side.adminListener.origin;
  const text = await (await fetch(`${admin}/metrics`)).text();
  const metrics = text.split('\n').filter((line) => /^petql_\w+_(?:total|count)\b/.test(line));
  const page = await (await fetch(`${admin}/budget`)).text();
  const saved = [...page.matchAll(/<td>(\d+)<\/td><\/tr>/g)].map(([, calls]) => calls);
  return { operations, metrics: metrics.toSorted(), saved };
}

/** Whether the way past Yoga was not taken. */
async function makesRequest({ both }: Sides, sent: Sent): Promise<boolean> {
  const made = vi.spyOn(globalThis, 'Request');
  await send(both.listener.origin, sent);
  const { length } = made.mock.calls;
  made.mockRestore();
  return length > 0;
}

function answersTo(...all: readonly Sent[]) {
  return answersOf(sides, all);
}

/** One request after the other, to either side. */
async function answersOf({ both, yogaAlone }: Sides, all: readonly Sent[]) {
  const [pastYoga, ofYoga]: [object[], object[]] = [[], []];
  for (const sent of all) {
    pastYoga.push(await send(both.listener.origin, sent));
    ofYoga.push(await send(yogaAlone.listener.origin, sent));
  }
  return { pastYoga, ofYoga };
}

async function send(origin: string, sent: Sent): Promise<object> {
  const { status, headers, text } = await exchange(origin, sent);
  return { status, headers: steadyHeaders(headers), body: steady(text) };
}

/** A raw exchange: `fetch` would not send some of this, and would tidy up the rest. */
async function exchange(origin: string, { body = '', headers, method = 'POST', path = '/graphql' }: Sent) {
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
  return { status: response.statusCode, headers: response.headersDistinct, text };
}

/** Without what the time decides: what it is, and how long some text of it is. */
function steadyHeaders({ date: _date, age, ...headers }: Record<string, string[] | undefined>) {
  return {
    ...headers,
    age: age !== undefined,
    'x-ratelimit-reset': 'x-ratelimit-reset' in headers,
    'x-request-id': headers['x-request-id']?.map((id) => UUID.test(id)),
    'content-length': undefined,
  };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

function steady(text: string): string {
  return text
    .replaceAll(/"(oldestAgeMs|retryAfterMs)":\d+/g, '"$1":0')
    .replaceAll(/"(retryAt|fitsAt)":"[^"]+"/g, '"$1":""')
    .replaceAll(/in \d+ s\b/g, 'in 0 s');
}
