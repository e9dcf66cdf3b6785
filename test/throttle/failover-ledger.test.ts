import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { connectRedis, RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import type { Grant, Ledger, Reading, Report } from '../../src/throttle/ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import type { Replicas } from '../../src/throttle/replicas.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };

/** The time of the ledgers, which tests move; Redis, the heartbeats and all patience run on real time. */
let nowMs: number;
let server: RedisServer;
let key: string;
let cleanups: (() => unknown)[];

beforeEach(async () => {
  nowMs = Date.UTC(2026, 10, 21, 12);
  key = randomUUID();
  cleanups = [];
  if (redisIsHere) server = await startRedis();
});
afterEach(async () => {
  for (const cleanup of cleanups) await cleanup();
  if (redisIsHere) await server.close();
});

interface Replica {
  readonly ledger: Ledger;
  readonly replicas: Replicas;
  ask(wanted: number, ...reports: Report[]): ReturnType<Ledger['exchange']>;
}

async function startReplica(timeoutMs = 200): Promise<Replica> {
  const started = newReplica(timeoutMs);
  await until(() => started.connected() && started.replicas.most !== undefined);
  return started;
}

/** One whose connection to Redis does not stand yet. */
function newReplica(timeoutMs = 200): Replica & { connected(): boolean } {
  const redis = connectRedis({ url: server.url, timeoutMs });
  const replica = randomUUID();
  const now = () => nowMs;
  const startMs = nowMs;
  const clock: Clock = { now, elapsed: () => performance.now() + nowMs - startMs };
  const replicas = createReplicas(redis, replica);
  const shared = createRedisLedger({ redis, rules, nameOf: (apiKey) => apiKey, replica, now });
  const ledger = createFailoverLedger({ shared, replicas, rules, clock, now });
  cleanups.push(() => {
    replicas.close();
    redis.close();
  });
  const ask: Replica['ask'] = (wanted, ...reports) => ledger.exchange(key, { wanted, reports });
  return { ledger, replicas, ask, connected: () => redis.connected };
}

function answered(grant: Grant, remaining: number, more: Partial<Reading> = {}): Report {
  const reading = { window: 'minute' as const, limit: 60, remaining, resetInMs: 50_000, otherLimit: undefined };
  return { kind: 'answered', grant, readings: [{ ...reading, resetId: nowMs + 50_000, ...more }] };
}

/** Whatever it gets alone, where it has two calls under way at most; each is answered with so many left. */
async function spend({ ask }: Replica, remaining: number, ...reports: Report[]): Promise<number> {
  let spent = 0;
  for (let done = reports; ;) {
    const { grants } = await ask(100, ...done);
    if (grants.length === 0) return spent;
    expect(grants.length).toBeLessThanOrEqual(2);
    spent += grants.length;
    done = grants.map((grant) => answered(grant, remaining));
  }
}

async function probe({ ask }: Replica): Promise<Grant> {
  const [grant] = (await ask(1)).grants;
  expect(grant).toMatchObject({ probe: true });
  return grant as Grant;
}

/** Opens the window with so many left. */
async function open(replica: Replica, remaining: number): Promise<void> {
  await replica.ask(0, answered(await probe(replica), remaining));
}

/** Real time until the replica has noticed that Redis is gone or back. */
async function noticed({ replicas }: Replica, works: boolean): Promise<void> {
  await until(() => replicas.redisWorks === works);
}

describe.skipIf(!redisIsHere)('while Redis works', () => {
  test('replicas share one window', async () => {
    const [one, other] = [await startReplica(), await startReplica()];
    await open(one, 10);
    expect((await other.ask(7)).grants).toHaveLength(7);
    expect((await one.ask(7)).grants).toHaveLength(3);
  });

  test('whoever looks before its first call has lost nothing by then', async () => {
    const one = await startReplica();
    await one.ask(0);
    await probe(one);
    expect((await one.ask(0)).day.used).toBe(1);
  });

  // Each would take half of the window for itself: of three that start together, one half too much.
  test('replicas that have just started ask it, and wait for their connection', async () => {
    const all = [newReplica(), newReplica(), newReplica()];
    const standings = await Promise.all(all.map(({ ask }) => ask(5)));
    expect(standings.flatMap(({ grants }) => grants)).toMatchObject([{ probe: true }]);
    expect(all.map(({ replicas }) => replicas.redisWorks)).toEqual([true, true, true]);
  });

  test('one replica probes for all', async () => {
    const [one, other] = [await startReplica(), await startReplica()];
    await probe(one);
    expect(await other.ask(5)).toMatchObject({ grants: [], closed: 'probing' });
  });

  test('a 429 met by one replica closes the gate for all, and one of them probes', async () => {
    const [one, other] = [await startReplica(), await startReplica()];
    await open(one, 10);
    const [grant] = (await one.ask(1)).grants as [Grant];
    const refusal = { retryAfterMs: 20_000, ban: false, jitter: 0 };
    await one.ask(0, { kind: 'refused', grant, readings: [], refusal });
    expect(await other.ask(5)).toMatchObject({ grants: [], closed: 'paused', pausedForMs: 21_000 });
    nowMs += 21_000;
    await probe(other);
    expect(await one.ask(5)).toMatchObject({ grants: [], closed: 'probing' });
  });
});

