import { once } from 'node:events';
import { IncomingMessage, ServerResponse, createServer } from 'node:http';
import { Socket, connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { RequestHandler } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';
import { createBodyReader } from '../../src/server/request-body.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { startGateway } from '../support/start-gateway.ts';

const CONNECTIONS = 20;
const BODY_BYTES = 200_000;
const PATIENT = { timeout: 10_000 };
const ASKED = `POST / HTTP/1.1\r\nHost: petql\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${' '.repeat(BODY_BYTES)}`;

/** Has each connection send a request, and gives how many of them were answered. */
async function start(handler: RequestHandler) {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.stop(0));
  const { hostname, port } = new URL(listener.origin);
  const come = { answers: 0 };
  for (let count = 0; count < CONNECTIONS; count += 1) {
    const socket = connect(Number(port), hostname).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    socket.on('data', () => (come.answers += 1)).write(ASKED);
  }
  return come;
}

function heldOf(refs: readonly WeakRef<object>[]): number {
  collectGarbage();
  return refs.filter((ref) => ref.deref() !== undefined).length;
}

// A connection is kept for a minute, and there may be thousands: each held its last request with all of its headers.
test('a connection that idles holds nothing of its last request', async () => {
  const requests: WeakRef<object>[] = [];
  const come = await start((request, response) => {
    requests.push(new WeakRef(request));
    request.resume().once('end', () => response.end('.'));
  });
  await expect.poll(() => come.answers, PATIENT).toBe(CONNECTIONS);
  await expect.poll(() => heldOf(requests), PATIENT).toBe(0);
});

// Node makes two errors for each, which took ten times as long as to read what a crowd had sent ahead.
test('the errors of requests whose connection closes have no stacks, and all others have theirs', async () => {
  const stacks: (string | undefined)[] = [];
  const listener = await listen((request) => request.once('error', ({ stack }) => stacks.push(stack)), {
    host: '127.0.0.1',
    port: 0,
  });
  onTestFinished(() => listener.stop(0));
  const { hostname, port } = new URL(listener.origin);
  const before = Error.stackTraceLimit;
  const socket = connect(Number(port), hostname, () => {
    socket.write(ASKED.slice(0, 100), () => socket.destroy());
  });
  await expect.poll(() => stacks, PATIENT).toEqual(['Error: aborted']);
  expect(Error.stackTraceLimit).toBe(before);
});

// A request is held while its operation waits for the service, and with it what listens to it.
test('a request that waits for its answer holds nothing of a body that was used', async () => {
  const bodies: WeakRef<object>[] = [];
  const readBody = createBodyReader({ maxBodyBytes: BODY_BYTES });
  await start((request) => readBody(request, (body) => 'bytes' in body && bodies.push(new WeakRef(body.bytes.buffer))));
  await expect.poll(() => bodies.length, PATIENT).toBe(CONNECTIONS);
  await expect.poll(() => heldOf(bodies), PATIENT).toBe(0);
});

// What waits for a slow service was bounded by the number of connections alone, with a quarter of a megabyte for each.
test('operations that wait for the service hold nothing of long bodies', async () => {
  let waiting = 0;
  const service = createServer(() => (waiting += 1)).listen(0, '127.0.0.1');
  onTestFinished(() => service.closeAllConnections());
  await once(service, 'listening');
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  await using gateway = await startGateway({ through: async () => ({ url }) });
  const { hostname, port } = new URL(gateway.endpoint);
  const ask = (key: number) => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    const head = [
      'POST /graphql HTTP/1.1',
      'Host: petql',
      'Content-Type: application/json',
      `Content-Length: ${BODY_BYTES}`,
    ];
    socket.write(`${head.join('\r\n')}\r\nAuthorization: Bearer made-up-${key}\r\n\r\n`);
    socket.write('{"query":"{ pet(id: 7) { id } }"}'.padEnd(BODY_BYTES));
  };
  const heldBytes = () => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  ask(0);
  await expect.poll(() => waiting, PATIENT).toBe(1);
  const before = heldBytes();
  for (let key = 1; key <= CONNECTIONS; key += 1) ask(key);
  await expect.poll(() => waiting, PATIENT).toBe(1 + CONNECTIONS);
  await expect.poll(() => heldBytes() - before, PATIENT).toBeLessThan((CONNECTIONS * BODY_BYTES) / 4);
});

test('bodies that are kept for an operation that may run again are given up when they are too many', async () => {
  const bodies: WeakRef<object>[] = [];
  const settled: (() => void)[] = [];
  const handled: string[] = [];
  const handle = createNodeHandler(
    async (request) => {
      handled.push((await request.text()).trim());
      return new Response();
    },
    4_000_000,
    ({ body }) => {
      bodies.push(new WeakRef(body.buffer));
      return new Promise((resolve) => {
        settled.push(() => resolve(undefined));
      });
    },
  );
  const responses = Array.from({ length: 40 }, (_, index) => {
    const incoming = { readableEnded: true, body: `${index}`.padEnd(2_000_000), method: 'POST', headersDistinct: {} };
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    handle(Object.assign(incoming, { headers: {}, url: '/' }) as unknown as IncomingMessage, response);
    return response;
  });
  await expect.poll(() => bodies.length, PATIENT).toBe(40);
  // 64 MiB of them.
  await expect.poll(() => heldOf(bodies), PATIENT).toBeLessThan(35);
  expect(heldOf(bodies)).toBeGreaterThan(30);
  for (const settle of settled) settle();
  await expect
    .poll(() => handled.length + responses.filter(({ statusCode }) => statusCode === 500).length, PATIENT)
    .toBe(40);
  expect(handled.at(-1)).toBe('39');
  expect(responses[0]?.statusCode).toBe(500);
  await expect.poll(() => heldOf(bodies), PATIENT).toBe(0);
});
