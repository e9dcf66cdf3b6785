import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { createCallerNames } from '../../src/throttle/caller-names.ts';
import type { CallerNames } from '../../src/throttle/caller-names.ts';
import { createSecretWatch } from '../../src/throttle/secret-watch.ts';
import type { SecretWatch } from '../../src/throttle/secret-watch.ts';
import { createMemoryLog } from '../support/memory-log.ts';

const SECRET = 'a secret of the test';

/** How many seconds ago another secret was last in use, as Redis tells it; undefined while it is away. */
let otherAgoS: string | undefined;
let asked: string[];
let watch: SecretWatch | undefined;
let logged: ReturnType<typeof createMemoryLog>;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  logged = createMemoryLog();
});
afterEach(() => {
  watch?.close();
  vi.useRealTimers();
});

function start(nameOf: CallerNames = createCallerNames(SECRET)): SecretWatch {
  const redis: RedisStore = {
    connected: true,
    async run(_script, key, ...args) {
      asked.push(key, ...args);
      if (otherAgoS === undefined) throw new RedisAway('Command timed out');
      return otherAgoS;
    },
    subscribe: () => () => {},
    close() {},
  };
  watch = createSecretWatch(redis, nameOf, logged.log);
  return watch;
}

const elapse = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const told = () => logged.lines.map(({ level, msg }) => [level, String(msg).split(/[:,]/)[0]]);

const IN_USE = [40, 'another key secret is in use with this Redis'];
const GONE = [30, 'no other key secret is in use with this Redis any more'];

test('another secret in use is told once, and once that it is gone', async () => {
  otherAgoS = '';
  start();
  await elapse(4_000);
  expect(told()).toEqual([]);
  otherAgoS = '1';
  await elapse(10_000);
  expect(watch).toMatchObject({ differs: true });
  otherAgoS = '11';
  await elapse(10_000);
  expect(watch).toMatchObject({ differs: false });
  expect(told()).toEqual([IN_USE, GONE]);
});

test('a process that starts with another secret than that of the last day says so once, and is not degraded', async () => {
  otherAgoS = '3600';
  start();
  await elapse(10_000);
  expect(watch).toMatchObject({ differs: false });
  expect(logged.lines).toMatchObject([{ level: 40, lastUsedSecondsAgo: 3_600 }]);
});

test('a Redis that is away says nothing of secrets', async () => {
  otherAgoS = '1';
  start();
  await elapse(2_000);
  otherAgoS = undefined;
  await elapse(60_000);
  expect(watch).toMatchObject({ differs: true });
  expect(told()).toEqual([IN_USE]);
});

test('what Redis is told is not the secret', async () => {
  otherAgoS = '';
  start();
  await elapse(2_000);
  expect(new Set(asked)).toEqual(new Set(['petql:key-secrets', expect.stringMatching(/^[\w-]{32}$/), '']));
});

// In a Redis that was emptied, those that agree on a secret may differ for a moment.
test('a secret that was agreed on anew takes the place of the one before, and is no other', async () => {
  otherAgoS = '';
  let nameOf = createCallerNames(SECRET);
  start((apiKey) => nameOf(apiKey));
  await elapse(1_000);
  nameOf = createCallerNames('the one that is agreed on now');
  otherAgoS = '0';
  await elapse(1_000);
  otherAgoS = '';
  await elapse(10_000);
  expect(told()).toEqual([]);
  const [, first, , , second, before] = asked;
  expect(second).not.toBe(first);
  expect(before).toBe(first);
});
