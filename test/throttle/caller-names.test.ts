import { expect, test } from 'vitest';
import type { RedisStore } from '../../src/store/redis.ts';
import { createSharedCallerNames } from '../../src/throttle/caller-names.ts';
import { until } from '../support/until.ts';

/** As much of Redis as the names need: one value, which the first to come sets. */
function fakeRedis(): RedisStore & { stored: string | undefined; connections: number } {
  return {
    stored: undefined,
    connected: true,
    connections: 1,
    async run(_script, _key, secret = '') {
      return (this.stored ??= secret);
    },
    subscribe: () => () => {},
    close: () => {},
  };
}

test('replicas call a caller by the same name, which is not its key', async () => {
  const redis = fakeRedis();
  const [one, other] = [createSharedCallerNames(redis), createSharedCallerNames(redis)];
  expect(await one('a key')).toBe(await other('a key'));
  expect(await one('a key')).not.toBe(await one('another key'));
  expect(await one('a key')).not.toContain('a key');
});

// A replica that starts after Redis was emptied would make a secret of its own, and spend every plan once more.
test('replicas call a caller by the same name again after Redis was emptied', async () => {
  const redis = fakeRedis();
  const time = { ms: 5_000 };
  const clock = { elapsed: () => time.ms };
  const early = createSharedCallerNames(redis, clock);
  const name = await early('a key');
  redis.stored = undefined;
  time.ms += 1_000;
  expect(await early('a key')).toBe(name);
  expect(await createSharedCallerNames(redis, clock)('a key')).toBe(name);
});

test('a replica takes over the secret that another one has made meanwhile', async () => {
  const redis = fakeRedis();
  const time = { ms: 5_000 };
  const early = createSharedCallerNames(redis, { elapsed: () => time.ms });
  const name = await early('a key');
  redis.stored = undefined;
  const late = createSharedCallerNames(redis, { elapsed: () => time.ms });
  const next = await late('a key');
  expect(next).not.toBe(name);
  time.ms += 1_000;
  await until(async () => (await early('a key')) === next);
  expect(await early('a key')).toBe(await late('a key'));
});

// For a second it would keep what the other does not find: an idempotency key was two animals.
test('on a new connection a replica has no name for anybody before it has agreed with the others', async () => {
  const redis = fakeRedis();
  const early = createSharedCallerNames(redis);
  const name = await early('a key');
  redis.stored = undefined;
  redis.connections = 2;
  const next = await createSharedCallerNames(redis)('a key');
  expect(next).not.toBe(name);
  expect(await early('a key')).toBe(next);
});
