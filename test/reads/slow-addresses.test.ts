import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { startDeafServer } from '../support/deaf-server.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { serve } from '../support/serve.ts';
import { codesOf } from '../support/transports.ts';
import type { Reply } from '../support/transports.ts';

const LIST = '{ pets { id } }';
const EMPTY = { pets: [] };
const TIMEOUT_MS = 5_000;

let addresses: readonly string[] = [];
const { lookup } = dns;
beforeAll(() => {
  const family = (address: string) => (address.includes(':') ? 6 : 4);
  Object.assign(dns, {
    lookup(name: string, options: object, done: (error: null, found: object[]) => void) {
      if (name !== 'pets.test') return lookup(name, options, done as never);
      setImmediate(() =>
        done(
          null,
          addresses.map((address) => ({ address, family: family(address) })),
        ),
      );
    },
  });
  syncBuiltinESMExports();
});
afterAll(() => {
  Object.assign(dns, { lookup });
  syncBuiltinESMExports();
});

/** A gateway over a pet API whose name has these addresses. */
function start(port: number, of: readonly string[], options: Partial<GatewayOptions> = {}) {
  addresses = of;
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({
    petApiUrl: `http://pets.test:${port}/v1`,
    log,
    upstreamTimeoutMs: TIMEOUT_MS,
    plan: 'free',
    ...options,
  });
  onTestFinished(() => gateway.close());
  const run = async (document: string) => (await gateway.execute({ document, apiKey: 'key' })) as Reply;
  return { run, lines };
}

async function deaf(host: string, port?: number) {
  const server = await startDeafServer(host, port);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

// Other systems have no further addresses of their own.
describe.runIf(process.platform === 'linux')('a pet API with several addresses', () => {
  test('an address that takes a second to answer is reached, though the other one is dead', async () => {
    const slow = await deaf('127.0.0.2');
    await deaf('127.0.0.3', slow.port);
    const { run } = start(slow.port, ['127.0.0.2', '127.0.0.3']);
    const reading = run(LIST);
    await setTimeout(500);
    slow.listen();
    expect((await reading).data).toEqual(EMPTY);
  });

  test('so it is after one that refuses connections', async () => {
    const slow = await deaf('127.0.0.2');
    const { run } = start(slow.port, ['127.0.0.4', '127.0.0.2', '127.0.0.5']);
    const reading = run(LIST);
    await setTimeout(500);
    slow.listen();
    expect((await reading).data).toEqual(EMPTY);
  });

  test('a dead address of another family costs a quarter of a second', async () => {
    await using server = await serve((_request, response) => void response.end('[]'));
    const port = Number(new URL(server.origin).port);
    await deaf('127.0.0.3', port);
    // The first of the other family comes second.
    const { run } = start(port, ['127.0.0.3', '127.0.0.4', '::ffff:127.0.0.1']);
    const startedMs = performance.now();
    expect((await run(LIST)).data).toEqual(EMPTY);
    expect(performance.now() - startedMs).toBeLessThan(1_500);
  });

  test.each([
    [
      'all refuse connections',
      ['127.0.0.4', '127.0.0.5'],
      'DOWNSTREAM_SERVICE_ERROR',
      { reason: 'unreachable', code: 'ECONNREFUSED' },
    ],
    ['none answers', ['127.0.0.3'], 'GATEWAY_TIMEOUT', { reason: 'timeout' }],
  ])('where %s, the call was not sent', async (_what, of, code, line) => {
    const dead = await deaf('127.0.0.3');
    const { run, lines } = start(dead.port, of, { upstreamTimeoutMs: 500, maxWaitMs: 600 });
    expect(codesOf(await run(LIST))).toEqual([code]);
    expect(lines.filter(({ level }) => level >= 40)).toMatchObject([line]);
    const { data } = await run('{ rateLimit { windows { used } } }');
    expect(data?.['rateLimit'].windows[0].used).toBe(0);
  });
});
