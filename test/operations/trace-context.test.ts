import type { IncomingHttpHeaders } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { Listener } from '../../src/server/listener.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const TRACE = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;
const OTHER = `00-${'c3'.repeat(16)}-${'d4'.repeat(8)}-01`;

let upstream: Listener;
let gateway: TestGateway;
let received: IncomingHttpHeaders[];

beforeEach(async () => {
  received = [];
  upstream = await listen(
    ({ headers, method, url }, response) => {
      received.push(headers);
      const animal = { id: Number(url?.split('/').at(-1)) || 1, name: 'Ada', categoryId: 1 };
      response
        .writeHead(method === 'POST' ? 201 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(url?.startsWith('/v1/pets?') ? [] : animal));
    },
    { host: '127.0.0.1', port: 0 },
  );
  gateway = await startGateway({ gateway: { petApiUrl: `${upstream.origin}/v1`, plan: 'business' } });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream.stop(0);
});

const traces = () => received.map(({ traceparent }) => traceparent);

test("a request's trace context goes on with each of its calls, creations too", async () => {
  const headers = { traceparent: TRACE, tracestate: 'a=1,b=2' };
  await gateway.query('{ pets(status: SOLD) { id } }', { headers });
  await gateway.query('mutation { createPet(input: { name: "M", categoryId: "3" }) { pet { id } } }', { headers });
  expect(traces()).toEqual([TRACE, TRACE]);
  expect(received.map(({ tracestate }) => tracestate)).toEqual(['a=1,b=2', 'a=1,b=2']);
});

test('calls of several requests stand each in the trace of the one that it is charged to', async () => {
  await gateway.query('{ pets { id } }');
  const get = (id: string, traceparent: string) =>
    gateway.query(`{ pet(id: "${id}") { id } }`, { headers: { traceparent, 'cache-control': 'no-cache' } });
  await get('7', TRACE);
  await get('8', OTHER);
  await gateway.query('{ pets(status: SOLD) { id } }', { headers: { 'cache-control': 'no-cache' } });
  const told = traces();
  expect([told[0], told.at(-1)]).toEqual([undefined, undefined]);
  expect(told.filter((trace) => trace === TRACE).length).toBeGreaterThan(0);
  expect(told.filter((trace) => trace === OTHER).length).toBeGreaterThan(0);
});

test.each([
  'nothing of the kind',
  `00-${'0'.repeat(32)}-${'b2'.repeat(8)}-01`,
  `00-${'a1'.repeat(16)}-${'0'.repeat(16)}-01`,
  `ff-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`,
  TRACE.toUpperCase(),
  `${TRACE}, ${OTHER}`,
])('what is no trace context goes nowhere: %s', async (traceparent) => {
  await gateway.query('{ pets { id } }', { headers: { traceparent, tracestate: 'a=1' } });
  expect(received.map((headers) => [headers['traceparent'], headers['tracestate']])).toEqual([[undefined, undefined]]);
});

test('an operation in process can bring one', async () => {
  await gateway.gateway.execute({ document: '{ pets { id } }', apiKey: 'any', traceparent: TRACE });
  expect(traces()).toEqual([TRACE]);
});
