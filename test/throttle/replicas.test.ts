import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import type { Replicas } from '../../src/throttle/replicas.ts';

/** What a heartbeat is answered, and what each has told: for how long it may be calling alone. */
let answer: string | undefined;
let told: number[];
let replicas: Replicas;

beforeEach(() => {
  vi.useFakeTimers();
  answer = '3 0';
  told = [];
  replicas = start();
});
afterEach(() => {
  replicas.close();
  vi.useRealTimers();
});

function start(): Replicas {
  const redis: RedisStore = {
    connected: true,
    async run(_script, _key, _name, aloneForMs) {
      told.push(Number(aloneForMs));
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
  answer = '2 0';
  await elapse(11_000);
  expect(replicas).toMatchObject({ count: 2, most: 3 });
  await elapse(600_000);
  expect(replicas).toMatchObject({ count: 2, most: 2 });
});

test('how many there are is not known where Redis was never heard of', async () => {
  answer = undefined;
  replicas.close();
  replicas = start();
  await replicas.heard;
  expect(replicas).toMatchObject({ count: 1, most: undefined, redisWorks: false });
});

test('that this one called without Redis is told once Redis is back, and holds for a window', async () => {
  await elapse(5_000);
  expect(replicas.redisBackForMs).toBe(Infinity);
  answer = undefined;
  await elapse(3_000);
  expect(replicas).toMatchObject({ redisWorks: false, redisBackForMs: 0 });
  replicas.wentAlone();
  told = [];
  answer = '3 65000';
  await elapse(2_000);
  expect(told[0]).toBe(65_000);
  expect(told.at(-1)).toBe(0);
  expect(replicas.redisWorks).toBe(true);
  answer = '3 30000';
  await elapse(31_000);
  expect(replicas.redisBackForMs).toBeGreaterThan(30_000);
  expect(replicas.redisBackForMs).toBeLessThan(65_000);
  // What is called alone since is part of the same windows, and prolongs nothing.
  replicas.wentAlone();
  await elapse(1_500);
  expect(told.at(-1)).toBe(0);
  answer = '3 0';
  await elapse(66_000);
  expect(replicas.redisBackForMs).toBe(Infinity);
});

test('one that failed and called nothing waits for a moment for what the others tell', async () => {
  await elapse(1_500);
  replicas.redisFailed();
  expect(replicas.redisBackForMs).toBe(0);
  await elapse(1_000);
  expect(replicas.redisWorks).toBe(true);
  expect(replicas.redisBackForMs).toBeLessThan(1_000);
  await elapse(2_000);
  expect(told).not.toContain(65_000);
  expect(replicas.redisBackForMs).toBe(Infinity);
});
