import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { ListenOptions, RequestHandler } from '../../src/server/listener.ts';
import { startGateway } from '../support/start-gateway.ts';

const ASKED = 'GET / HTTP/1.1\r\nHost: petql\r\n\r\n';
/** More than the machine's buffers hold, and one piece of memory for all tests. */
const LARGE = Buffer.alloc(32_000_000, 'x');

async function start(handler: RequestHandler, patience?: ListenOptions['patience']): Promise<() => Socket> {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0, ...(patience ? { patience } : {}) });
  onTestFinished(() => listener.stop(0));
  const { hostname, port } = new URL(listener.origin);
  return () => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
}

test('requests of one connection begin when the answer before them is out, and are answered in their order', async () => {
  const begun: string[] = [];
  const open = await start(({ url = '' }, response) => {
    begun.push(url);
    if (begun.length === 1) response.end(LARGE);
    else setImmediate(() => response.end(`<${url}>`));
  });
  const socket = open();
  const names = Array.from({ length: 50 }, (_, index) => `/${index}`);
  socket.write(names.map((name) => ASKED.replace('/', name)).join(''));
  await expect.poll(() => begun.length).toBe(1);
  await setTimeout(300);
  expect(begun).toEqual(['/0']);
  let end = '';
  socket.on('data', (bytes) => (end = (end + bytes.toString('latin1')).slice(-20_000)));
  await expect.poll(() => end, { timeout: 15_000 }).toContain('</49>');
  expect(begun).toEqual(names);
  expect([...end.matchAll(/<(.*?)>/g)].map(([, name]) => name)).toEqual(names.slice(1));
  // The connection goes on as one that had no such past.
  socket.write(ASKED.replace('/', '/later'));
  await expect.poll(() => end).toContain('</later>');
});

test('whoever sends more requests ahead than anybody needs is cut off, and none of them begins', async () => {
  let begun = 0;
  const open = await start(() => (begun += 1));
  const socket = open();
  socket.write(ASKED.repeat(3_000));
  await expect.poll(() => socket.closed, { timeout: 10_000 }).toBe(true);
  expect(begun).toBe(1);
});

// A server answers nothing behind an answer that it said to be the last one (RFC 9112, section 9.6).
test('what came ahead does not begin behind an answer that closes the connection', async () => {
  const begun: string[] = [];
  const open = await start(({ url = '' }, response) => {
    begun.push(url);
    setImmediate(() => response.writeHead(200, { connection: 'close' }).end());
  });
  const socket = open().resume();
  socket.write(ASKED + ASKED.replace('/', '/later').repeat(5));
  await expect.poll(() => socket.closed).toBe(true);
  await setTimeout(50);
  expect(begun).toEqual(['/']);
});

test('what waits of a connection that is gone does not begin', async () => {
  let begun = 0;
  let answer = () => {};
  const open = await start((_request, response) => {
    begun += 1;
    answer = () => response.end();
  });
  const socket = open();
  socket.write(ASKED.repeat(5));
  await expect.poll(() => begun).toBe(1);
  socket.destroy();
  await setTimeout(100);
  answer();
  await setTimeout(100);
  expect(begun).toBe(1);
});

test('a stop lets those that wait behind an answer have theirs, and closes the connection behind the last', async () => {
  const listener = await listen((_request, response) => void setTimeout(50).then(() => response.end('it')), {
    host: '127.0.0.1',
    port: 0,
  });
  const { hostname, port } = new URL(listener.origin);
  const socket = connect(Number(port), hostname);
  socket.write(ASKED.repeat(4));
  await once(socket, 'connect');
  await setTimeout(70);
  const stopped = listener.stop(5_000);
  const answers = Buffer.concat(await socket.toArray()).toString();
  expect(answers.match(/it$|itHTTP/g)).toHaveLength(4);
  expect(answers.match(/^connection: close/gim)).toHaveLength(1);
  await stopped;
});

