import { Agent, request } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startFaultProxy } from './fault-proxy.ts';
import type { FaultProxy } from './fault-proxy.ts';
import { createRandom } from './random.ts';
import { serve } from './serve.ts';
import type { Served } from './serve.ts';
import { mixedFaults } from './wire-fault.ts';
import type { WireFault } from './wire-fault.ts';

const BODY = JSON.stringify(Array.from({ length: 40 }, (_, id) => ({ id })));
const WHOLE = { hasHeaders: true, bytes: BODY.length, end: 'whole' };

let proxy: FaultProxy;
let server: Served;
let arrivals = 0;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

beforeEach(async () => {
  arrivals = 0;
  server = await serve((_request, response) => {
    arrivals += 1;
    response.setHeader('content-length', BODY.length).end(BODY);
  });
  proxy = await startFaultProxy({ target: `${server.origin}/v1` });
});
afterEach(async () => {
  await proxy.close();
  await server[Symbol.asyncDispose]();
});

interface Seen {
  readonly hasHeaders: boolean;
  readonly bytes: number;
  readonly tookMs: number;
  readonly end: string;
}

/** What a client sees that waits so long, or for so many bytes. */
function get(waitMs = 2_000, maxBytes = Infinity): Promise<Seen> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    let hasHeaders = false;
    let bytes = 0;
    const settle = (end: string) => resolve({ hasHeaders, bytes, tookMs: performance.now() - startedMs, end });
    const fail = ({ code }: NodeJS.ErrnoException) => settle(code ?? 'error');
    const sent = request(`${proxy.url}/pets`, { agent }, (response) => {
      hasHeaders = true;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBytes) leave('enough');
      });
      response.on('error', fail).on('end', () => settle('whole'));
    });
    const leave = (end: string) => {
      settle(end);
      sent.destroy();
    };
    sent.on('error', fail).end();
    setTimeout(() => leave('nothing more'), waitMs).unref();
  });
}

test('without a fault all passes, on connections that are kept until they are ended', async () => {
  const numbers: number[] = [];
  proxy.setFault(({ numberOnConnection }) => void numbers.push(numberOnConnection));
  for (let time = 0; time < 3; time += 1) expect(await get()).toMatchObject(WHOLE);
  proxy.endConnections('close');
  await expect.poll(() => Object.keys(agent.freeSockets)).toEqual([]);
  expect(await get()).toMatchObject(WHOLE);
  expect(numbers).toEqual([1, 2, 3, 1]);
});

test.each<[string, WireFault, Partial<Seen>, number]>([
  ['before the request is passed on', { resetAt: 'request' }, { hasHeaders: false, bytes: 0, end: 'ECONNRESET' }, 0],
  ['before the response', { resetAt: 'answer' }, { hasHeaders: false, bytes: 0, end: 'ECONNRESET' }, 1],
  ['in the headers', { resetAt: 'headers' }, { hasHeaders: false, bytes: 0, end: 'ECONNRESET' }, 1],
  ['behind the headers', { resetAt: 'body' }, { bytes: 0, end: 'ECONNRESET' }, 1],
  ['in the body', { cutAfterBytes: 200 }, { hasHeaders: true, end: 'ECONNRESET' }, 1],
  ['with other bytes', { bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]' }, { bytes: 2, end: 'whole' }, 1],
  ['never: the request is lost', { silent: 'request' }, { hasHeaders: false, end: 'nothing more' }, 0],
  ['never: the response is lost', { silent: 'answer' }, { hasHeaders: false, end: 'nothing more' }, 1],
  ['never: it drips', { bytesPerSecond: 10 }, { hasHeaders: false, end: 'nothing more' }, 1],
])('an exchange ends %s, and the next one goes well', async (_where, fault, seen, arrived) => {
  proxy.setFault(fault);
  expect(await get(200)).toMatchObject(seen);
  expect([arrivals, proxy.passedOn, proxy.exchanges]).toEqual([arrived, arrived, 1]);
  proxy.setFault(undefined);
  expect(await get()).toMatchObject(WHOLE);
});

test('an endless body never ends', async () => {
  proxy.setFault({ endless: true });
  expect(await get(20_000, 1_000_000)).toMatchObject({ hasHeaders: true, end: 'enough' });
});

test('latency goes both ways, bandwidth stretches the response, and all of it comes in the end', async () => {
  proxy.setFault({ latencyMs: 50 });
  const late = await get();
  expect(late).toMatchObject(WHOLE);
  expect(late.tookMs).toBeGreaterThanOrEqual(99);
  proxy.setFault({ bytesPerSecond: 2_000 });
  const narrow = await get();
  expect(narrow).toMatchObject(WHOLE);
  expect(narrow.tookMs).toBeGreaterThanOrEqual((BODY.length / 2_000) * 900);
});

test('a server that is gone refuses connections until it is back, on the same port', async () => {
  await get();
  await proxy.refuse();
  expect(await get()).toMatchObject({ end: expect.stringMatching(/ECONNRE/) });
  expect(await get()).toMatchObject({ end: 'ECONNREFUSED' });
  await proxy.accept();
  expect(await get()).toMatchObject(WHOLE);
});

test('faults are mixed by their shares, the same for the same seed', () => {
  const shares = [
    [0.3, 'one'],
    [0.1, 'other'],
  ] as const;
  const choose = () => Array.from({ length: 10_000 }, mixedFaults(createRandom(7), shares));
  const chosen = choose();
  for (const [share, fault] of shares) {
    const count = chosen.filter((one) => one === fault).length;
    expect(Math.abs(count - share * 10_000)).toBeLessThan(150);
  }
  expect(choose()).toEqual(chosen);
});
