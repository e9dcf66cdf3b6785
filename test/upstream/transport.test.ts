import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { errors } from 'undici';
import { afterEach, expect, test } from 'vitest';
import { createTransport } from '../../src/upstream/transport.ts';
import type { Transport, TransportOptions } from '../../src/upstream/transport.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const GET = { method: 'GET', path: '/pets', headers: {} } as const;
const POST = { method: 'POST', path: '/pets', headers: {}, body: '{}' } as const;
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]';

/** An upstream made of bytes: `answer` gets each request's text and its socket. */
async function startUpstream(
  answer: (socket: Socket, request: string) => unknown,
  options: Partial<TransportOptions> = {},
): Promise<{ transport: Transport; connections: () => number; requests: string[] }> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (data) => {
      requests.push(data.toString());
      answer(socket, data.toString());
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  const transport = createTransport({ baseUrl: new URL(`http://127.0.0.1:${port}/v1/`), timeoutMs: 300, ...options });
  cleanups.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => sockets.forEach((socket) => socket.destroy()),
    () => transport.close(),
  );
  return { transport, connections: () => connections, requests };
}

test('calls go below the base address and reuse their connections', async () => {
  const { transport, connections, requests } = await startUpstream((socket) => socket.write(OK));
  for (let call = 0; call < 20; call += 1) {
    expect(await transport.send(GET)).toMatchObject({ kind: 'response', status: 200 });
  }
  expect(requests.every((request) => request.startsWith('GET /v1/pets HTTP/1.1\r\n'))).toBe(true);
  // undici frees a connection a moment after the answer, so that the next call may find it busy.
  expect(connections()).toBeLessThanOrEqual(2);
});

test('a connection that is reset while it is kept costs the next call nothing, and nothing is sent twice', async () => {
  let latest: Socket | undefined;
  const { transport, requests } = await startUpstream((socket) => {
    latest = socket;
    socket.write(OK);
  });
  for (let call = 0; call < 30; call += 1) {
    expect(await transport.send(call % 2 === 0 ? GET : POST)).toMatchObject({ kind: 'response', status: 200 });
    // undici has given the connection back by then, and does not know of its end when the next call takes it.
    await new Promise((resolve) => setImmediate(resolve));
    latest?.resetAndDestroy();
  }
  expect(requests).toHaveLength(30);
});

test('an upstream that resets every new connection is unreachable after three of them, and nothing was sent', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.resetAndDestroy();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  const transport = createTransport({ baseUrl: new URL(`https://127.0.0.1:${port}`), timeoutMs: 300 });
  cleanups.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => transport.close(),
  );
  expect(await transport.send(GET)).toMatchObject({ kind: 'failure', reason: 'unreachable', sent: false });
  expect(connections).toBe(3);
});

test('an upstream that is not there is unreachable, and nothing was sent', async () => {
  const transport = createTransport({ baseUrl: new URL('http://127.0.0.1:9/v1'), timeoutMs: 300 });
  expect(await transport.send(GET)).toEqual({
    kind: 'failure',
    reason: 'unreachable',
    sent: false,
    code: 'ECONNREFUSED',
  });
  await transport.close();
});

