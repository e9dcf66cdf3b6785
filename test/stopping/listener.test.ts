import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { RequestHandler } from '../../src/server/listener.ts';

const ASKED = 'GET / HTTP/1.1\r\nHost: petql\r\n\r\n';
/** More than the machine's buffers hold. */
const LARGE = Buffer.alloc(32_000_000, 'x');
const LONG_MS = 600_000;

async function start(handler: RequestHandler) {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.stop(0));
  const { hostname, port } = new URL(listener.origin);
  const open = () => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { listener, open };
}

/** Counts what comes, and gives its end. */
function read(socket: Socket) {
  const come = { bytes: 0, end: '' };
  socket.on('data', (bytes) => {
    come.bytes += bytes.length;
    come.end = (come.end + bytes.toString('latin1')).slice(-5_000);
  });
  return come;
}

test('whoever is still taking an answer gets the whole of it, and the stop waits for that', async () => {
  let begun = false;
  let ended = false;
  const { listener, open } = await start((_request, response) => {
    begun = true;
    response.end(LARGE, () => (ended = true));
  });
  const socket = open().pause();
  socket.write(ASKED);
  await expect.poll(() => begun).toBe(true);
  const stopped = listener.stop(LONG_MS);
  expect(ended).toBe(false);
  const come = read(socket);
  socket.resume();
  await stopped;
  await expect.poll(() => come.bytes).toBeGreaterThan(LARGE.length);
});

test('connections with nothing under way are closed at once', async () => {
  const { listener, open } = await start((_request, response) => response.end('.'));
  const [used, unused] = [open(), open()];
  const come = read(used);
  used.write(ASKED);
  unused.resume();
  await expect.poll(() => come.end).toMatch(/\.$/);
  await listener.stop(LONG_MS);
  await expect.poll(() => used.closed && unused.closed).toBe(true);
});

// It was taken for one with a request under way, for as long as a stop may take.
test('a connection whose request was refused before anybody saw it is closed at once', async () => {
  const { listener, open } = await start(() => expect.unreachable());
  const socket = open();
  const come = read(socket);
  socket.write(ASKED.replace('\r\n\r\n', '\r\nExpect: a-miracle\r\n\r\n'));
  await expect.poll(() => come.end).toContain('HTTP/1.1 417');
  await listener.stop(LONG_MS);
  await expect.poll(() => socket.closed).toBe(true);
});

test('a request that is on its way, and those that wait behind an answer, are answered', async () => {
  const answers: (() => void)[] = [];
  const { listener, open } = await start((_request, response) => answers.push(() => response.end('.')));
  const [half, ahead] = [open(), open()];
  const [ofHalf, ofAhead] = [read(half), read(ahead)];
  half.write(ASKED.slice(0, 20));
  ahead.write(ASKED.repeat(3));
  await expect.poll(() => answers.length).toBe(1);
  const stopped = listener.stop(LONG_MS);
  half.write(ASKED.slice(20));
  await expect.poll(() => answers.length).toBe(2);
  for (let count = 0; count < 4; count += 1) {
    await expect.poll(() => answers.length).toBeGreaterThan(count);
    answers[count]?.();
  }
  await stopped;
  const count = ({ end }: { end: string }) => end.split('HTTP/1.1 200').length - 1;
  await expect.poll(() => [count(ofHalf), count(ofAhead)]).toEqual([1, 3]);
});
