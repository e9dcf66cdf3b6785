import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import type { Replicas } from '../../src/throttle/replicas.ts';
import { createMemoryLog } from '../support/memory-log.ts';

/** What a heartbeat is answered; undefined for nothing. */
let answer: string | undefined;
let replicas: Replicas;
let logged: ReturnType<typeof createMemoryLog>;

beforeEach(() => {
  vi.useFakeTimers();
  answer = '3 1';
  logged = createMemoryLog();
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
  return createReplicas(redis, 'one', logged.log);
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

test.each([
  ['does not know the last heartbeat', '3 '],
  ['takes the last heartbeat for a minute ago', '3 60'],
])('a Redis that %s has lost something, and that is told once', async (_what, first) => {
  await elapse(5_000);
  expect(replicas.outage).toBeUndefined();
  answer = first;
  await elapse(1_000);
  answer = '3 1';
  await elapse(5_000);
  const { outage } = replicas;
  expect(outage?.agoMs()).toBe(6_000);
  await elapse(5_000);
  expect(replicas.outage).toBe(outage);
  expect(replicas.redisWorks).toBe(true);
  expect(logged.lines).toMatchObject([{ level: 40, msg: expect.stringContaining('emptied') }]);
});

test.each([
  ['its clock is set back', '3 -3600'],
  ['it counts two seconds for one', '3 3'],
])('nothing is lost where %s', async (_what, next) => {
  await elapse(5_000);
  answer = next;
  await elapse(1_000);
  expect(replicas.outage).toBeUndefined();
});

test('a process that stood still for as long as Redis remembers it takes nothing for lost', async () => {
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 30_000);
  answer = '2 ';
  await elapse(1_000);
  vi.restoreAllMocks();
  expect(replicas.outage).toBeUndefined();
});

test('that Redis fails is told once, with the reason, and once that it works again', async () => {
  await elapse(5_000);
  expect(logged.lines).toEqual([]);
  answer = undefined;
  await elapse(5_000);
  replicas.redisFailed(new RedisAway('OOM command not allowed'));
  answer = '3';
  await elapse(3_000);
  replicas.redisFailed(new RedisAway('OOM command not allowed'));
  await elapse(3_000);
  expect(logged.lines.map(({ level, msg, reason }) => [level, msg, reason])).toEqual([
    [40, 'Redis is away', 'Command timed out'],
    [30, 'Redis is back', undefined],
    [40, 'Redis is away', 'OOM command not allowed'],
    [30, 'Redis is back', undefined],
  ]);
});

test('that a Redis takes heartbeats and nothing else is told once', async () => {
  for (let second = 0; second < 10; second += 1) {
    replicas.redisFailed(new RedisAway('NOPERM this user has no permissions'));
    await elapse(1_000);
  }
  expect(logged.lines.map(({ msg }) => msg)).toEqual(['Redis is away']);
  expect(replicas.redisWorks).toBe(true);
  await elapse(3_000);
  expect(logged.lines.map(({ msg }) => msg)).toEqual(['Redis is away', 'Redis is back']);
});

test('what fails once it is closed is not told', async () => {
  answer = undefined;
  replicas.close();
  replicas.redisFailed(new RedisAway('there is no connection'));
  await elapse(5_000);
  expect(logged.lines).toEqual([]);
});