test.each<[string, (socket: Socket) => void, string]>([
  ['says nothing', () => {}, 'timeout'],
  ['stops in the headers', (socket) => socket.write('HTTP/1.1 200 OK\r\nx-slow:'), 'timeout'],
  ['stops in the body', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n['), 'timeout'],
  ['drips for ever', drip, 'timeout'],
  ['resets', (socket) => socket.resetAndDestroy(), 'broken'],
  ['closes without a word', (socket) => socket.destroy(), 'broken'],
  ['cuts the body', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n['), 'broken'],
  ['does not speak HTTP', (socket) => socket.write('SSH-2.0-OpenSSH_9.9\r\n\r\n'), 'broken'],
  ['sends a body that is too large', (socket) => socket.write(large(2_000)), 'too-large'],
  [
    'sends headers that are too large',
    (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(50_000)}`),
    'too-large',
  ],
])(
  'an upstream that %s is a failure of a call that was sent, and the next call is answered',
  async (_name, fail, reason) => {
    let failing = true;
    const { transport } = await startUpstream((socket) => (failing ? fail(socket) : socket.write(OK)), {
      maxBodyBytes: 1_000,
    });
    expect(await transport.send(GET)).toMatchObject({ kind: 'failure', reason, sent: true });
    failing = false;
    expect(await transport.send(GET)).toMatchObject({ kind: 'response', status: 200 });
  },
);

// undici 8.12.4 makes an error of each header that is left of what it is parsing, and each with its stack.
test.each([
  ['small headers', 'x-a: b\r\n'],
  ['the smallest headers', 'a:\r\n'],
])('of a flood of %s few are looked at past the limit', async (_name, header) => {
  const { prototype } = errors.HeadersOverflowError;
  let made = 0;
  // Each error is given its code when it is made.
  Object.defineProperty(prototype, 'code', {
    configurable: true,
    set(code: string) {
      if (code === 'UND_ERR_HEADERS_OVERFLOW') made += 1;
    },
  });
  cleanups.push(() => Reflect.deleteProperty(prototype, 'code'));
  const { transport } = await startUpstream((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\n${header.repeat(60_000)}\r\n`),
  );
  expect(await transport.send(GET)).toMatchObject({ kind: 'failure', reason: 'too-large', sent: true });
  expect(made).toBeGreaterThan(0);
  expect(made).toBeLessThanOrEqual(512);
});

test('an endless body without a length ends at the cap', async () => {
  const { transport } = await startUpstream(
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const pour = () => {
        while (!socket.destroyed && socket.write(`400\r\n${'x'.repeat(1024)}\r\n`));
      };
      socket.on('drain', pour);
      pour();
    },
    { maxBodyBytes: 100_000, timeoutMs: 5_000 },
  );
  expect(await transport.send(GET)).toMatchObject({ kind: 'failure', reason: 'too-large', sent: true });
});

test.each<[string, (socket: Socket) => unknown]>([
  ['cuts the body', (socket) => socket.end('HTTP/1.1 503 Busy\r\nretry-after: 9\r\ncontent-length: 9\r\n\r\n[')],
  ['stops in the body', (socket) => socket.write('HTTP/1.1 503 Busy\r\nretry-after: 9\r\ncontent-length: 9\r\n\r\n[')],
])('an upstream that %s has told its status and its headers', async (_name, fail) => {
  const { transport } = await startUpstream(fail);
  expect(await transport.send(GET)).toMatchObject({
    kind: 'failure',
    head: { status: 503, headers: { 'retry-after': '9' } },
  });
});

test('hints before the answer are not taken for its status', async () => {
  const { transport } = await startUpstream((socket) => {
    socket.write('HTTP/1.1 103 Early Hints\r\nretry-after: 9\r\n\r\n', () => socket.destroy());
  });
  const result = await transport.send(GET);
  expect(result).toMatchObject({ kind: 'failure', reason: 'broken', sent: true });
  expect(result).not.toHaveProperty('head');
});

test('a status that says all is an answer before its body is there, and its connection is not kept for the body', async () => {
  const { transport, connections } = await startUpstream(
    (socket) => socket.write('HTTP/1.1 429 Slow Down\r\nretry-after: 9\r\ncontent-length: 9\r\n\r\n['),
    // The second call has its turn when the first one's connection is given up, and not as late as that.
    { connections: 1, timeoutMs: 600_000 },
  );
  const isPlain = (status: number) => status === 429;
  const refused = { kind: 'response', status: 429, headers: { 'retry-after': '9' }, body: Buffer.alloc(0) };
  expect(await transport.send({ ...GET, isPlain })).toMatchObject(refused);
  expect(await transport.send({ ...GET, isPlain })).toMatchObject(refused);
  expect(connections()).toBe(2);
});

test('an answer that comes in crumbs, each with much around it, is held as the crumbs alone', async () => {
  const crumb = `1;x=${'y'.repeat(60_000)}\r\n.\r\n`;
  const sent = Promise.withResolvers<void>();
  const { transport } = await startUpstream(
    async (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      for (let count = 0; count < 1_000; count += 1) if (!socket.write(crumb)) await once(socket, 'drain');
      sent.resolve();
    },
    { timeoutMs: 60_000 },
  );
  const before = heldMb();
  const answered = transport.send(GET);
  await sent.promise;
  expect(heldMb() - before).toBeLessThan(20);
  await transport.close();
  expect(await answered).toMatchObject({ kind: 'failure' });
});

function heldMb(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers / 2 ** 20;
}

test('a redirect is an answer like any other and is not followed', async () => {
  const { transport, requests } = await startUpstream((socket) =>
    socket.write('HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n'),
  );
  expect(await transport.send(GET)).toMatchObject({ kind: 'response', status: 302 });
  expect(requests).toHaveLength(1);
});

test('a call that waits for a connection and runs out of time was never sent', async () => {
  // Enough for a connection on a busy machine.
  const { transport, requests } = await startUpstream(() => {}, { connections: 1, timeoutMs: 1_500 });
  const first = transport.send({ ...GET, path: '/first' });
  const second = transport.send({ ...GET, path: '/second' });
  expect([await first, await second]).toEqual([
    { kind: 'failure', reason: 'timeout', sent: true },
    { kind: 'failure', reason: 'timeout', sent: false },
  ]);
  expect(requests.filter((request) => request.includes('/second'))).toEqual([]);
});

function large(bytes: number): string {
  return `HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`;
}

function drip(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
  const timer = setInterval(() => socket.write('x'), 20);
  socket.on('close', () => clearInterval(timer));
}