test('a read now and then does not keep an answer for ever', async () => {
  let closed = false;
  const patience = {
    headersMs: 5_000,
    requestMs: 5_000,
    answerMs: 2_000,
    leastBytesPerSecond: 64_000_000,
    lookEveryMs: 20,
  };
  const handler: RequestHandler = ({ socket }, response) => {
    socket.once('close', () => (closed = true));
    response.end(LARGE);
  };
  const open = await start(handler, patience);
  const socket = open();
  socket.write(ASKED);
  socket.on('data', () => {
    socket.pause();
    void setTimeout(10).then(() => socket.resume());
  });
  const startedAtMs = performance.now();
  await expect.poll(() => closed, { timeout: 10_000 }).toBe(true);
  expect(performance.now() - startedAtMs).toBeGreaterThan(2_000);
});

test('when answers that nobody takes are too many together, those that wait for the longest are given up', async () => {
  const closed: number[] = [];
  let count = 0;
  const open = await start(({ socket }, response) => {
    const index = count++;
    socket.once('close', () => closed.push(index));
    response.end(LARGE);
  });
  for (let index = 0; index < 10; index += 1) {
    open().pause().write(ASKED);
    await expect.poll(() => count).toBe(index + 1);
  }
  await expect.poll(() => closed.length).toBeGreaterThan(0);
  await setTimeout(100);
  expect(closed).toEqual([0, 1]);
});

test('whoever sends hundreds of requests ahead gets all answers, and whoever sends thousands none', async () => {
  const open = await start((_request, response) => setImmediate(() => response.end('.')));
  const answersTo = async (requests: number) => {
    const socket = open();
    let text = '';
    socket.on('data', (bytes) => (text += bytes.toString('latin1')));
    socket.write(ASKED.repeat(requests));
    const count = () => text.split('HTTP/1.1 200').length - 1;
    await expect.poll(() => socket.closed || count() >= requests, { timeout: 10_000 }).toBe(true);
    return count();
  };
  expect(await answersTo(500)).toBe(500);
  expect(await answersTo(20_000)).toBeLessThan(20_000);
});

test('when too much waits behind answers, whoever holds most of it is cut off, and not whoever comes last', async () => {
  const open = await start(() => {});
  const announced = `POST / HTTP/1.1\r\nHost: petql\r\nContent-Length: 65536\r\n\r\n`;
  const crowd: Socket[] = [];
  for (let count = 0; count < 20; count += 1) {
    const socket = open();
    crowd.push(socket);
    socket.write(ASKED.repeat(900));
  }
  await expect.poll(() => crowd.filter(({ closed }) => closed).length).toBeGreaterThan(0);
  const honest = open();
  honest.write(ASKED + ASKED + announced);
  await setTimeout(200);
  expect(honest.closed).toBe(false);
  expect(crowd.filter(({ closed }) => closed).length).toBeLessThan(10);
});

// An empty header of two letters weighs as much as one of a hundred: requests of five kilobytes took thirty.
test('what waits behind answers counts with each of its headers', async () => {
  const open = await start(() => {});
  const asked = ASKED.replace('\r\n\r\n', `\r\n${'ab:\r\n'.repeat(140)}\r\n`);
  const crowd = Array.from({ length: 4 }, () => open());
  for (const socket of crowd) socket.write(asked.repeat(900));
  await expect.poll(() => crowd.filter(({ closed }) => closed).length).toBeGreaterThan(0);
});

test("GraphiQL's script has one body for all who ask for it", async () => {
  await using gateway = await startGateway();
  const page = await (await fetch(gateway.endpoint, { headers: { accept: 'text/html' } })).text();
  const [, path = ''] = /src="([^"]+graphiql\.js)"/.exec(page) ?? [];
  const plain = { headers: { 'accept-encoding': 'identity' } };
  const script = await (await fetch(new URL(path, gateway.endpoint), plain)).text();
  expect(script.length).toBeGreaterThan(1_000_000);
  expect(await (await gateway.gateway.fetch(new Request(new URL(path, gateway.endpoint)))).text()).toBe(script);
  const { hostname, port } = new URL(gateway.endpoint);
  const before = process.memoryUsage().arrayBuffers;
  const sockets = Array.from({ length: 20 }, () => connect(Number(port), hostname).pause());
  for (const socket of sockets) socket.write(`GET ${path} HTTP/1.1\r\nHost: petql\r\n\r\n`.repeat(5));
  await setTimeout(2_000);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * script.length);
  for (const socket of sockets) socket.destroy();
});
