import { describe, expect, onTestFinished, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { post } from '../support/client.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { startPetql } from '../support/run-petql.ts';
import { createTestPetApi } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

describe.skipIf(!redisIsHere)('while Redis is away', () => {
  /** More callers than fit into a small heap, with those that are kept for what they used. */
  const KEYS = 2_000;

  test('what many keys use is kept for some whose callers have no room, and written once it is back', async () => {
    const keys = Array.from({ length: KEYS }, (_, index) => `key-${index}`);
    const petApi = createTestPetApi({ keys: Object.fromEntries(keys.map((key) => [key, PLANS.free])) });
    await using server = await petApi.listen();
    const redis = await startRedis();
    onTestFinished(redis.close);
    const args = ['--port', '0', '--admin-port', '0', '--redis-url', redis.url, '--pet-api-url', server.url];
    const petql = await startPetql(args, { nodeOptions: ['--max-old-space-size=96'] });
    using _ = { [Symbol.dispose]: () => petql.kill('SIGKILL') };
    const metrics = new URL('/metrics', /http\S+(?=\/quota)/.exec(petql.output.stdout)?.[0]);
    const callers = async () => {
      const text = await (await fetch(metrics)).text();
      return [...text.matchAll(/^petql_callers\{.*\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
    };

    await redis.kill();
    for (let first = 0; first < KEYS; first += 50) {
      const asked = keys.slice(first, first + 50);
      const ask = (key: string) =>
        post(petql.address, '{ pet(id: 1) { id } }', { headers: { authorization: `Bearer ${key}` } });
      await Promise.all(asked.map(ask));
    }
    await redis.start();
    // Nearly all of them are accounts.
    const written = async () => Number(/\d+/.exec(await redis.command('DBSIZE')));
    await until(async () => (await written()) > (await callers()) + 50);
    expect(await callers()).toBeLessThan(KEYS - 150);
    expect(petApi.log).toHaveLength(KEYS);
  });
});
