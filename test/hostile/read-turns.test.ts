import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { RequestHandler } from '../../src/server/listener.ts';
import { createReadTurns } from '../../src/server/read-turns.ts';

/** Node tells of each request that it makes there, whoever answers it. */
const MADE = 'http.server.request.start';
const PATIENT = { timeout: 15_000 };
const ASKED = 'GET / HTTP/1.1\r\nHost: petql\r\n\r\n';
const IN_PIECES = 'POST / HTTP/1.1\r\nHost: petql\r\nTransfer-Encoding: chunked\r\n\r\n';
const CRUMB = '1\r\n \r\n';
const CRUMBS = 8_000;
/** What one socket can bring with a read, and what there is room for before. */
const MOST_IN_A_TURN = 10_922 + 4_096;

async function start(handler: RequestHandler) {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.stop(0));
  const { hostname, port } = new URL(listener.origin);
  return async () => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    const come = { text: '' };
    socket.on('data', (bytes) => (come.text += bytes.toString('latin1')));
    return { socket, come };
  };
}

/** Some whose connections stand on both sides: each is taken in a turn of its own, and what it sends read in the next one. */
async function openCrowd(open: Awaited<ReturnType<typeof start>>) {
  const crowd = await Promise.all(Array.from({ length: 12 }, open));
  for (const { socket } of crowd) socket.write(ASKED);
  await expect.poll(() => crowd.filter(({ come }) => come.text !== '').length, PATIENT).toBe(crowd.length);
  return crowd;
}

/** Counts what happens within a turn of the event loop. */
function createTurnCount() {
  const count = { most: 0, now: 0 };
  return {
    count,
    add() {
      if (count.now === 0) setImmediate(() => (count.now = 0));
      count.now += 1;
      count.most = Math.max(count.most, count.now);
    },
  };
}

// A hundred connections with eight thousand pieces each held the process for a second and more.
test('pieces of many bodies that come at once are read in several turns, and all of them are read', async () => {
  const pieces = createTurnCount();
  let begun = 0;
  const open = await start((request, response) => {
    begun += 1;
    let length = 0;
    request.on('data', () => (pieces.add(), (length += 1)));
    request.on('end', () => response.end(`<${length}>`));
  });
  const crowd = await Promise.all(Array.from({ length: 30 }, open));
  for (const { socket } of crowd) socket.write(IN_PIECES);
  await expect.poll(() => begun, PATIENT).toBe(30);
  for (const { socket } of crowd) socket.write(`${CRUMB.repeat(CRUMBS)}0\r\n\r\n`);
  await expect
    .poll(() => crowd.filter(({ come }) => come.text.includes(`<${CRUMBS}>`)).length, PATIENT)
    .toBe(crowd.length);
  expect(pieces.count.most).toBeLessThanOrEqual(MOST_IN_A_TURN);
});

test('requests that many connections send ahead are read in several turns, and all of them are answered', async () => {
  const connections = createTurnCount();
  const ahead = new Set<Socket>();
  const open = await start(({ socket, url }, response) => {
    if (url === '/ahead' && !ahead.has(socket)) {
      connections.add();
      ahead.add(socket);
    }
    setImmediate(() => response.end('.'));
  });
  const crowd = await Promise.all(Array.from({ length: 12 }, open));
  const answered = (count: number) =>
    crowd.filter(({ come }) => come.text.split('HTTP/1.1 200').length - 1 === count).length;
  for (const { socket } of crowd) socket.write(ASKED);
  await expect.poll(() => answered(1), PATIENT).toBe(crowd.length);
  for (const { socket } of crowd) socket.write(ASKED.replace('/', '/ahead').repeat(990));
  await expect.poll(() => answered(991), PATIENT).toBe(crowd.length);
  expect(connections.count.most).toBeLessThanOrEqual(3);
});

// With a read of 64 KiB one connection brings more than three thousand, and ten of them held the process for a second.
test.each([
  ['no host', 'GET / HTTP/1.1\r\n\r\n', 3_600],
  ['an unknown expectation', 'GET / HTTP/1.1\r\nHost:a\r\nExpect:x\r\n\r\n', 1_600],
  ['several hosts', 'GET / HTTP/1.1\r\nHost:a\r\nHost:b\r\n\r\n', 1_800],
  ['nothing wrong but their number', 'GET / HTTP/1.1\r\nHost:a\r\n\r\n', 2_400],
])('requests with %s count before and after their connection is cut off', async (_name, asked, count) => {
  const crowd = await openCrowd(await start((_request, response) => setImmediate(() => response.end('.'))));
  const requests = createTurnCount();
  subscribe(MADE, requests.add);
  onTestFinished(() => void unsubscribe(MADE, requests.add));
  for (const { socket } of crowd) socket.write(asked.repeat(count));
  await expect.poll(() => crowd.filter(({ socket }) => socket.closed).length, PATIENT).toBe(crowd.length);
  for (const { come } of crowd) expect(come.text.split('HTTP/1.1 ').length - 1).toBeLessThanOrEqual(2);
  // What one read brings, and what there is room for before it.
  expect(requests.count.most).toBeLessThanOrEqual(count + 256);
});

