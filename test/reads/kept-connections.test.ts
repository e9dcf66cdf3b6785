import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { TLSSocket, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { rawResponse, serveBytes } from '../support/serve-bytes.ts';
import { CERTIFICATE_FILE, serve } from '../support/serve.ts';
import type { Reply } from '../support/transports.ts';

const CREATE = 'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } } }';
const LIST = '{ pets { id } }';
const MINUTE_MS = 60_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const trusted = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...trusted, readFileSync(CERTIFICATE_FILE, 'utf8')]));
afterAll(() => setDefaultCACertificates(trusted));

/** A pet API, and the connection of each call, in order. */
async function start(keepAlive: string | undefined, protocol: 'http' | 'https' = 'http') {
  const sockets: IncomingMessage['socket'][] = [];
  const resumed: boolean[] = [];
  const server = await serve((request, response) => {
    const { socket } = request;
    sockets.push(socket);
    resumed.push(socket instanceof TLSSocket && socket.isSessionReused());
    const isCreate = request.method === 'POST';
    request.resume().on('end', () => {
      response.writeHead(isCreate ? 201 : 200, {
        'content-type': 'application/json',
        // Otherwise Node.js says how long it keeps the connection.
        connection: 'keep-alive',
        ...(keepAlive !== undefined && { 'keep-alive': keepAlive }),
      });
      response.end(isCreate ? '{"id":1,"name":"Ada","categoryId":1}' : '[]');
    });
  }, protocol);
  const gateway = createGateway({ petApiUrl: `${server.origin}/v1`, plan: 'business' });
  onTestFinished(async () => {
    await gateway.close();
    await server[Symbol.asyncDispose]();
  });
  const run = async (document: string, apiKey = 'key') => {
    const { errors } = (await gateway.execute({ document, apiKey, cacheControl: 'no-cache' })) as Reply;
    expect(errors).toBeUndefined();
  };
  return { run, resumed, connections: () => sockets.map((socket) => sockets.indexOf(socket)) };
}

describe('a create goes out on a connection', () => {
  test.for([
    ['that has been idle for less than half a second, where the server does not say when it ends', undefined, 0, true],
    ['that has not been idle for a second, where the server does not say when it ends', undefined, 1_000, false],
    ['that has been idle for a second, where the server keeps it for five', 'timeout=5', 1_000, true],
    ['that has been idle for a second, where the server keeps it for a minute', 'timeout=60, max=100', 1_000, true],
    ['that does not end soon, where the server keeps it for two seconds', 'timeout=2', 0, false],
    ['that does not end soon, where the server keeps it for a second', 'timeout=1', 0, false],
    ['that has been idle for a second, where the header is malformed', 'timeout=soon', 1_000, false],
  ] as const)('%s', async ([_which, keepAlive, idleMs, isKept]) => {
    const { run, connections } = await start(keepAlive);
    // The first call of a key has a connection of its own.
    for (let call = 0; call < 2; call += 1) await run(CREATE);
    await setTimeout(idleMs);
    await run(CREATE);
    expect(connections()).toEqual([0, 1, isKept ? 1 : 2]);
  });
});

test('a Keep-Alive that a proxy passes on from the server behind it says nothing of the end of a connection', async () => {
  // As HAProxy does it: without the Connection header.
  await using server = await serveBytes(() =>
    rawResponse(201, '{"id":1,"name":"Ada","categoryId":1}', ['Keep-Alive: timeout=60']),
  );
  const gateway = createGateway({ petApiUrl: server.url, plan: 'business' });
  onTestFinished(() => gateway.close());
  const run = () => gateway.execute({ document: CREATE, apiKey: 'key' });
  for (let call = 0; call < 3; call += 1) await run();
  expect(server.connections).toBe(2);
  await setTimeout(1_000);
  await run();
  expect(server.connections).toBe(3);
});

describe('a connection is a minute old at most, so that calls follow a host name that moves', () => {
  test.each([
    ['reads', LIST],
    ['creates', CREATE],
  ])('%s', async (_which, document) => {
    const { run, connections } = await start('timeout=600');
    for (let call = 0; call < 3; call += 1) await run(document);
    const { now } = Date;
    onTestFinished(() => void vi.restoreAllMocks());
    vi.spyOn(Date, 'now').mockImplementation(() => now() + MINUTE_MS - 5_000);
    await run(document);
    vi.spyOn(Date, 'now').mockImplementation(() => now() + MINUTE_MS + 1_000);
    for (let call = 0; call < 2; call += 1) await run(document);
    expect(connections()).toEqual([0, 1, 1, 1, 4, 4]);
  });
});

test('over HTTPS a connection resumes the TLS session of another, whichever key has it', async () => {
  const { run, resumed, connections } = await start('timeout=1', 'https');
  for (const key of ['one', 'other']) {
    for (let call = 0; call < 3; call += 1) await run(CREATE, key);
    // What only a weak reference leads to is gone after two.
    for (let collected = 0; collected < 2; collected += 1) {
      await setTimeout(50);
      collectGarbage();
    }
  }
  expect(connections()).toEqual([0, 1, 2, 3, 4, 5]);
  expect(resumed).toEqual([false, true, true, true, true, true]);
});