describe.skipIf(!redisIsHere)('when Redis is killed', () => {
  test('nothing more goes out before the reset that is known', async () => {
    const one = await startReplica();
    await open(one, 40);
    await server.kill();
    const standing = await one.ask(10);
    expect(standing).toMatchObject({ grants: [], closed: 'minute' });
    expect(standing.minute.resetInMs).toBeGreaterThan(45_000);
  });

  test('each replica probes once after it and takes its share of the window, and no more of that window', async () => {
    const all = [await startReplica(), await startReplica(), await startReplica()];
    await until(() => all.every(({ replicas }) => replicas.count === 3));
    await open(all[0] as Replica, 40);
    for (const replica of all) await replica.ask(0);
    await server.kill();
    await Promise.all(all.map((replica) => noticed(replica, false)));
    await Promise.all(all.map((replica) => replica.ask(0)));
    nowMs += 51_000;
    // The upstream's own count: it holds 60, of which each probe is one.
    let left = 60;
    let granted = 0;
    for (const replica of all) {
      const grant = await probe(replica);
      left -= 1;
      // What is left later may be another replica's.
      const spent = await spend(replica, left, answered(grant, left));
      granted += spent;
      expect(spent).toBeLessThanOrEqual(20);
    }
    expect(granted + 3).toBeLessThanOrEqual(60);
    expect(granted + 3).toBeGreaterThan(54);
  });

  test('a replica that sees no other assumes that there is one', async () => {
    const one = await startReplica();
    await server.kill();
    await noticed(one, false);
    const grant = await probe(one);
    expect(await spend(one, 59, answered(grant, 59))).toBe(29);
  });

  // It cannot know how many others there are, nor what they are about to take.
  test('a replica that starts meanwhile takes a fiftieth', async () => {
    await server.kill();
    const one = newReplica();
    const grant = await probe(one);
    expect(await spend(one, 59, answered(grant, 59))).toBe(1);
    nowMs += 51_000;
    expect(await spend(one, 199, answered(await probe(one), 199, { limit: 200 }))).toBe(3);
  });

  test('a pause goes on', async () => {
    const one = await startReplica();
    const refusal = { retryAfterMs: 300_000, ban: false, jitter: 0 };
    await one.ask(0, { kind: 'refused', grant: await probe(one), readings: [], refusal });
    await server.kill();
    const standing = await one.ask(10);
    expect(standing).toMatchObject({ grants: [], closed: 'paused' });
    expect(standing.pausedForMs).toBeGreaterThan(295_000);
  });

  test('the day goes on with a share of what was left', async () => {
    const one = await startReplica();
    await one.ask(0, {
      kind: 'adopted',
      calls: 890,
      underWay: 0,
      minuteUsed: 0,
      dayUsed: 890,
      pausedForMs: 0,
      refusedLately: false,
    });
    await open(one, 59);
    await server.kill();
    nowMs += 51_000;
    const grant = await probe(one);
    // 99 of 990 are left, which is 49 for each of two; the probe is one of them.
    const { grants, day } = await one.ask(100, answered(grant, 59));
    expect(grants).toHaveLength(2);
    expect(day.remaining + grants.length + 1).toBe(49);
  });
});

describe.skipIf(!redisIsHere)('when Redis is back', () => {
  test('a replica that has spent its share joins where the window ends, and tells what it used', async () => {
    const one = await startReplica();
    await open(one, 40);
    const [shared] = (await one.ask(1)).grants as [Grant];
    await server.kill();
    expect((await one.ask(5, answered(shared, 38))).grants).toEqual([]);
    nowMs += 51_000;
    expect(await spend(one, 30, answered(await probe(one), 59))).toBe(29);
    await server.start();
    await noticed(one, true);
    // Redis does not know that this window may be used up.
    expect(await one.ask(10)).toMatchObject({ grants: [], closed: 'minute' });
    nowMs += 51_000;
    const joined = await one.ask(3);
    expect(joined).toMatchObject({ grants: [{ probe: true }], closed: 'probing' });
    // 2 through Redis before, 30 alone, and the probe.
    const { day } = await one.ask(0, answered(joined.grants[0] as Grant, 59));
    expect(day).toMatchObject({ mode: 'counted', used: 33 });
  });

  // Else it would spend it of what the others share.
  test('a replica that has not spent its share joins at once, and gives it up', async () => {
    const [one, other] = [await startReplica(), await startReplica()];
    await server.kill();
    await Promise.all([noticed(one, false), noticed(other, false)]);
    await one.ask(0, answered(await probe(one), 59));
    await other.ask(0, answered(await probe(other), 58));
    await server.start();
    await Promise.all([noticed(one, true), noticed(other, true)]);
    const grant = await probe(one);
    expect((await one.ask(100, answered(grant, 57))).grants).toHaveLength(57);
    // All that was left is granted: a probe would be a call too many.
    const { generation } = grant;
    expect(await other.ask(5)).toMatchObject({ grants: [], closed: 'minute', generation });
    nowMs += 51_000;
    expect((await other.ask(5)).grants).toMatchObject([{ probe: true, generation }]);
    expect((await other.ask(5)).grants).toEqual([]);
  });

  test('and nobody has called meanwhile, all go on together at once', async () => {
    const [one, other] = [await startReplica(), await startReplica()];
    await server.kill();
    await Promise.all([noticed(one, false), noticed(other, false)]);
    await server.start();
    await Promise.all([noticed(one, true), noticed(other, true)]);
    expect(await one.ask(1)).toMatchObject({ grants: [{ probe: true }] });
    expect(await other.ask(1)).toMatchObject({ grants: [], closed: 'probing' });
  });
});

