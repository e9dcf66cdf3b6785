import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

/** An address of this machine that is not loopback; some machines have none. */
const OUTER = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

let gateway: TestGateway;
let everywhere: Server;

beforeAll(async () => {
  gateway = await startGateway({ gateway: { admin: true } });
  everywhere = createServer(gateway.gateway.admin).listen(0, '0.0.0.0');
  await once(everywhere, 'listening');
});
afterAll(async () => {
  everywhere.close();
  await gateway[Symbol.asyncDispose]();
});

async function statusOf(address: string, host: string, path = '/metrics'): Promise<number | undefined> {
  const { port } = new URL(gateway.adminOrigin);
  const sent = request({
    host: address,
    port: address === '127.0.0.1' ? port : (everywhere.address() as AddressInfo).port,
    path,
    headers: { host },
  }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

test.each(['/metrics', '/quota', '/quota/events', '/nothing'])(
  'a page whose name leads to loopback cannot read %s',
  async (path) => {
    expect(await statusOf('127.0.0.1', 'evil.example:9090', path)).toBe(421);
  },
);

test.each([
  'localhost.evil.example',
  'evil.localhost.example',
  '127.0.0.1.evil.example',
  '1127.0.0.1',
  '[evil.example]',
])('a public name such as the Host %j is not answered on loopback', async (host) => {
  expect(await statusOf('127.0.0.1', host)).toBe(421);
});

const LOOPBACK = ['localhost', 'LOCALHOST:9090', 'petql.localhost', '127.0.0.1:9090', '127.1.2.3', '[::1]:9090'];
/** As a sidecar or a proxy of the pod passes them on. */
const OF_OTHERS = ['10.1.2.3:9090', '[fd00::1]:9090', 'petql-admin:9090', 'petql.default.svc.cluster.local'];

// The rule of the public listener.
test.each([...LOOPBACK, ...OF_OTHERS])(
  'the Host %j, which no public server of names can lead here, is answered on loopback',
  async (host) => {
    expect(await statusOf('127.0.0.1', host)).toBe(200);
  },
);

test.runIf(OUTER)('any Host is answered at another address, where the operator has put it', async () => {
  expect(await statusOf(OUTER ?? '', 'metrics.internal')).toBe(200);
});
