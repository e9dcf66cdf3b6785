import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { post } from '../support/client.ts';
import { serve } from '../support/serve.ts';
import { graphqlRequest, startEmbedded, startGateway } from '../support/start-gateway.ts';

// An unhandled rejection or an uncaught exception fails the run of the tests, as it ends a program.

const QUERY = '{ pets(limit: 1) { id } }';

describe.each<[string, () => never | Promise<never>]>([
  [
    'throws',
    () => {
      throw new Error('the disk is full');
    },
  ],
  ['rejects', () => Promise.reject(new Error('the disk is full'))],
])('a logger that %s', (_how, fail) => {
  const log = { info: fail, warn: fail, error: fail, debug: fail };

  test('harms no operation', async () => {
    await using gateway = await startGateway({ gateway: { log, corsOrigins: ['https://a.example'] } });
    const { execute, fetch: respond } = gateway.gateway;
    const expected = { data: { pets: [{ id: '1' }] } };
    expect(await execute({ document: QUERY, apiKey: 'demo-free' })).toMatchObject(expected);
    const refusedOrigin = { authorization: 'Bearer demo-free', origin: 'https://b.example' };
    expect(await (await respond(graphqlRequest({ query: QUERY }, refusedOrigin))).json()).toMatchObject(expected);
    for (let cached = 0; cached < 2; cached += 1) expect(await gateway.query(QUERY)).toMatchObject(expected);
  });

  test('hides no error', async () => {
    await using gateway = await startGateway({ gateway: { log, petApiKey: fail } });
    const expected = { status: 500, errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] };
    expect(await gateway.query(QUERY)).toMatchObject(expected);
  });
});

test('variables that JSON cannot hold are BAD_USER_INPUT in process', async () => {
  await using gateway = await startEmbedded();
  const variables: Record<string, unknown> = {};
  variables['self'] = variables;
  const { errors } = await gateway.execute({ document: QUERY, variables, apiKey: 'demo-free' });
  expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
});

test.each<[option: string, name: string, operation: unknown]>([
  ['document', 'no operation', undefined],
  ['document', 'no document', { apiKey: 'demo-free' }],
  ['document', 'a document that is null', { document: null }],
  ['document', 'a document that is none', { document: { kind: 'Documents', definitions: [] } }],
  ['document', 'a number', { document: 5 }],
  ['waitMs', 'a negative wait', { document: QUERY, waitMs: -5 }],
  ['waitMs', 'a wait that is no number', { document: QUERY, waitMs: Number.NaN }],
  ['waitMs', 'a wait that is a text', { document: QUERY, waitMs: '5' }],
  ['visitor', 'a number', { document: QUERY, visitor: 7 }],
  ['visitor', 'a user', { document: QUERY, visitor: { email: 'ada@pets.example' } }],
  ['apiKey', 'a list', { document: QUERY, apiKey: ['demo-free'] }],
  ['client', 'a list', { document: QUERY, client: ['web', '1.4'] }],
  ['cacheControl', 'an age', { document: QUERY, cacheControl: 5 }],
  ['traceparent', 'a buffer', { document: QUERY, traceparent: Buffer.from('00') }],
  ['operationName', 'a number', { document: QUERY, operationName: 7 }],
  ['variables', 'a list', { document: QUERY, variables: [1] }],
  ['signal', 'a controller', { document: QUERY, signal: new AbortController() }],
  ['dryRun', 'a text', { document: QUERY, dryRun: 'no' }],
  ['background', 'a number', { document: QUERY, background: 1 }],
])('execute names the option %s: %s', async (option, _name, operation) => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-free' });
  const { data, errors } = await gateway.execute(operation as { document: string });
  const message = expect.stringMatching(`^${option} must be (?:an? |true or false)`);
  expect({ data, errors }).toMatchObject({
    data: undefined,
    errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }],
  });
  expect(JSON.stringify(errors)).not.toMatch(/ada@|demo-free/);
  expect(gateway.petApi.log).toHaveLength(0);
});

test('a body of thousands of levels is BAD_USER_INPUT, also behind a body parser', async () => {
  await using gateway = await startEmbedded();
  const nested = `${'['.repeat(12_000)}${']'.repeat(12_000)}`;
  const body = `{"query":"{ __typename }","variables":{"a":${nested}}}`;
  await using plain = await serve((request, response) => gateway.handle(request, response));
  await using parsing = await serve((request, response) => {
    void json(request).then((parsed) => gateway.handle(Object.assign(request, { body: parsed }), response));
  });
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  expect((await fetch(`${plain.origin}/graphql`, init)).status).toBe(200);
  const response = await fetch(`${parsing.origin}/graphql`, init);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
});

test('HTTP/2 works with a function that finds the key', async () => {
  await using gateway = await startEmbedded({ petApiKey: ({ headers }) => headers.get('x-key') });
  const server = createServer((request, response) => gateway.handle(request as never, response as never)).listen(0);
  await once(server, 'listening');
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const headers = { 'content-type': 'application/json', 'x-key': 'demo-free' };
    const stream = client.request({ ':method': 'POST', ':path': '/graphql', ...headers });
    stream.end(JSON.stringify({ query: QUERY }));
    expect(JSON.parse(await text(stream))).toMatchObject({ data: { pets: [{ id: '1' }] } });
  } finally {
    client.close();
    server.close();
  }
});

test('a response that cannot be written ends its connection alone', async () => {
  await using gateway = await startEmbedded({ maxAgeMs: 60_000 });
  let isBroken = true;
  await using framework = await serve((request, response) => {
    const writeHead = () => {
      throw new Error('a middleware has written the headers');
    };
    gateway.handle(request, isBroken ? Object.assign(response, { writeHead }) : response);
  });
  const ask = () => post(`${framework.origin}/graphql`, QUERY);
  // The first runs, and the second is in the response cache.
  for (let asked = 0; asked < 2; asked += 1) await expect(ask()).rejects.toThrow('fetch failed');
  isBroken = false;
  expect(await ask()).toMatchObject({ data: { pets: [{ id: '1' }] } });
});
