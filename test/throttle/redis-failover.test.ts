import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { steadyTime, systemClock } from '../../src/clock.ts';
import { connectRedis } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import type { Grant, Report } from '../../src/throttle/ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { startRedisPair } from '../support/redis-pair.ts';
import type { RedisPair } from '../support/redis-pair.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

// Redis replicates a moment later. What it was told in that moment a failover loses: a window that was used up is open again,
// and who calls by it is banned.

const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };

let pair: RedisPair;
let cleanups: (() => unknown)[];

beforeEach(async () => {
  cleanups = [];
  if (redisIsHere) pair = await startRedisPair();
});
afterEach(async () => {
  for (const cleanup of cleanups) await cleanup();
  if (redisIsHere) await pair.close();
});

async function startReplica() {
  const { log, lines } = createMemoryLog();
  const redis = connectRedis({ url: pair.url });
  const replica = randomUUID();
  const replicas = createReplicas(redis, replica, log);
  const shared = createRedisLedger({ redis, rules, nameOf: (apiKey) => apiKey, replica });
  const now = steadyTime(systemClock);
  const ledger = createFailoverLedger({ shared, replicas, rules, clock: systemClock, now });
  cleanups.push(async () => {
    replicas.close();
    await ledger.close();
    redis.close();
  });
  await until(() => replicas.most !== undefined);
  const ask = (wanted: number, ...reports: Report[]) => ledger.exchange('a key', { wanted, reports });
  return { ask, replicas, lines, redis };
}

function answered(grant: Grant, remaining: number): Report {
  const resetInMs = 50_000;
  const reading = { window: 'minute', limit: 60, remaining, resetInMs, resetId: 1e12, otherLimit: undefined } as const;
  return { kind: 'answered', grant, readings: [reading] };
}

/** Two replicas that have called with one key, whose window has 57 left. */
async function startTwo() {
  const [one, other] = [await startReplica(), await startReplica()];
  const [grant] = (await one.ask(1)).grants as [Grant];
  await one.ask(0, answered(grant, 58));
  const [second] = (await other.ask(1)).grants as [Grant];
  await other.ask(0, answered(second, 57));
  return { one, other };
}

describe.skipIf(!redisIsHere)('when Redis fails over between two heartbeats', () => {
  test('to a replica that has not heard of the last calls, one call finds out what is left', async () => {
    const { one, other } = await startTwo();
    await pair.part();
    expect((await one.ask(40)).grants).toHaveLength(40);
    await pair.failOver();
    expect(await other.ask(40)).toMatchObject({ grants: [{ probe: true }], closed: 'probing' });
    expect((await one.ask(40)).grants).toEqual([]);
    expect([one, other].map(({ replicas }) => replicas.redisWorks)).toEqual([true, true]);
  });

  test('a pause that one replica knows of is kept, and told to the others though nobody asks it', async () => {
    const { one, other } = await startTwo();
    const [grant] = (await one.ask(1)).grants as [Grant];
    await pair.part();
    const refusal = { retryAfterMs: 600_000, ban: false, jitter: 0 };
    expect(await one.ask(5, { kind: 'refused', grant, readings: [], refusal })).toMatchObject({ closed: 'paused' });
    await pair.failOver();
    await until(async () => (await other.ask(0)).pausedForMs > 0);
    expect(await other.ask(5)).toMatchObject({ grants: [], closed: 'paused' });
    expect(await one.ask(5)).toMatchObject({ grants: [], closed: 'paused' });
  });
});

describe.skipIf(!redisIsHere)('when Redis is emptied, and connections stand', () => {
  test('a pause that one replica knows of is told to the others though nobody asks it', async () => {
    const { one, other } = await startTwo();
    const [grant] = (await one.ask(1)).grants as [Grant];
    const refusal = { retryAfterMs: 600_000, ban: false, jitter: 0 };
    expect(await one.ask(5, { kind: 'refused', grant, readings: [], refusal })).toMatchObject({ closed: 'paused' });
    await pair.empty();
    await until(async () => (await other.ask(0)).pausedForMs > 0);
    expect(await other.ask(5)).toMatchObject({ grants: [], closed: 'paused' });
    expect(one.lines.map(({ msg }) => msg)).toEqual([
      'Redis was emptied, or its clock set ahead; it is told again what is known here',
    ]);
  });
});

describe.skipIf(!redisIsHere)('a connection that was merely dropped', () => {
  // A proxy may drop it every few seconds, and one call at a time would go out after each.
  test('costs no probe, and is no outage', async () => {
    const { one, other } = await startTwo();
    const before = pair.connections();
    for (let drops = 1; drops <= 3; drops += 1) {
      pair.cut();
      await until(() => pair.connections() === before + 2 * drops && one.redis.connected && other.redis.connected);
      expect(await other.ask(5)).toMatchObject({ closed: undefined, minute: { mode: 'told' } });
    }
    // A heartbeat may have come when there was none.
    expect(one.lines.filter(({ msg }) => msg !== 'Redis is away' && msg !== 'Redis is back')).toEqual([]);
    expect([one, other].map(({ redis }) => redis.replaced)).toEqual([undefined, undefined]);
  });
});
