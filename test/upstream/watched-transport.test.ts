import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createTransport } from '../../src/upstream/transport.ts';
import type { Transport, TransportFailure, TransportResponse } from '../../src/upstream/transport.ts';
import { watchedTransport } from '../../src/upstream/watched-transport.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { startGateway } from '../support/start-gateway.ts';

const GET = { method: 'GET', path: '/pets', headers: {} } as const;
const OK: TransportResponse = { kind: 'response', status: 200, headers: {}, body: Buffer.alloc(0) };
const REFUSED: TransportFailure = { kind: 'failure', reason: 'unreachable', sent: false, code: 'ECONNREFUSED' };
const SLOW: TransportFailure = { kind: 'failure', reason: 'timeout', sent: true };
const CROWDED: TransportFailure = { kind: 'failure', reason: 'timeout', sent: false };

function start() {
  const { log, lines } = createMemoryLog();
  const time = { ms: 0 };
  let next: TransportFailure | TransportResponse = OK;
  const inner: Transport = { send: () => Promise.resolve(next), close: () => Promise.resolve() };
  const transport = watchedTransport(inner, { elapsed: () => time.ms }, log);
  const send = async (...results: (typeof next)[]) => {
    for (next of results) expect(await transport.send(GET)).toBe(next);
  };
  return { transport, send, time, told: () => lines.map(({ level, reason, msg }) => [level, reason, msg]) };
}

const AWAY = [40, 'ECONNREFUSED', 'the service cannot be reached'];
const BACK = [30, undefined, 'the service can be reached again'];

test('that the service cannot be reached is told once, with the reason, and once that it can again', async () => {
  const { send, told } = start();
  await send(OK, REFUSED, REFUSED, CROWDED, REFUSED);
  expect(told()).toEqual([AWAY]);
  await send(SLOW, OK, OK);
  expect(told()).toEqual([AWAY, BACK]);
});

test('a service that comes and goes is told of once a minute', async () => {
  const { send, told, time } = start();
  for (; time.ms < 120_000; time.ms += 1_000) await send(REFUSED, OK);
  expect(told()).toEqual([AWAY, BACK, AWAY, BACK]);
});

test('a service that stays away is told of once its last end is a minute old', async () => {
  const { send, told, time } = start();
  await send(REFUSED, OK, REFUSED);
  time.ms += 60_000;
  await send(REFUSED, REFUSED);
  expect(told()).toEqual([AWAY, BACK, AWAY]);
});

test('what fails once it is closed is not told', async () => {
  const { transport, send, told } = start();
  await transport.close();
  await send(REFUSED);
  expect(told()).toEqual([]);
});

test.each<[string, string, RegExp]>([
  ['speaks no TLS', 'https://127.0.0.1', /^(ERR_SSL_\w+|EPROTO)$/],
  ['has no address', 'http://petql.invalid', /^(ENOTFOUND|EAI_AGAIN)$/],
])('of a service that %s, the code is known', async (_name, origin, code) => {
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n').on('error', () => {}));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const transport = createTransport({ baseUrl: new URL(`${origin}:${port}/v1`), timeoutMs: 15_000 });
  onTestFinished(() => transport.close());
  expect(await transport.send(GET)).toMatchObject({
    reason: 'unreachable',
    sent: false,
    code: expect.stringMatching(code),
  });
});

// Whoever had a wrong address or an expired certificate saw that the service could not be reached, and not why.
test('the log of a gateway has the reason, and its answers and the log have no address', async () => {
  await using gateway = await startGateway({ gateway: { petApiUrl: 'http://127.0.0.1:9/v1' } });
  for (let call = 0; call < 3; call += 1) {
    const { errors } = await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
    expect(errors?.[0]?.extensions.code).toBe('DOWNSTREAM_SERVICE_ERROR');
    expect(JSON.stringify(errors)).not.toMatch(/ECONNREFUSED|127\.0\.0\.1/);
  }
  const told = gateway.logLines.filter(({ msg }) => String(msg).startsWith('the service can'));
  expect(told).toMatchObject([{ level: 40, reason: 'ECONNREFUSED' }]);
  expect(JSON.stringify(told)).not.toContain('127.0.0.1');
});
