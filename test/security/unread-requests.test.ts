import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withHostCheck } from '../../src/server/http/host-check.ts';
import { listen } from '../../src/server/listener.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';
import { wireRequest } from '../support/wire.ts';

const CREATE = JSON.stringify({
  query: 'mutation { createPet(input: { name: "Forged", categoryId: 1 }) { pet { id } } }',
});
/** As the next client of a proxy sends it, on the connection that the proxy keeps. */
const NEXT = wireRequest({
  headers: ['Connection: keep-alive', 'Authorization: Bearer demo-free', 'X-Real-IP: 192.0.2.1'],
  body: CREATE,
});
const LONG = ' '.repeat(66_000);

let gateway: TestGateway;
const closing = new AsyncDisposableStack();

beforeAll(async () => {
  gateway = closing.use(await startGateway({ gateway: { admin: true } }));
});
afterAll(() => closing.disposeAsync());

/** Opens a connection, and sends the first part of a request. */
function send(endpoint: string, headers: readonly string[], part: string, target?: string) {
  const { hostname, port } = new URL(endpoint);
  const socket = connect(Number(port), hostname);
  let received = '';
  let isOpen = true;
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  socket.on('error', () => {}).on('close', () => (isOpen = false));
  closing.defer(() => void socket.destroy());
  socket.write(
    wireRequest({ ...(target !== undefined && { target }), headers: ['Connection: keep-alive', ...headers] }),
  );
  socket.write(part);
  return { socket, read: () => received, isOpen: () => isOpen };
}

/** The status and the Connection of each response. */
const responsesIn = (bytes: string) =>
  [...bytes.matchAll(/HTTP\/1\.1 (\d+).*?^connection: (\S+)/gims)].map(([, status, connection]) => [
    Number(status),
    connection,
  ]);

const TYPE = 'Content-Type: application/json';
/** Requests that are answered before their last byte has come, in front of which a proxy keeps its connections. */
const EARLY: [name: string, status: number, headers: string[], parts: [sent: string, rest: string]][] = [
  ['a body over the limit', 413, [TYPE, `Content-Length: ${66_000 + NEXT.length}`], [LONG, NEXT.toString()]],
  [
    'a body over the limit, in chunks',
    413,
    [TYPE, 'Transfer-Encoding: chunked'],
    [`${(66_000).toString(16)}\r\n${LONG}\r\n`, `${NEXT.length.toString(16)}\r\n${NEXT.toString()}\r\n0\r\n\r\n`],
  ],
  [
    'a compressed body',
    415,
    [TYPE, 'Content-Encoding: gzip', `Content-Length: ${10 + NEXT.length}`],
    ['compressed', NEXT.toString()],
  ],
  [
    'an expectation that petql does not know',
    417,
    [TYPE, 'Expect: a-pet', `Content-Length: ${NEXT.length}`],
    ['', NEXT.toString()],
  ],
];

test.each(EARLY)(
  'the response to %s, before its end, ends the connection',
  async (_name, status, headers, [part, rest]) => {
    const before = gateway.petApi.log.length;
    const { socket, read, isOpen } = send(gateway.endpoint, headers, part);
    await until(() => /\r\n\r\n/.test(read()));
    expect(responsesIn(read())).toEqual([[status, 'close']]);
    // What follows is the rest of the body, and behind it the request of another client.
    socket.write(rest);
    socket.write(NEXT);
    await until(() => !isOpen());
    expect(responsesIn(read())).toEqual([[status, 'close']]);
    expect(gateway.petApi.log).toHaveLength(before);
  },
);

test('the admin pages end a connection whose request they do not read', async () => {
  const { read, isOpen } = send(gateway.adminOrigin, ['Content-Length: 100'], 'a part', '/metrics');
  await until(() => !isOpen());
  expect(responsesIn(read())).toEqual([[405, 'close']]);
});

test('a request behind one under a foreign name is not run', async () => {
  const names: (string | undefined)[] = [];
  const handler = withHostCheck(
    (request, response) => {
      names.push(request.headers.host);
      response.end();
    },
    { allowedHosts: [], corsOrigins: [] },
  );
  const listener = await listen(handler, { host: '127.0.0.1', port: 0 });
  closing.defer(() => listener.stop({ graceMs: 0 }));
  const { read, isOpen } = send(listener.origin, ['Host: evil.example', 'Content-Length: 2'], `{}${NEXT.toString()}`);
  await until(() => !isOpen());
  expect([names, responsesIn(read())]).toEqual([[], [[421, 'close']]]);
});

test('frameworks and servers of others end the connection too', async () => {
  const server = createServer(gateway.gateway.handle).listen(0, '127.0.0.1');
  closing.defer(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const [, status, headers, [part]] of EARLY.slice(0, 3)) {
    const { read } = send(`http://127.0.0.1:${port}`, headers, part);
    await until(() => /\r\n\r\n/.test(read()));
    expect(responsesIn(read())).toEqual([[status, 'close']]);
  }
});

test.each([
  ['over the limit', 413, {}, LONG],
  ['in another coding', 415, { 'content-encoding': 'br' }, 'compressed'],
])('fetch says so to the server around it: a body %s', async (_name, status, headers, body) => {
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body };
  const response = await gateway.gateway.fetch(new Request('http://localhost/graphql', init));
  expect([response.status, response.headers.get('connection')]).toEqual([status, 'close']);
});

test.each([
  ['a refused type', ['Content-Type: text/plain'], 415],
  ['no acceptable type', [TYPE, 'Accept: image/png'], 406],
  ['no GraphQL', [TYPE], 400],
])('a request that has come to its end keeps its connection: %s', async (_name, headers, status) => {
  const { socket, read } = send(gateway.endpoint, [...headers, 'Content-Length: 2'], '[]');
  await until(() => /\r\n\r\n/.test(read()));
  socket.write(wireRequest({ headers: [TYPE], body: '{"query":"{ __typename }"}' }));
  await until(() => read().includes('"__typename":"Query"'));
  expect(responsesIn(read()).map(([got]) => got)).toEqual([status, 200]);
});
