import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { SpanKind, SpanStatusCode, context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { isTracingSuppressed } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RESETS, fails, slow } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const TRACE_ID = 'a1'.repeat(16);
const TRACE = `00-${TRACE_ID}-${'b2'.repeat(8)}-01`;
const ANEW = { 'cache-control': 'no-cache' };
const CREATE = 'mutation Adopt { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';

const exporter = new InMemorySpanExporter();
/** How many spans were begun. */
let begun = 0;
const counting = { onStart: () => void (begun += 1), onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter), counting] });
let gateway: TestGateway;
let petApiUrl: string;

beforeAll(() => {
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager());
});
afterAll(async () => {
  trace.disable();
  context.disable();
  await provider.shutdown();
});

beforeEach(async () => {
  exporter.reset();
  begun = 0;
  gateway = await startGateway({ through: async (url) => ({ url: (petApiUrl = url) }) });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

/** The trace context of each call. */
const received = () => gateway.petApi.log.map(({ headers }) => headers['traceparent']);

/** Finished spans, an operation after what it is made of. */
const spans = () => exporter.getFinishedSpans();
const named = (name: string) => spans().filter((span) => span.name === name);
/** By the client's name for the operation. */
const operationsOf = (name: string) =>
  spans().filter(({ attributes }) => attributes['graphql.operation.name'] === name);
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId;
const traceparentOf = (span: ReadableSpan) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`;

test('an operation has a span, with one for its call below it', async () => {
  await gateway.query('query Sold { pets(status: SOLD) { id } }');

  const [call, operation] = spans() as [ReadableSpan, ReadableSpan];
  expect(spans()).toHaveLength(2);
  expect(operation).toMatchObject({ name: 'query', kind: SpanKind.SERVER, parentSpanContext: undefined });
  expect(operation.attributes).toEqual({
    'graphql.operation.type': 'query',
    'graphql.operation.name': 'Sold',
    'petql.outcome': 'OK',
  });
  expect(call).toMatchObject({ name: 'GET /pets', kind: SpanKind.CLIENT });
  expect(call.attributes).toEqual({
    'http.request.method': 'GET',
    'url.template': '/pets',
    'http.response.status_code': 200,
  });
  expect(call.parentSpanContext?.spanId).toBe(idOf(operation));
  expect(new Set(spans().map((span) => span.spanContext().traceId)).size).toBe(1);
  expect(spans().map(({ status }) => status.code)).toEqual(Array(2).fill(SpanStatusCode.UNSET));
  expect(received()).toEqual([traceparentOf(call)]);
});

test('each span that begins ends, and a preflight begins none', async () => {
  const asked = { origin: 'https://pets.example', 'access-control-request-method': 'POST' };
  await fetch(gateway.endpoint, { method: 'OPTIONS', headers: asked });
  await gateway.query('{ pets { id } }', { headers: { authorization: null } });
  await gateway.query('query ($limit: Int!) { pets(limit: $limit) { id } }');
  await gateway.query('{ pets { id } }');
  expect(spans()).toHaveLength(begun);
  const outcomes = spans().flatMap(({ attributes }) => attributes['petql.outcome'] ?? []);
  expect(outcomes).toEqual(['UNAUTHENTICATED', 'BAD_USER_INPUT', 'OK']);
});

test('the call of a create stands below its own operation', async () => {
  await Promise.all([
    gateway.query(CREATE),
    gateway.query('query Look { pets { id } }', { headers: { traceparent: TRACE } }),
  ]);
  const [adopt] = operationsOf('Adopt');
  const [look] = operationsOf('Look');
  const parents = (found: ReadableSpan[]) => found.map(({ parentSpanContext }) => parentSpanContext?.spanId);
  expect(parents(named('POST /pets'))).toEqual([idOf(adopt)]);
  expect(named('POST /pets')[0]?.attributes['http.response.status_code']).toBe(201);
  // What was read before the create was over may have to be read once more.
  expect(new Set(parents(named('GET /pets')))).toEqual(new Set([idOf(look)]));
});

test('no client can name a span', async () => {
  for (const name of ['A', 'B']) await gateway.query(`query ${name} { pets { id } }`);
  expect(new Set(spans().map(({ name }) => name))).toEqual(new Set(['query', 'GET /pets']));
});

test("an operation's log line has the id of its trace", async () => {
  await gateway.query('{ pets { id } }', { headers: { traceparent: TRACE } });
  expect(gateway.logLines.findLast(({ msg }) => msg === 'operation')).toMatchObject({ trace_id: TRACE_ID });
});

test("an operation stands in its request's trace, with the trace state", async () => {
  await gateway.query('{ pets { id } }', { headers: { traceparent: TRACE, tracestate: 'a=1,b=2' } });
  const [operation] = named('query');
  expect(operation?.parentSpanContext).toMatchObject({ spanId: 'b2'.repeat(8), isRemote: true });
  expect(spans().map((span) => span.spanContext().traceId)).toEqual(Array(2).fill(TRACE_ID));
  expect(spans().map((span) => span.spanContext().traceState?.serialize())).toEqual(Array(2).fill('a=1,b=2'));
});

test.each([
  ['of a later version', TRACE.replace('00-', '01-')],
  ['of a later version, which says more', `${TRACE.replace('00-', 'cc-')}-what-the-future-needs`],
])('goes on with a trace context %s', async (_name, traceparent) => {
  await gateway.query('{ pets { id } }', { headers: { traceparent } });
  expect(named('query')[0]?.spanContext().traceId).toBe(TRACE_ID);
  expect(received()).toEqual(named('GET /pets').map(traceparentOf));
});

test('an operation in process is below the active span', async () => {
  const tracer = trace.getTracer('test');
  await tracer.startActiveSpan('page', async (page) => {
    await gateway.gateway.execute({ document: '{ pets { id } }', apiKey: 'demo-free', traceparent: TRACE });
    page.end();
  });
  expect(named('query')[0]?.parentSpanContext?.spanId).toBe(idOf(named('page')[0]));
});

test('a failure is an error on its spans', async () => {
  gateway.petApi.fault = fails();
  await gateway.query('{ pets { id } }');
  gateway.petApi.fault = RESETS;
  await gateway.query('{ pets { id } }', { headers: ANEW });
  await gateway.query('{ nothing }');
  await gateway.query('{ pets');
  await fetch(gateway.endpoint, { method: 'POST', body: 'no JSON' });

  const shown = spans().map(({ name, attributes, status }) => [
    name,
    attributes['http.response.status_code'],
    attributes['error.type'],
    status,
  ]);
  const error = { code: SpanStatusCode.ERROR };
  expect(shown).toEqual([
    ['GET /pets', 503, '503', error],
    ['query', undefined, 'DOWNSTREAM_SERVICE_ERROR', error],
    ['GET /pets', undefined, 'broken', error],
    ['query', undefined, 'DOWNSTREAM_SERVICE_ERROR', error],
    ['query', undefined, 'GRAPHQL_VALIDATION_FAILED', error],
    ['GraphQL Operation', undefined, 'GRAPHQL_PARSE_FAILED', error],
    ['GraphQL Operation', undefined, 'BAD_USER_INPUT', error],
  ]);
});

test('an aborted operation has a span', async () => {
  const leaving = new AbortController();
  gateway.petApi.fault = () => {
    leaving.abort();
    return slow(50);
  };
  const document = '{ pets { id } }';
  const running = gateway.gateway.execute({ document, apiKey: 'demo-free', signal: leaving.signal });
  await expect(running).rejects.toThrow('abort');
  expect(named('query').map(({ attributes }) => attributes['petql.outcome'])).toEqual(['ABORTED']);
});

test('no span holds a key, a variable, a document or an address', async () => {
  const variables = { id: '8888', name: 'Mirabelle' };
  const document =
    'query One($id: ID!) { pet(id: $id) { name } } mutation Two($name: String!) ' +
    '{ createPet(input: { name: $name, categoryId: "3" }) { pet { id } } }';
  await gateway.query('{ pets { id } }');
  await gateway.query(document, { variables, operationName: 'One', headers: ANEW });
  await gateway.query(document, { variables, operationName: 'Two' });
  await gateway.query('{ pets { id } }', { headers: { authorization: 'Bearer stray-key' } });

  const outcomes = ['One', 'Two'].map((name) => operationsOf(name)[0]?.attributes['petql.outcome']);
  expect(outcomes).toEqual(['OK', 'OK']);
  const all = JSON.stringify(
    spans().map(({ name, attributes, status, events, resource }) => [name, attributes, status, events, resource]),
  );
  const { host, port } = new URL(petApiUrl);
  for (const secret of ['demo-free', 'stray-key', '8888', 'Mirabelle', 'createPet', host, port, '127.0.0.1']) {
    expect(all).not.toContain(secret);
  }
});

test('a single pet has the template of its URL', async () => {
  await gateway.query('{ pet(id: "404404") { id } }');
  const [call] = named('GET /pets/{petId}');
  expect(call?.attributes).toEqual({
    'http.request.method': 'GET',
    'url.template': '/pets/{petId}',
    'http.response.status_code': 404,
    'error.type': '404',
  });
  expect(received()).toContain(call && traceparentOf(call));
});

// As @opentelemetry/instrumentation-undici does. The upstream finds no parent in two headers.
test('what traces undici in the same process leaves each call, and its header, to petql', async () => {
  const seen: string[] = [];
  const instrument = (message: unknown) => {
    const { request } = message as { request: { path: string; addHeader: (name: string, value: string) => void } };
    if (!request.path.startsWith('/v1/')) return;
    const isSuppressed = isTracingSuppressed(context.active());
    seen.push(`${request.path} ${isSuppressed}`);
    if (!isSuppressed) request.addHeader('traceparent', TRACE);
  };
  subscribe('undici:request:create', instrument);
  try {
    // More calls than there are at first connections, and those that follow on them.
    for (let turn = 0; turn < 3; turn += 1) {
      const ids = Array.from(
        { length: 6 },
        (_, index) => `p${index}: pet(id: "${404_000 + 10 * turn + index}") { id }`,
      );
      await gateway.query(`{ ${ids.join(' ')} }`);
    }
    await gateway.query(CREATE);
  } finally {
    unsubscribe('undici:request:create', instrument);
  }
  expect(seen.length).toBeGreaterThan(10);
  expect(seen.filter((line) => !line.endsWith(' true'))).toEqual([]);
  const calls = spans().filter(({ kind }) => kind === SpanKind.CLIENT);
  expect(received()).toHaveLength(calls.length);
  expect(new Set(received())).toEqual(new Set(calls.map(traceparentOf)));
});

test('operations that share a call have one span for it, below the one that pays', async () => {
  await Promise.all([gateway.query('query A { pets { id } }'), gateway.query('query B { pets { id } }')]);
  const [call, ...others] = named('GET /pets');
  expect(others).toEqual([]);
  expect([...operationsOf('A'), ...operationsOf('B')].map(idOf)).toContain(call?.parentSpanContext?.spanId);
});

test.each([
  'nothing of the kind',
  `00-${'0'.repeat(32)}-${'b2'.repeat(8)}-01`,
  `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
  `ff-${TRACE_ID}-${'b2'.repeat(8)}-01`,
  `${TRACE}-more`,
  `${TRACE.replace('00-', '01-')}more`,
  TRACE.replace('00-', '01-').slice(0, -1),
  TRACE.toUpperCase(),
  `${TRACE}, ${TRACE}`,
])('ignores the malformed trace context %s', async (traceparent) => {
  await gateway.query('{ pets { id } }', { headers: { traceparent, tracestate: 'a=1' } });
  expect(named('query')[0]?.parentSpanContext).toBeUndefined();
});

describe('without an OpenTelemetry SDK', () => {
  beforeAll(() => trace.disable());

  test('calls of several operations pass on the trace context of the one that pays', async () => {
    await gateway.query('{ pets { id } }');
    const other = TRACE.replace('a1', 'c3');
    for (const traceparent of [TRACE, other]) {
      await gateway.query(`{ pet(id: "${traceparent.length}") { id } }`, { headers: { ...ANEW, traceparent } });
    }
    await gateway.query(CREATE, { headers: { traceparent: TRACE } });
    await gateway.gateway.execute({
      document: '{ pets(status: SOLD) { id } }',
      apiKey: 'demo-free',
      traceparent: other,
    });
    expect(received()).toEqual([undefined, TRACE, other, TRACE, other]);
  });
});
