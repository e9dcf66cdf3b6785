import { afterAll, beforeAll } from 'vitest';
import { connectRedis } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { redisIsHere, startRedis } from './redis-server.ts';
import type { RedisServer } from './redis-server.ts';
import { until } from './until.ts';

/** A Redis for all tests of a file, and petql's connection to it; neither may be touched where no Redis is installed. */
export function useRedis(): { readonly server: RedisServer; readonly redis: RedisStore } {
  const shared = {} as { server: RedisServer; redis: RedisStore };
  beforeAll(async () => {
    if (!redisIsHere) return;
    shared.server = await startRedis();
    shared.redis = connectRedis({ url: shared.server.url });
    await until(() => shared.redis.connected);
  });
  afterAll(async () => {
    if (!redisIsHere) return;
    shared.redis.close();
    await shared.server.close();
  });
  return shared;
}
