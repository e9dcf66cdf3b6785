import { afterEach, describe, expect, test, vi } from 'vitest';
import { RedisAway, connectRedis } from '../../src/store/redis.ts';
import type { RedisScript } from '../../src/store/redis.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';

const loads = vi.hoisted(() => ({ failing: 0 }));
vi.mock(import('ioredis'), async (load) => {
  const real = await load();
  return {
    ...real,
    get Redis() {
      if (loads.failing-- > 0) throw Object.assign(new Error('EMFILE: open /home/inner'), { code: 'EMFILE' });
      return real.Redis;
    },
  };
});

const ECHO: RedisScript = { name: 'petqlEcho', source: 'return ARGV[1]' };

afterEach(() => {
  loads.failing = 0;
});

describe.skipIf(!redisIsHere)('a client of Redis that could not be loaded', () => {
  const redis = useRedis();

  test('is loaded anew by whoever uses it next, and says why it is away', async () => {
    loads.failing = 2;
    const store = connectRedis({ url: redis.server.url });
    const failed = store.run(ECHO, 'key', 'first').catch((error: unknown) => error);
    expect(await failed).toEqual(new RedisAway('its client could not be loaded: EMFILE'));
    // Of those that wait together, one loads.
    await store.run(ECHO, 'key', 'second').catch(() => {});
    expect(await store.run(ECHO, 'key', 'third')).toBe('third');
    store.close();
  });

  test('is loaded anew for whoever listens', async () => {
    loads.failing = 1;
    const store = connectRedis({ url: redis.server.url });
    let gaps = 0;
    const end = store.subscribe('channel', { onMessage() {}, onGap: () => (gaps += 1) });
    await expect.poll(() => gaps, { timeout: 10_000 }).toBe(1);
    end();
    store.close();
  });
});
