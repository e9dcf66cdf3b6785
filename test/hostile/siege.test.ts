import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
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
      'bodies past the limit': 1,
      'uploads that never end': 1,
      'costly documents': 1,
      'a key of its own for each request': 1,
    },
    durationMs: 3_000,
    patience: { headersMs: 1_000, requestMs: 2_000, lookEveryMs: 100 },
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
  const patience = { headersMs: 200, requestMs: 300, lookEveryMs: 20 };
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

test('headers are read however many there are, up to what is too much', async () => {
  const counted: number[] = [];
  const listener = await listen(
    ({ rawHeaders }, response) => {
      counted.push(rawHeaders.length / 2);
      response.end();
    },
    { host: '127.0.0.1', port: 0 },
  );
  const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, '']));
  const sent = await fetch(listener.origin, { headers: headers(1_990) });
  expect(sent.status).toBe(200);
  expect(counted[0]).toBeGreaterThanOrEqual(1_990);
  expect((await fetch(listener.origin, { headers: headers(4_000) })).status).toBe(431);
  await listener.stop(0);
});
