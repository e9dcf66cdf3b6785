import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const HEAD = 'POST /graphql HTTP/1.1\r\nHost: petql\r\nContent-Type: application/json\r\n';
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
const MOST_BYTES = 262_144;

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

function open(): Socket {
  const { hostname, port } = new URL(gateway.endpoint);
  return connect(Number(port), hostname).on('error', () => {});
}

function chunks(text: string, bytes: number): string {
  const pieces = text.match(new RegExp(`.{1,${bytes}}`, 'gs')) ?? [];
  return `${pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')}0\r\n\r\n`;
}

/** What comes back until the first answer has a body, or the connection is closed. */
async function answerOn(socket: Socket): Promise<string> {
  let answer = '';
  socket.on('data', (bytes) => (answer += bytes.toString()));
  await expect.poll(() => socket.closed || answer.endsWith('}'), { timeout: 10_000 }).toBe(true);
  return answer;
}

const longQuery = (bytes: number) => '{"query":"{ __typename }"}'.padEnd(bytes);

test('a body in crumbs is cut off without an answer', async () => {
  const socket = open();
  socket.write(CHUNKED + chunks(longQuery(100_000), 1));
  expect(await answerOn(socket)).toBe('');
});

test('crumbs behind a body that is past its limit are cut off too', async () => {
  const socket = open().resume();
  socket.write(
    CHUNKED + chunks(longQuery(MOST_BYTES + 60_000), 60_000).replace('0\r\n\r\n', '1\r\n \r\n'.repeat(20_000)),
  );
  await expect.poll(() => socket.closed, { timeout: 4_000 }).toBe(true);
});

test.each([100, 1_000, 30_000])('a body in pieces of %i bytes is read', async (bytes) => {
  const socket = open();
  socket.write(CHUNKED + chunks(longQuery(200_000), bytes));
  expect(await answerOn(socket)).toContain('{"data":{"__typename":"Query"}');
  socket.destroy();
});

test.each([60, 5_000])('a body of %i bytes may come byte by byte, as some encoders send it', async (bytes) => {
  const socket = open();
  socket.write(CHUNKED + chunks(longQuery(bytes), 1));
  expect(await answerOn(socket)).toContain('{"data":{"__typename":"Query"}');
  socket.destroy();
});

test('when all bodies on their way are too much, those that have been it for the longest are given up', async () => {
  const half = `${HEAD}Content-Length: ${MOST_BYTES}\r\n\r\n${' '.repeat(MOST_BYTES - 1)}`;
  const sockets: Socket[] = [];
  for (let count = 0; count < 320; count += 1) {
    const socket = open().resume();
    sockets.push(socket);
    await new Promise((resolve) => {
      socket.write(half, resolve);
    });
  }
  await expect.poll(() => sockets.filter(({ closed }) => closed).length, { timeout: 10_000 }).toBeGreaterThan(50);
  expect(sockets.slice(0, 50).every(({ closed }) => closed)).toBe(true);
  expect(sockets.slice(-200).some(({ closed }) => closed)).toBe(false);
  expect((await gateway.query('{ __typename }')).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});

test('a connection is closed soon after a body that is past its limit, however much is still sent', async () => {
  const socket = open();
  let answer = '';
  socket.on('data', (bytes) => (answer += bytes.toString()));
  const sending = setInterval(() => socket.write(`8000\r\n${' '.repeat(0x8000)}\r\n`), 10);
  socket.write(CHUNKED);
  await once(socket, 'close', { signal: AbortSignal.timeout(15_000) });
  clearInterval(sending);
  expect(answer).toMatch(/^HTTP\/1\.1 413 .*^connection: close/ims);
});
