import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, test as oneTest } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { startRedisPair } from '../support/redis-pair.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'redis-pass-b16b00';

const logged = ({ logLines }: TestGateway) =>
  logLines.filter(({ msg }) => String(msg).startsWith('Redis is')).map(({ msg, reason }) => [msg, reason]);

async function readiness({ endpoint }: TestGateway): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(new URL('/health/ready', endpoint));
  return (await response.json()) as Record<string, unknown>;
}

/** Connections fail and heal in real time, so the tests wait together. */
const test = oneTest.concurrent;

/** A Redis with a user. */
async function startRedisWithUser() {
  const redis = await startRedis();
  await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
  return { ...redis, userUrl: redis.url.replace('//', `//petql:${PASSWORD}@`), [Symbol.asyncDispose]: redis.close };
}

describe.skipIf(!redisIsHere)('a Redis that fails commands', () => {
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
  ])('and %s is logged once with the reason, and once when it works again', async (_name, spoil, mend, reason) => {
    await using redis = await startRedisWithUser();
    await redis.command(...spoil);
    await using gateway = await startGateway({ gateway: { redisUrl: redis.userUrl } });
    await until(() => logged(gateway).length > 0);
    await gateway.query('{ pets(limit: 1) { id } }');
    await until(async () => (await readiness(gateway))['status'] === 'starting');
    expect(await readiness(gateway)).toMatchObject({ redis: 'connecting' });
    expect(logged(gateway)).toEqual([['Redis is unavailable', expect.stringContaining(reason)]]);
    await redis.command(...mend);
    await until(async () => (await readiness(gateway))['status'] === 'ok' && logged(gateway).length > 1);
    expect(logged(gateway)).toEqual([
      ['Redis is unavailable', expect.stringContaining(reason)],
      ['Redis is available', undefined],
    ]);
    expect(JSON.stringify(gateway.logLines)).not.toContain(PASSWORD);
    expect(JSON.stringify(gateway.logLines)).not.toContain(new URL(redis.url).port);
  });

  test('and lacks the database is unavailable, and nothing is stored in another one', async () => {
    await using redis = await startRedisWithUser();
    await using gateway = await startGateway({ gateway: { redisUrl: `${redis.url}/99`, maxWaitMs: 1_000 } });
    await until(() => logged(gateway).length > 0);
    const { errors } = await gateway.query('{ pets(limit: 1) { id } }');
    expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', retryAfterMs: 1_000 } }]);
    const creation =
      'mutation { createPet(input: { name: "Momo", categoryId: 1, idempotencyKey: "momo" }) { pet { id } } }';
    expect((await gateway.query(creation)).errors).toMatchObject([{ extensions: { code: 'IDEMPOTENCY_UNAVAILABLE' } }]);
    // Several attempts to connect, each of which could end in another database.
    await new Promise((resolve) => {
      setTimeout(resolve, 300);
    });
    expect(await readiness(gateway)).toMatchObject({ redis: 'connecting' });
    expect(logged(gateway)).toEqual([['Redis is unavailable', 'ERR DB index is out of range']]);
    expect(await redis.command('DBSIZE')).toBe(':0\r\n');
  });

  test('and forbids SELECT for a while is used in its own database afterwards', async () => {
    await using redis = await startRedisWithUser();
    await redis.command('ACL', 'SETUSER', 'petql', '-select');
    await using gateway = await startGateway({ gateway: { redisUrl: `${redis.userUrl}/3` } });
    await until(() => logged(gateway).length > 0);
    await redis.command('ACL', 'SETUSER', 'petql', '+@all');
    await until(async () => (await readiness(gateway))['redis'] === 'connected');
    await gateway.query('{ pets(limit: 1) { id } }');
    expect(await redis.command('DBSIZE')).toBe(':0\r\n');
    expect(await redis.command('INFO', 'keyspace')).toMatch(/^db3:keys=/m);
  });
});

describe.skipIf(!redisIsHere)('a connection to Redis', () => {
  const create = async ({ gateway }: TestGateway, key: string) => {
    const input = `{ name: "Momo", categoryId: 1, idempotencyKey: "${key}" }`;
    const document = `mutation { createPet(input: ${input}) { pet { id } } }`;
    return (await gateway.execute({ document, apiKey: 'demo-pro' })).errors?.[0]?.extensions?.['code'];
  };

  // After a planned failover the connections to the old master stay, and it refuses to write.
  test('to a master that became a replica is replaced', async ({ onTestFinished }) => {
    const pair = await startRedisPair();
    onTestFinished(() => pair.close());
    await using gateway = await startGateway({ gateway: { redisUrl: pair.url, plan: 'pro' } });
    expect(await create(gateway, 'before')).toBeUndefined();
    await pair.changePlaces();
    await until(async () => (await create(gateway, 'after')) === undefined);
  });

  // A firewall forgets connections: they stay, and nothing arrives.
  test('that goes silent is replaced', async ({ onTestFinished }) => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    await using proxy = await startFaultProxy({ target: redis.url });
    await using gateway = await startGateway({ gateway: { redisUrl: proxy.url, plan: 'pro' } });
    for (let number = 0; number < 30; number += 1) expect(await create(gateway, `before-${number}`)).toBeUndefined();
    proxy.setFault(({ numberOnConnection }) => (numberOnConnection > 30 ? { silent: 'request' } : undefined));
    expect(await create(gateway, 'silent')).toBe('IDEMPOTENCY_UNAVAILABLE');
    await until(async () => (await create(gateway, 'after')) === undefined);
  });
});

test('a Redis that repeats the command in an error gets it into no log line', async ({ onTestFinished }) => {
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (commands) => {
        const count = commands.toString().match(/^\*\d+\r$/gm)?.length ?? 0;
        socket.write("-ERR unknown command 'evalsha', with args beginning with: '1' 'a-secret'\r\n".repeat(count));
      });
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await using gateway = await startGateway({ gateway: { redisUrl: `redis://127.0.0.1:${port}` } });
  await until(() => logged(gateway).length > 0);
  expect(logged(gateway)).toEqual([['Redis is unavailable', "ERR unknown command 'evalsha'"]]);
  expect(JSON.stringify(gateway.logLines)).not.toContain('a-secret');
});
