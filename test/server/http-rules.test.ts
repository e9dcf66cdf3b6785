import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const BODY = '{"query":"{ __typename }"}';
const ANSWERED = /^HTTP\/1\.1 200 .*"__typename":"Query"/s;

let gateway: TestGateway;
/** What a program has that mounts petql in a server of its own. */
let own: Server;
let ownOrigin: string;

beforeAll(async () => {
  gateway = await startGateway({ gateway: { admin: true, corsOrigins: ['https://a.example'] } });
  own = createServer(gateway.gateway.handle);
  ownOrigin = await originOf(own);
});
afterAll(async () => {
  own.close();
  await gateway[Symbol.asyncDispose]();
});

async function originOf(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Sent {
  readonly target?: string;
  readonly host?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  readonly origin?: string;
}

/** What comes back to a POST, with the connection at its end. */
async function post(sent: Sent = {}): Promise<string> {
  const { target = '/graphql', host = 'Host: petql', headers = [], body = BODY } = sent;
  const lines = ['Connection: close', 'Content-Type: application/json', `Content-Length: ${body.length}`];
  const head = [`POST ${target} HTTP/1.1`, host, ...lines, ...headers].join('\r\n');
  return exchange(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), Buffer.from(body)]), sent.origin);
}

async function exchange(bytes: Buffer | string, origin = gateway.endpoint): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return Buffer.concat(await socket.toArray()).toString();
}

describe('a request that names the whole address', () => {
  test.each(['http://petql/graphql', 'HTTPS://petql.example:8443/graphql'])(
    '%s is answered by its path',
    async (target) => {
      expect(await post({ target })).toMatch(ANSWERED);
      expect(await post({ target, origin: ownOrigin })).toMatch(ANSWERED);
    },
  );

  test('is answered by its query too, and by the bare address', async () => {
    const get = (target: string) => exchange(`GET ${target} HTTP/1.1\r\nHost: petql\r\nConnection: close\r\n\r\n`);
    expect(await get('http://petql/graphql?query={__typename}')).toMatch(ANSWERED);
    expect(await get('http://petql')).toMatch(/^HTTP\/1\.1 302 /);
    expect(await get('http://petql?x=/graphql')).toMatch(/^HTTP\/1\.1 302 /);
    expect(await get('ftp://petql/graphql')).toMatch(/^HTTP\/1\.1 404 /);
  });

  test('has that host and no other, also where operators look', async () => {
    const get = (target: string, host: string) =>
      exchange(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, gateway.adminOrigin);
    expect(await get('http://localhost/metrics', 'rebound.example')).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get('http://rebound.example/metrics', 'localhost')).toMatch(/^HTTP\/1\.1 421 /);
  });
});

test.each(['Host: petql\r\nHost: other', 'Host: petql\r\nhost: petql'])('several hosts are none: %j', async (host) => {
  expect(await post({ host })).toMatch(/^HTTP\/1\.1 400 .*^connection: close/ims);
});

// Node would refuse these itself, past all that bounds what a connection may ask for.
describe('what Node would refuse itself is refused like all else', () => {
  const refused = (status: number) =>
    new RegExp(`^HTTP/1\\.1 ${status} .*^connection: close\r\ncontent-length: 0`, 'ims');

  test.each(['/graphql', 'http://petql/graphql'])(
    'no host for %s, but for HTTP/1.0, which knew of none',
    async (target) => {
      expect(await post({ target, host: 'X: petql' })).toMatch(refused(400));
      expect(await exchange('GET /health/live HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test('what a client expects that nobody knows', async () => {
    expect(await post({ headers: ['Expect: a-miracle'] })).toMatch(refused(417));
    expect(await exchange('GET /health/live HTTP/1.0\r\nExpect: a-miracle\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('whoever expects to be told to go on is told so', async () => {
    const answer = await post({ headers: ['Expect: 100-continue'] });
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 .*"__typename":"Query"/s);
  });
});

// Thousands of empty ones fit into 16 KiB, and take milliseconds and a quarter of a megabyte.
describe('headers', () => {
  /** Beside the four that each request here has. */
  const others = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}:`);

  test('may be 150', async () => {
    expect(await post({ headers: others(146) })).toMatch(ANSWERED);
  });

  test.each([151, 152, 200, 3_000])('are too many when they are %i', async (count) => {
    const refused = /^HTTP\/1\.1 431 .*^connection: close/ims;
    expect(await post({ headers: others(count - 4) })).toMatch(refused);
  });

  test('that never end are refused once they are too many', async () => {
    const answer = await exchange(`GET / HTTP/1.1\r\nHost: petql\r\n${'ab:\r\n'.repeat(3_000)}`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('are never dropped in silence: a key at their end counts, or all are refused', async () => {
    for (let count = 135; count < 155; count += 1) {
      const key = 'Authorization: Bearer demo-free';
      const answer = await post({
        headers: [key, ...others(count), key],
        body: '{"query":"{ pets(limit: 1) { id } }"}',
      });
      expect(answer).toMatch(/^HTTP\/1\.1 4[03]1 /);
    }
  });
});

test('the answer to a browser that asks first says no length of a body that it cannot have', async () => {
  const lines = [
    'Host: petql',
    'Connection: close',
    'Origin: https://a.example',
    'Access-Control-Request-Method: POST',
  ];
  const answer = await exchange(`OPTIONS /graphql HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 204 .*\r\n\r\n$/s);
  expect(answer).not.toMatch(/^content-length|^transfer-encoding/im);
});

describe('a body with a content coding', () => {
  test.each(['gzip', 'br', 'x-unknown', 'gzip, identity'])('such as %s is refused, packed or not', async (coding) => {
    for (const body of [BODY, gzipSync(BODY)]) {
      const answer = await post({ headers: [`Content-Encoding: ${coding}`], body });
      expect(answer).toMatch(/^HTTP\/1\.1 415 .*"code":"BAD_USER_INPUT"/s);
    }
  });

  test('that says it has none is read', async () => {
    expect(await post({ headers: ['Content-Encoding: identity'] })).toMatch(ANSWERED);
  });

  test("that a framework's parser has undone is read", async () => {
    const parsing = createServer((request, response) => {
      request.resume().once('end', () => {
        gateway.gateway.handle(Object.assign(request, { body: JSON.parse(BODY) }), response);
      });
    });
    const origin = await originOf(parsing);
    const headers = ['Content-Encoding: gzip', 'Authorization: Bearer demo-free'];
    const answer = await post({ headers, body: gzipSync(BODY), origin });
    expect(answer).toMatch(ANSWERED);
    parsing.close();
  });
});
