import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { HttpCounts } from '../../src/server/http-counts.ts';
import { listen } from '../../src/server/listener.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { startPetql } from '../support/run-petql.ts';
import { until } from '../support/until.ts';
import { exchange, wireRequest } from '../support/wire.ts';

const closing = new AsyncDisposableStack();
afterAll(() => closing.disposeAsync());

const warningsIn = (stderr: string) =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ level }) => level === 'warn');

test('responses are counted by their status, and a wrong name of petql has one warning', async () => {
  const args = ['--port', '0', '--admin-port', '0', '--pet-api-url', 'http://127.0.0.1:9/v1', '--pet-api-key', 'a-key'];
  const petql = await startPetql(args);
  closing.defer(async () => {
    petql.kill('SIGTERM');
    await petql.exited;
  });
  const post = (host: string, body = '{"query":"{ __typename }"}') =>
    exchange(wireRequest({ headers: [`Host: ${host}`], body }), petql.address);
  for (const name of ['petql', 'pets.example', 'pets.example:4000', 'b.example']) await post(name);
  await post('petql', ' '.repeat(66_000));
  await exchange('nonsense\r\n\r\n', petql.address);
  await exchange(wireRequest({ method: 'GET', target: '/nothing' }), petql.address);

  const [, admin = ''] = /^Admin +(\S+)\/metrics/m.exec(petql.output.stdout) ?? [];
  const text = await (await fetch(`${admin}/metrics`)).text();
  const counts = Object.fromEntries(
    [...text.matchAll(/^petql_http_responses_total\{status="(\d+)"\} (\d+)/gm)].map(([, status, count]) => [
      status,
      Number(count),
    ]),
  );
  expect(counts).toEqual({ 200: 1, 400: 1, 404: 1, 413: 1, 421: 3 });
  expect(text).toMatch(/^petql_dropped_connections_total 0$/m);
  const warnings = warningsIn(petql.output.stderr).filter(({ status }) => status === 421);
  expect(warnings).toMatchObject([{ host: 'pets.example', msg: expect.stringContaining('--allowed-hosts') }]);
});

test('dropped connections are counted, and have one warning', async () => {
  const { log, lines } = createMemoryLog();
  const counts = new HttpCounts(log);
  const listener = await listen((_, response) => response.end('here'), {
    host: '127.0.0.1',
    port: 0,
    counts,
    maxConnections: 2,
  });
  const { port } = new URL(listener.origin);
  const sockets: Socket[] = Array.from({ length: 5 }, () => connect(Number(port), '127.0.0.1').on('error', () => {}));
  closing.defer(() => {
    for (const socket of sockets) socket.destroy();
    return listener.stop({ graceMs: 0 });
  });
  await until(() => counts.droppedConnections === 3);
  expect(lines.filter(({ level }) => level === 40)).toMatchObject([{ maxConnections: 2 }]);
});

test('a client that leaves before its response counts as none', async () => {
  const counts = new HttpCounts(createMemoryLog().log);
  const arrived = Promise.withResolvers<void>();
  const listener = await listen(
    (asked, response) => (asked.url === '/' ? response.writeHead(204).end() : arrived.resolve()),
    {
      host: '127.0.0.1',
      port: 0,
      counts,
    },
  );
  closing.defer(() => listener.stop({ graceMs: 0 }));
  const leaving = request(`${listener.origin}/slow`).on('error', () => {});
  leaving.end();
  await arrived.promise;
  leaving.destroy();
  const [response] = (await once(request(listener.origin).end(), 'response')) as [IncomingMessage];
  response.resume();
  await until(() => counts.responses.size > 0);
  expect([...counts.responses]).toEqual([[204, 1]]);
});
