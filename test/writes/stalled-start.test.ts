import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';

const CREATE = `mutation ($key: String!) {
  createPet(input: { name: "Momo", categoryId: 3, idempotencyKey: $key }) { pet { id } }
}`;

/** Nothing else runs meanwhile, as in a collection of garbage or on a busy machine. */
function stallEventLoop(ms: number): void {
  const endsAtMs = performance.now() + ms;
  while (performance.now() < endsAtMs);
}

describe.skipIf(!redisIsHere)('an event loop that stalls while petql connects to Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.close());

  // A connection takes some turns of the event loop, and the stall may come in each.
  test.each([
    [600, [1, 2, 3, 4, 5]],
    [2_100, [1, 2]],
  ])('for %i ms fails no keyed create', async (stallMs, turns) => {
    for (const turn of turns) {
      await using gateway = await startEmbedded({ redisUrl: redis.url, plan: 'pro' });
      const creating = gateway.execute({
        document: CREATE,
        apiKey: 'demo-pro',
        variables: { key: `${stallMs}-${turn}` },
      });
      for (let passed = 0; passed < turn; passed += 1) await setImmediate();
      stallEventLoop(stallMs);
      expect(codesOf(await creating)).toEqual([]);
    }
  });
});