test('the body of a request that is refused is counted like any other', async () => {
  const crowd = await openCrowd(await start((_request, response) => response.end('.')));
  const refused = createTurnCount();
  subscribe(MADE, refused.add);
  onTestFinished(() => void unsubscribe(MADE, refused.add));
  const head = IN_PIECES.replace('Host', 'Host: a\r\nHost');
  for (const { socket } of crowd) socket.write(`${head}${CRUMB.repeat(CRUMBS)}`);
  await expect.poll(() => crowd.filter(({ socket }) => socket.closed).length, PATIENT).toBe(crowd.length);
  expect(refused.count.most).toBe(1);
});

// Node keeps 64 KiB of a body that nobody asks for yet, be it in pieces of one byte with hundreds around each.
test('of a body in pieces that waits one read is kept, and the rest is read when it is its turn', async () => {
  let first = () => {};
  let server: Socket | undefined;
  const open = await start((request, response) => {
    if (request.method === 'GET') {
      server = request.socket;
      first = () => response.end();
      return;
    }
    request.resume().once('end', () => response.end('whole'));
  });
  const { socket, come } = await open();
  socket.write(`${ASKED}${IN_PIECES}${CRUMB.repeat(100_000)}0\r\n\r\n`);
  await expect.poll(() => server?.bytesRead, PATIENT).toBeGreaterThan(50_000);
  for (let turn = 0; turn < 1_000; turn += 1) await nextTurn();
  expect(server?.bytesRead).toBeLessThan(150_000);
  first();
  await expect.poll(() => come.text, PATIENT).toContain('whole');
});

test('bodies in pieces that wait count with all that their pieces take', async () => {
  const open = await start(() => {});
  const crowd = await Promise.all(Array.from({ length: 40 }, open));
  for (const { socket } of crowd) socket.write(`${ASKED}${IN_PIECES}${CRUMB.repeat(CRUMBS)}`);
  await expect.poll(() => crowd.filter(({ socket }) => socket.closed).length, PATIENT).toBeGreaterThan(5);
});

/** Sockets that write down what is done with them. */
function createSockets(count: number) {
  const done: string[] = [];
  const sockets = Array.from({ length: count }, (_, index) => {
    let paused = false;
    return Object.assign(new EventEmitter(), {
      isPaused: () => paused,
      pause: () => ((paused = true), done.push(`pause ${index}`)),
      resume: () => ((paused = false), done.push(`resume ${index}`)),
    }) as unknown as Socket;
  });
  return { done, sockets };
}

test('once a turn has had its pieces all others wait for the next one, and go on before those that were read', async () => {
  const { done, sockets } = createSockets(4);
  const [one, two, three, four] = sockets as [Socket, Socket, Socket, Socket];
  three.pause();
  done.length = 0;
  const turns = createReadTurns({
    connections: new Map(sockets.map((socket) => [socket, undefined])),
    mayGoOn: (socket) => socket !== four,
  });
  turns.read(one, 4_000);
  expect(done).toEqual([]);
  turns.read(one, 96);
  turns.read(one, 1);
  expect(done).toEqual(['pause 0', 'pause 1', 'pause 3']);
  await nextTurn();
  // What somebody else has paused, or is to stay so, is left alone.
  expect(done.slice(3)).toEqual(['resume 1', 'resume 0']);
  turns.read(two, 4_095);
  await nextTurn();
  turns.read(two, 4_095);
  expect(done).toHaveLength(5);
});

/** Sockets that have their turns, each with more than there is room for in one. */
function createGreedy(count: number) {
  const { done, sockets } = createSockets(count);
  const connections = new Map(sockets.map((socket) => [socket, undefined]));
  const turns = createReadTurns({ connections, mayGoOn: () => true });
  return {
    /** @returns in which order they go on after that. */
    async read(index: number): Promise<string> {
      done.length = 0;
      turns.read(sockets[index] as Socket, 10_000);
      await nextTurn();
      return done.flatMap((one) => (one.startsWith('resume') ? one.slice(7) : [])).join(' ');
    },
  };
}

// Two that always had more to send took turns with each other alone.
test('whoever was read goes behind all others, those too that were read before', async () => {
  const greedy = createGreedy(4);
  expect(await greedy.read(0)).toBe('1 2 3 0');
  expect(await greedy.read(1)).toMatch(/0 1$/);
  expect(await greedy.read(2)).toBe('3 0 1 2');
  expect(await greedy.read(0)).toMatch(/1 2 0$/);
  expect(await greedy.read(3)).toBe('1 2 0 3');
});

test('every other time the newest of those that were never read go first', async () => {
  const greedy = createGreedy(5);
  expect(await greedy.read(0)).toBe('1 2 3 4 0');
  expect(await greedy.read(1)).toBe('4 3 2 0 1');
  expect(await greedy.read(4)).toBe('2 3 0 1 4');
  expect(await greedy.read(2)).toBe('3 0 1 4 2');
});
