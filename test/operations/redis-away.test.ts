import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'redis-pass-b16b00';
const PATIENCE = { timeout: 10_000 };

const told = ({ logLines }: TestGateway) =>
  logLines.filter(({ msg }) => String(msg).startsWith('Redis is')).map(({ msg, reason }) => [msg, reason]);

async function readiness({ endpoint }: TestGateway): Promise<unknown> {
  return (await fetch(new URL('/health/ready', endpoint))).json();
}

describe.skipIf(!redisIsHere)('a Redis that is there and does not do what it is asked', () => {
  let redis: RedisServer;

  beforeEach(async () => {
    redis = await startRedis();
    await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
  });
  afterEach(() => redis.close());

  const asUser = () => redis.url.replace('//', `//petql:${PASSWORD}@`);

  test.each<[string, string[], string[], string]>([
    [
      'is full',
      ['CONFIG', 'SET', 'maxmemory', '1'],
      ['CONFIG', 'SET', 'maxmemory', '0'],
      'OOM command not allowed when used memory',
    ],
    [
      'lets its user run no scripts',
      ['ACL', 'SETUSER', 'petql', '-@scripting'],
      ['ACL', 'SETUSER', 'petql', '+@all'],
      'NOPERM this user has no permissions to run the',
    ],
  ])('and %s is told once with the reason, and once when it works again', async (_name, spoil, mend, reason) => {
    await redis.command(...spoil);
    await using gateway = await startGateway({ gateway: { redisUrl: asUser() } });
    await until(() => told(gateway).length > 0);
    await gateway.query('{ pets(limit: 1) { id } }');
    await expect.poll(() => readiness(gateway), PATIENCE).toMatchObject({ status: 'degraded', redis: 'away' });
    expect(told(gateway)).toEqual([['Redis is away', expect.stringContaining(reason)]]);
    await redis.command(...mend);
    await expect.poll(() => readiness(gateway), PATIENCE).toMatchObject({ status: 'ok' });
    await expect
      .poll(() => told(gateway), PATIENCE)
      .toEqual([
        ['Redis is away', expect.stringContaining(reason)],
        ['Redis is back', undefined],
      ]);
    expect(JSON.stringify(gateway.logLines)).not.toContain(PASSWORD);
    expect(JSON.stringify(gateway.logLines)).not.toContain(new URL(redis.url).port);
  });

  test('and has no such database counts as away, and nothing is kept in another one', async () => {
    await using gateway = await startGateway({ gateway: { redisUrl: `${redis.url}/99`, maxWaitMs: 1_000 } });
    await until(() => told(gateway).length > 0);
    expect(await gateway.query('{ pets(limit: 1) { id } }')).toMatchObject({ data: { pets: [{ id: '1' }] } });
    const creation =
      'mutation { createPet(input: { name: "Momo", categoryId: 1, idempotencyKey: "momo" }) { pet { id } } }';
    expect((await gateway.query(creation)).errors).toMatchObject([{ extensions: { code: 'IDEMPOTENCY_UNAVAILABLE' } }]);
    // Several attempts to connect, each of which could end in another database.
    await new Promise((resolve) => {
      setTimeout(resolve, 2_500);
    });
    expect(await readiness(gateway)).toMatchObject({ redis: 'away' });
    expect(told(gateway)).toEqual([['Redis is away', 'ERR DB index is out of range']]);
    expect(await redis.command('DBSIZE')).toBe(':0\r\n');
  });

  test('and may not be selected from for a while is joined in its own database afterwards', async () => {
    await redis.command('ACL', 'SETUSER', 'petql', '-select');
    await using gateway = await startGateway({ gateway: { redisUrl: `${asUser()}/3` } });
    await until(() => told(gateway).length > 0);
    await redis.command('ACL', 'SETUSER', 'petql', '+@all');
    await expect.poll(() => readiness(gateway), PATIENCE).toMatchObject({ redis: 'connected' });
    await gateway.query('{ pets(limit: 1) { id } }');
    expect(await redis.command('DBSIZE')).toBe(':0\r\n');
    expect(await redis.command('INFO', 'keyspace')).toMatch(/^db3:keys=/m);
  });
});

describe('what a Redis repeats of a command', () => {
  let server: Server;

  beforeEach(async () => {
    server = createServer((socket) => {
      socket
        .on('error', () => {})
        .on('data', (commands) => {
          const count = commands.toString().match(/^\*\d+\r$/gm)?.length ?? 0;
          socket.write("-ERR unknown command 'evalsha', with args beginning with: '1' 'a-secret'\r\n".repeat(count));
        });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  test('is not told', async () => {
    const { port } = server.address() as AddressInfo;
    await using gateway = await startGateway({ gateway: { redisUrl: `redis://127.0.0.1:${port}` } });
    await until(() => told(gateway).length > 0);
    expect(told(gateway)).toEqual([['Redis is away', "ERR unknown command 'evalsha'"]]);
    expect(JSON.stringify(gateway.logLines)).not.toContain('a-secret');
  });
});
