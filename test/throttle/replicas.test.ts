import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import type { Replicas } from '../../src/throttle/replicas.ts';

/** What a heartbeat is answered; undefined for nothing. */
let answer: string | undefined;
let replicas: Replicas;

beforeEach(() => {
  vi.useFakeTimers();
  answer = '3';
  replicas = start();
});
afterEach(() => {
  replicas.close();
  vi.useRealTimers();
});

function start(): Replicas {
  const redis: RedisStore = {
    connected: true,
    async run() {
      if (answer === undefined) throw new RedisAway('Command timed out');
      return answer;
    },
    subscribe: () => () => {},
    close() {},
  };
  return createReplicas(redis, 'one');
}

const elapse = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('replicas that are gone are counted for ten seconds more, and known for ten minutes', async () => {
  expect(replicas).toMatchObject({ count: 3, most: 3 });
  answer = '2';
  await elapse(11_000);
  expect(replicas).toMatchObject({ count: 2, most: 3 });
  await elapse(600_000);
  expect(replicas).toMatchObject({ count: 2, most: 2 });
});

test('how many there are is not known where Redis was never heard of', async () => {
  answer = undefined;
  replicas.close();
  replicas = start();
  await elapse(10);
  expect(replicas).toMatchObject({ count: 1, most: undefined, redisWorks: false });
});