describe.skipIf(!redisIsHere)('when Redis fails again as a replica joins', () => {
  test('what the replica has spent alone is counted once', async () => {
    const one = await startReplica();
    await open(one, 40);
    await server.kill();
    await one.ask(0);
    nowMs += 51_000;
    const first = await probe(one);
    await server.start();
    await noticed(one, true);
    nowMs += 66_000;
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '3');
    await one.ask(0, answered(first, 59, { resetInMs: 20_000, resetId: nowMs + 20_000 }));
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    await noticed(one, true);
    nowMs += 22_000;
    // One through Redis before, and one alone.
    expect((await one.ask(0)).day.used).toBe(2);
  });
});

describe.skipIf(!redisIsHere)('when Redis is emptied', () => {
  test('what was spent of the day, a pause, and what is under way are remembered by whoever knows them', async () => {
    const one = await startReplica();
    await one.ask(0, {
      kind: 'adopted',
      calls: 500,
      underWay: 0,
      minuteUsed: 0,
      dayUsed: 500,
      pausedForMs: 0,
      refusedLately: false,
    });
    await open(one, 50);
    const { grants } = await one.ask(4);
    expect(grants).toHaveLength(4);
    await server.command('FLUSHALL');
    await one.ask(0);
    const other = await startReplica();
    expect((await other.ask(0)).day).toMatchObject({ used: 505, mode: 'unknown' });
    const standing = await other.ask(3);
    expect(standing).toMatchObject({ grants: [{ probe: true }] });
  });
});

describe.skipIf(!redisIsHere)('when Redis does not answer', () => {
  // Alone beside others that go on together, it would take its share of a window that they use up.
  test('for a moment, the replica asks again', async () => {
    const one = await startReplica(450);
    await open(one, 40);
    server.freeze();
    const asked = one.ask(10);
    setTimeout(() => server.thaw(), 600);
    expect((await asked).grants).toHaveLength(10);
  });

  // On a machine that is short of processors this went on for a second and more, and the others went on together.
  test('that this process could have read, being stopped for a while, it does not go on alone', async () => {
    const one = await startReplica();
    await open(one, 10);
    const asked = one.ask(3);
    await new Promise(setImmediate);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
    const { generation, grants } = await asked;
    expect(grants).toHaveLength(3);
    expect(one.replicas.redisWorks).toBe(true);
    expect(generation).toBe((await one.ask(0)).generation);
  });

  test('to one heartbeat, the replica asks again', async () => {
    const seen: boolean[] = [];
    const redis: RedisStore = {
      connected: true,
      subscribe: () => () => {},
      run() {
        seen.push(replicas?.redisWorks ?? true);
        return seen.length === 2 ? Promise.reject(new RedisAway('Command timed out')) : Promise.resolve('3');
      },
      close() {},
    };
    let replicas: Replicas | undefined;
    replicas = createReplicas(redis, 'one');
    cleanups.push(() => replicas.close());
    await until(() => seen.length === 3);
    expect([...seen, replicas.redisWorks]).toEqual([true, true, true, true]);
  });

  test('at all, the replica goes on alone', async () => {
    const one = await startReplica();
    await open(one, 40);
    server.freeze();
    expect(await one.ask(10)).toMatchObject({ grants: [], closed: 'minute' });
    expect(one.replicas.redisWorks).toBe(false);
    server.thaw();
    await noticed(one, true);
    // Nothing was spent meanwhile that the others do not know of: it goes on where it was.
    expect((await one.ask(50)).grants).toHaveLength(40);
  });
});

describe.skipIf(!redisIsHere)('when Redis refuses to write', () => {
  test.each([
    ['since it is out of memory', ['CONFIG', 'SET', 'maxmemory', '1']],
    ['since it has too few replicas', ['CONFIG', 'SET', 'min-replicas-to-write', '3']],
  ])('%s, the replica goes on alone', async (_name, command) => {
    const one = await startReplica();
    await open(one, 40);
    await server.command(...command);
    expect(await one.ask(10)).toMatchObject({ grants: [], closed: 'minute' });
    expect(one.replicas.redisWorks).toBe(false);
  });
});
