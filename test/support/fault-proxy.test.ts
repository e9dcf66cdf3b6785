import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRandom } from './random.ts';
import { startFaultProxy } from './fault-proxy.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { mixedFaults } from './wire-fault.ts';
import type { WireFault } from './wire-fault.ts';

const BODY = JSON.stringify(Array.from({ length: 40 }, (_, id) => ({ id })));

let proxy: FaultProxy;
let arrivals = 0;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const service = createServer((_request, response) => {
  arrivals += 1;
  response.setHeader('content-length', Buffer.byteLength(BODY)).end(BODY);
});

beforeEach(async () => {
  arrivals = 0;
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  proxy = await startFaultProxy({ target: `http://127.0.0.1:${(service.address() as AddressInfo).port}/v1` });
});
afterEach(async () => {
  await proxy.close();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
});

interface Seen {
  readonly headers: boolean;
  readonly bytes: number;
  readonly tookMs: number;
  readonly end: string;
}

/** What a client sees, that waits so long. */
function ask(waitMs = 2_000): Promise<Seen> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    let headers = false;
    let bytes = 0;
    const settle = (end: string) => resolve({ headers, bytes, tookMs: performance.now() - startedMs, end });
    const asking = request(`${proxy.url}/pets`, { agent }, (response) => {
      headers = true;
      response.on('data', (chunk: Buffer) => (bytes += chunk.length));
      response.on('error', ({ code }: NodeJS.ErrnoException) => settle(code ?? 'error'));
      response.on('end', () => settle('whole'));
    });
    asking.on('error', ({ code }: NodeJS.ErrnoException) => settle(code ?? 'error'));
    setTimeout(() => {
      settle('nothing more');
      asking.destroy();
    }, waitMs).unref();
    asking.end();
  });
}

const WHOLE = { headers: true, bytes: BODY.length, end: 'whole' };

test('without a fault all passes, on connections that are kept', async () => {
  const starts: [number, number][] = [];
  proxy.setFault(({ number, numberOnConnection }) => {
    starts.push([number, numberOnConnection]);
    return undefined;
  });
  for (let time = 0; time < 3; time += 1) expect(await ask()).toMatchObject(WHOLE);
  expect(starts).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ]);
});

test.each<[string, WireFault, Partial<Seen>, number]>([
  ['before the request is passed on', { resetAt: 'request' }, { headers: false, bytes: 0, end: 'ECONNRESET' }, 0],
  ['before the answer', { resetAt: 'answer' }, { headers: false, bytes: 0, end: 'ECONNRESET' }, 1],
  ['in the headers', { resetAt: 'headers' }, { headers: false, bytes: 0, end: 'ECONNRESET' }, 1],
  ['behind the headers', { resetAt: 'body' }, { bytes: 0, end: 'ECONNRESET' }, 1],
  ['in the body', { cutAfterBytes: 200 }, { headers: true, end: 'ECONNRESET' }, 1],
  ['nowhere, where nothing is heard', { silent: 'request' }, { headers: false, end: 'nothing more' }, 0],
  ['nowhere, where nothing is said', { silent: 'answer' }, { headers: false, end: 'nothing more' }, 1],
])('an exchange ends %s, and the next one goes well', async (_where, fault, seen, arrived) => {
  proxy.setFault(fault);
  expect(await ask(200)).toMatchObject(seen);
  expect([arrivals, proxy.passedOn, proxy.exchanges]).toEqual([arrived, arrived, 1]);
  proxy.setFault(undefined);
  expect(await ask()).toMatchObject(WHOLE);
});

test('latency goes both ways, bandwidth stretches the answer, and all of it comes in the end', async () => {
  proxy.setFault({ latencyMs: 50 });
  const late = await ask();
  expect(late).toMatchObject(WHOLE);
  expect(late.tookMs).toBeGreaterThanOrEqual(99);
  proxy.setFault({ bytesPerSecond: 2_000 });
  const narrow = await ask();
  expect(narrow).toMatchObject(WHOLE);
  expect(narrow.tookMs).toBeGreaterThanOrEqual((BODY.length / 2_000) * 900);
});

test('a slow drip sends single bytes, and an endless body never ends', async () => {
  proxy.setFault({ bytesPerSecond: 10 });
  expect(await ask(300)).toMatchObject({ headers: false, end: 'nothing more' });
  proxy.setFault({ endless: true });
  const endless = await ask(300);
  expect(endless).toMatchObject({ headers: true, end: 'nothing more' });
  expect(endless.bytes).toBeGreaterThan(1_000_000);
});

test('other bytes come instead of the answer', async () => {
  proxy.setFault({ bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]' });
  expect(await ask()).toMatchObject({ bytes: 2, end: 'whole' });
});

test('a service that is not there is refused until it is back, on the same port', async () => {
  await ask();
  await proxy.refuse();
  expect(await ask()).toMatchObject({ end: expect.stringMatching(/ECONNRE/) });
  expect(await ask()).toMatchObject({ end: 'ECONNREFUSED' });
  await proxy.accept();
  expect(await ask()).toMatchObject(WHOLE);
});

test('connections that stand are ended when asked for', async () => {
  await ask();
  const first: number[] = [];
  proxy.setFault(({ numberOnConnection }) => void first.push(numberOnConnection));
  proxy.endConnections('close');
  await expect.poll(() => Object.keys(agent.freeSockets)).toEqual([]);
  expect(await ask()).toMatchObject(WHOLE);
  expect(first).toEqual([1]);
});

test('faults are mixed by their shares, the same for the same seed', () => {
  const choose = () => {
    const fault = mixedFaults(createRandom(7), [
      [0.3, 'one'],
      [0.1, 'other'],
    ]);
    return Array.from({ length: 10_000 }, fault);
  };
  const chosen = choose();
  const count = (fault: string | undefined) => chosen.filter((one) => one === fault).length;
  expect(count('one')).toBeGreaterThan(2_800);
  expect(count('one')).toBeLessThan(3_200);
  expect(count('other')).toBeGreaterThan(850);
  expect(count('other')).toBeLessThan(1_150);
  expect(choose()).toEqual(chosen);
});
