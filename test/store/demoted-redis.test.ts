import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectRedis } from '../../src/store/redis.ts';
import type { RedisScript, RedisStore } from '../../src/store/redis.ts';
import { startRedisPair } from '../support/redis-pair.ts';
import type { RedisPair } from '../support/redis-pair.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

// A planned failover leaves the connections to the old master standing, and it refuses to write from then on. petql once
// stayed alone until it was restarted.

const WRITE: RedisScript = { name: 'petqlWrite', source: "return redis.call('INCR', KEYS[1]) .. ''" };

describe.skipIf(!redisIsHere)('a Redis that changes places with its replica', () => {
  let pair: RedisPair;
  let redis: RedisStore;
  beforeEach(async () => {
    pair = await startRedisPair();
    redis = connectRedis({ url: pair.url });
    await redis.run(WRITE, 'key');
  });
  afterEach(async () => {
    redis.close();
    await pair.close();
  });

  test('is left for the new master, which is known to be another', async () => {
    await pair.changePlaces();
    await expect(redis.run(WRITE, 'key')).rejects.toThrow(/^READONLY/);
    await until(async () => (await redis.run(WRITE, 'key').catch(() => '')) !== '');
    await until(() => redis.replaced !== undefined);
    expect(pair.connections()).toBe(2);
  });
});

describe.skipIf(!redisIsHere)('a Redis that refuses to write for good', () => {
  test('is not connected to anew for every command that it refuses', async () => {
    const server = await startRedis();
    const redis = connectRedis({ url: server.url });
    await redis.run(WRITE, 'key');
    await server.command('REPLICAOF', '127.0.0.1', '1');
    const before = await connectionsTo(server);
    for (let refused = 0; refused < 200;) {
      const why = await redis.run(WRITE, 'key').catch(({ message }: Error) => message);
      if (why.startsWith('READONLY')) refused += 1;
      // Without a connection it fails at once, and nothing else would have its turn.
      else await new Promise(setImmediate);
    }
    // The count takes one of its own.
    expect((await connectionsTo(server)) - before - 1).toBeLessThan(20);
    redis.close();
    await server.close();
  });
});

async function connectionsTo(server: Awaited<ReturnType<typeof startRedis>>): Promise<number> {
  return Number(/total_connections_received:(\d+)/.exec(await server.command('INFO', 'stats'))?.[1]);
}
