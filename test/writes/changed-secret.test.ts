import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Caller } from '../../src/caller/callers.ts';
import { createNamedRecords } from '../../src/caller/named-records.ts';
import type { Int64 } from '../../src/int64.ts';
import { createInsistentRecords } from '../../src/store/insistent-records.ts';
import { createRedisRecords } from '../../src/store/redis-records.ts';
import { createSharedCallerNames } from '../../src/throttle/caller-names.ts';
import { createSimulatedUpstream, startReplica, submit } from './simulation.ts';
import type { SimulatedUpstream } from './simulation.ts';
import { createStallingRedis } from './stalling-redis.ts';
import type { StallingRedis } from './stalling-redis.ts';

// Nobody has given these replicas a secret. Redis dies and comes back empty, and others agree on another one there first.

let redis: StallingRedis;
let upstream: SimulatedUpstream;
let caller: Caller;

beforeEach(() => {
  vi.useFakeTimers();
  redis = createStallingRedis();
  redis.setLatency(2);
  upstream = createSimulatedUpstream(() => ({ fate: 'ok', thereMs: 500, backMs: 500 }));
  caller = start();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The caller at a replica of its own. */
function start(): Caller {
  const named = createNamedRecords(createRedisRecords(redis.store), createSharedCallerNames(redis.store));
  return startReplica(upstream, { records: createInsistentRecords(named), leaseMs: 7_000 }).withKey('a-key');
}

const pet = { name: 'Momo', categoryId: '3' as Int64, status: undefined };
const create = (by: Caller, name = 'Momo') => submit(by, { ...pet, name }, { key: 'momo-1' });

/** As far as it comes in a minute. */
async function told(answer: Promise<string>): Promise<string> {
  await vi.advanceTimersByTimeAsync(60_000);
  return answer;
}

async function whileItIsUnderWay(then: () => void): Promise<Promise<string>> {
  const creating = create(caller);
  while (upstream.posts.length === 0) await vi.advanceTimersByTimeAsync(1);
  then();
  await vi.advanceTimersByTimeAsync(2_000);
  return creating;
}

test('a creation that is under way when the secret changes is one for whoever repeats it', async () => {
  expect(await whileItIsUnderWay(() => redis.replace('another secret'))).toBe('animal 1');
  expect(await told(create(caller))).toBe('animal 1');
  expect(await told(create(caller, 'Mono'))).toBe('BAD_USER_INPUT');
  expect(await told(create(start()))).toBe('animal 1');
  expect(upstream.posts).toHaveLength(1);
});

test('so is one whose outcome could not be written before the secret changed', async () => {
  expect(await whileItIsUnderWay(() => redis.setLatency(Infinity))).toBe('animal 1');
  redis.replace('another secret');
  expect(await told(create(caller, 'Mono'))).toBe('BAD_USER_INPUT');
  expect(await told(create(caller))).toBe('animal 1');
  redis.setLatency(2);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await told(create(start()))).toBe('animal 1');
  expect(await told(create(caller))).toBe('animal 1');
  expect(upstream.posts).toHaveLength(1);
});

test('a creation is sent once the names are agreed on, and not while they cannot be', async () => {
  redis.setLatency(Infinity);
  expect(await told(create(caller))).toBe('IDEMPOTENCY_UNAVAILABLE');
  expect(upstream.posts).toHaveLength(0);
  redis.setLatency(2);
  expect(await told(create(caller))).toBe('animal 1');
});
