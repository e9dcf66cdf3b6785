import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { RequestHandler } from '../../src/server/listener.ts';
import { siege } from './siege.ts';

/** Machines that test are busy; `npm run siege` holds 50 ms. */
const SLACK_MS = 2_000;

test('a good caller is answered while petql is attacked from all sides, and memory and the event loop bear it', async () => {
  const fared = await siege({
    attacks: {
      'silent connections': 300,
      'slow headers': 30,
      'slow bodies': 30,
      'half requests': 2,
      'floods of headers': 1,
      'pipelined requests': 1,
      'answers that nobody takes': 2,
      'bodies past the limit': 1,
      'bodies in crumbs': 2,
      'uploads that never end': 1,
      'costly documents': 1,
      'a key of its own for each request': 1,
    },
    durationMs: 3_000,
    patience: { headersMs: 1_000, requestMs: 2_000, answerMs: 2_000, leastBytesPerSecond: 20_000, lookEveryMs: 100 },
  });
  expect(fared.asked).toBeGreaterThan(10);
  expect(fared.answered).toBe(fared.asked);
  expect(fared.delayP99Ms).toBeLessThan(SLACK_MS);
  expect(fared.heapMegabytes).toBeLessThan(300);
}, 60_000);

test.each([
  ['says nothing', ''],
  ['does not come to the end of its headers', 'POST /graphql HTTP/1.1\r\nHost: petql\r\n'],
  ['does not come to the end of its body', 'POST /graphql HTTP/1.1\r\nHost: petql\r\nContent-Length: 9000\r\n\r\n{'],
])('whoever %s is cut off, a byte now and then or not', async (_name, begun) => {
  const patience = { headersMs: 200, requestMs: 300, answerMs: 300, leastBytesPerSecond: 20_000, lookEveryMs: 20 };
  const listener = await listen(() => {}, { host: '127.0.0.1', port: 0, patience });
  const { hostname, port } = new URL(listener.origin);
  const socket = connect(Number(port), hostname).on('error', () => {});
  socket.write(begun);
  const dripping = setInterval(() => begun && socket.write('a:b\r\n'), 50);
  // What is sent to a connection that was cut off resets it, after its answer.
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk.toString()));
  await new Promise((resolve) => {
    socket.once('close', resolve);
  });
  expect(answer.slice(0, 12)).toBe('HTTP/1.1 408');
  clearInterval(dripping);
  await listener.stop(0);
});

describe('an answer', () => {
  const patience = { headersMs: 5_000, requestMs: 5_000, answerMs: 300, leastBytesPerSecond: 100_000, lookEveryMs: 20 };
  /** More than the machine's buffers hold. */
  const LARGE = 'x'.repeat(32_000_000);

  test('that nobody takes is not kept', async () => {
    let closed = false;
    const handler: RequestHandler = ({ socket }, response) => {
      socket.once('close', () => (closed = true));
      response.end(LARGE);
    };
    const listener = await listen(handler, { host: '127.0.0.1', port: 0, patience });
    const { hostname, port } = new URL(listener.origin);
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: petql\r\n\r\n');
    await once(socket, 'connect');
    socket.pause();
    await expect.poll(() => closed, { timeout: 10_000 }).toBe(true);
    await listener.stop(0);
    socket.destroy();
  });

  test('that is taken slowly comes to its end, and what is asked behind it may wait for longer', async () => {
    const waited: Promise<unknown>[] = [];
    const handler: RequestHandler = (_request, response) => {
      if (waited.length === 0) response.end(LARGE.slice(0, 8_000_000));
      else setTimeout(() => response.end('late'), 1_000);
      waited.push(once(response, 'finish'));
    };
    const listener = await listen(handler, { host: '127.0.0.1', port: 0, patience });
    const { hostname, port } = new URL(listener.origin);
    const socket = connect(Number(port), hostname);
    const asked = 'GET / HTTP/1.1\r\nHost: petql\r\n\r\n';
    socket.write(asked + asked);
    let taken = 0;
    let end = '';
    socket.on('data', (chunk) => {
      taken += chunk.length;
      end = (end + chunk.toString()).slice(-4);
      socket.pause();
      setTimeout(() => socket.resume(), 10);
    });
    await expect.poll(() => end, { timeout: 15_000 }).toBe('late');
    expect(taken).toBeGreaterThan(8_000_000);
    socket.destroy();
    await listener.stop(0);
  });
});

test('a hundred headers and more are read, and thousands are refused', async () => {
  const counted: number[] = [];
  const listener = await listen(
    ({ rawHeaders }, response) => {
      counted.push(rawHeaders.length / 2);
      response.end();
    },
    { host: '127.0.0.1', port: 0 },
  );
  const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, '']));
  const sent = await fetch(listener.origin, { headers: headers(140) });
  expect(sent.status).toBe(200);
  expect(counted[0]).toBeGreaterThanOrEqual(140);
  expect((await fetch(listener.origin, { headers: headers(1_990) })).status).toBe(431);
  expect(counted).toHaveLength(1);
  await listener.stop(0);
});
