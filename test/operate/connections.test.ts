import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test as oneTest } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { until } from '../support/until.ts';

/** Processes start and end in real time, so the tests wait together. */
const test = oneTest.concurrent;

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
const LIVE = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n';

const closing = new AsyncDisposableStack();
afterAll(() => closing.disposeAsync());

async function start(...args: string[]): Promise<PetqlProcess> {
  const petql = await startPetql(['--port', '0', ...args]);
  closing.defer(async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  });
  return petql;
}

/** A connection, and what has come on it. */
async function open({
  address,
}: Pick<PetqlProcess, 'address'>): Promise<{ socket: Socket; read: () => string; isOpen: () => boolean }> {
  const { hostname, port } = new URL(address);
  const socket = connect({ host: hostname, port: Number(port) });
  let received = '';
  let isOpen = true;
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  socket.on('error', () => {}).on('close', () => (isOpen = false));
  closing.defer(() => void socket.destroy());
  await once(socket, 'connect');
  return { socket, read: () => received, isOpen: () => isOpen };
}

// A proxy that has opened it ahead of its first request would take a 408 for the response to that.
test('a connection that asks nothing gets nothing, and answers its first request long after; half a request gets 408', async () => {
  const petql = await start('--headers-timeout-ms', '1000');
  const [ahead, half, late] = await Promise.all([open(petql), open(petql), open(petql)]);
  half.socket.write('GET /health/live HTTP/1.1\r\n');
  late.socket.write(LIVE);
  await until(() => late.read().includes('200 OK'));
  late.socket.write('GET /hea');

  await until(() => !half.isOpen() && !late.isOpen());
  expect(half.read()).toBe('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n');
  expect(late.read().match(/HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 408']);
  await pause(3_000);
  expect([ahead.read(), ahead.isOpen()]).toEqual(['', true]);
  ahead.socket.write(LIVE);
  await until(() => ahead.read().startsWith('HTTP/1.1 200 OK'));
});

test('what is no HTTP gets 400, and headers that are too long 431', async () => {
  const petql = await start();
  const [nonsense, long] = await Promise.all([open(petql), open(petql)]);
  nonsense.socket.write('\u0016\u0003\u0001 what a TLS client says\r\n\r\n');
  long.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`);
  await until(() => !nonsense.isOpen() && !long.isOpen());
  expect([nonsense.read(), long.read()].map((text) => text.split('\r\n')[0])).toEqual([
    'HTTP/1.1 400 Bad Request',
    'HTTP/1.1 431 Request Header Fields Too Large',
  ]);
});

test.each(['SIGTERM', 'SIGINT'] as const)('no connection without a request holds a stop by %s', async (signal) => {
  const petql = await start();
  const [, , used] = await Promise.all([open(petql), open(petql), open(petql)]);
  used.socket.write(LIVE);
  await until(() => used.read().includes('200 OK'));
  const startedMs = performance.now();
  petql.kill(signal);
  expect(await petql.exited).toBe(0);
  // The grace of running requests is seven seconds.
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});

test('connections are kept for as long as a load balancer needs', async () => {
  const [usual, long, short] = await Promise.all([
    start(),
    start('--keep-alive-ms', '620000'),
    start('--keep-alive-ms', '1000'),
  ]);
  const hint = async ({ address }: PetqlProcess) =>
    (await fetch(new URL('/health/live', address))).headers.get('keep-alive');
  expect(await Promise.all([usual, long].map(hint))).toEqual(['timeout=65', 'timeout=620']);

  const [idle, kept] = await Promise.all([open(short), open(usual)]);
  for (const { socket } of [idle, kept]) socket.write(LIVE);
  await until(() => !idle.isOpen());
  expect(idle.read().match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200']);
  expect(kept.isOpen()).toBe(true);
});

// As Google's balancers, which connect ahead and keep a connection for ten minutes: longer than a running request may be silent.
test('a connection is kept as long before its first request as after it, and a silent response is cut off earlier', async () => {
  const times = { idleMs: 400, keepAliveMs: 4_000 };
  const { origin: address, stop } = await listen((request, response) => request.url === '/' && response.end('here'), {
    host: '127.0.0.1',
    port: 0,
    ...times,
  });
  closing.defer(() => stop({ graceMs: 0 }));
  const [unused, used, silent] = await Promise.all([open({ address }), open({ address }), open({ address })]);
  const ask = ({ socket }: typeof unused, path: string) =>
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  ask(used, '/');
  ask(silent, '/silent');
  await until(() => !silent.isOpen());
  expect(silent.read()).toBe('');
  await pause(1_500);
  expect([unused, used].map(({ isOpen }) => isOpen())).toEqual([true, true]);
  ask(unused, '/');
  ask(used, '/');
  await until(() => unused.read().endsWith('here') && used.read().match(/here/g)?.length === 2);
});

oneTest.skipIf(!HAS_IPV6)('at :: it answers on the addresses of both families', async () => {
  const petql = await start('--host', '::', '--admin-host', '::', '--admin-port', '0');
  const { port } = new URL(petql.address);
  const [, adminPort = ''] = /^Admin +http:\/\/localhost:(\d+)/m.exec(petql.output.stdout) ?? [];
  for (const host of ['127.0.0.1', '[::1]']) {
    expect((await fetch(`http://${host}:${port}/health/ready`)).status).toBe(200);
    expect((await fetch(`http://${host}:${adminPort}/metrics`)).status).toBe(200);
  }
});
