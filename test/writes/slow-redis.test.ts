import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createCallers } from '../../src/caller/callers.ts';
import type { Callers } from '../../src/caller/callers.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createNamedRecords } from '../../src/caller/named-records.ts';
import { createSharedListings } from '../../src/caller/shared-listings.ts';
import { steadyTime, systemClock } from '../../src/clock.ts';
import type { PetqlError } from '../../src/errors.ts';
import { silentLog } from '../../src/log.ts';
import { createInsistentRecords } from '../../src/store/insistent-records.ts';
import { createRedisRecords } from '../../src/store/redis-records.ts';
import { createSharedCallerNames } from '../../src/throttle/caller-names.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import type { Ledger } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { PetApi } from '../../src/upstream/pet-api.ts';
import { createSimulatedUpstream, submit } from './simulation.ts';
import type { SimulatedUpstream } from './simulation.ts';
import { COMMAND_MS, createStallingRedis } from './stalling-redis.ts';
import type { StallingRedis } from './stalling-redis.ts';

/** What an operation may take beyond its deadline and its call. */
const MOMENT_MS = 100;

let redis: StallingRedis;
let upstream: SimulatedUpstream;
let callers: Callers;
let callMs: number;
let reads: number;
/** A call is under way. */
let onPost: () => void;

beforeEach(async () => {
  vi.useFakeTimers();
  redis = createStallingRedis();
  callMs = 200;
  reads = 0;
  onPost = () => {};
  upstream = createSimulatedUpstream(() => {
    onPost();
    return { fate: 'ok', thereMs: callMs / 2, backMs: callMs / 2 };
  });
  callers = start();
  // From here on the replicas have agreed on a secret, and the plan's windows are open.
  await ask(create('first', 10_000));
});
afterEach(() => {
  vi.useRealTimers();
});

/** One replica, as the gateway puts it together. */
function start(): Callers {
  const { store } = redis;
  const rules = { plan: { perMinute: 1_000, perDay: 100_000, known: true }, probeMs: 5_000 };
  const now = steadyTime(systemClock);
  const nameOf = createSharedCallerNames(store);
  const replicas = createReplicas(store, 'one');
  const listings = createSharedListings({
    redis: store,
    nameOf,
    replica: 'one',
    clock: systemClock,
    keptMs: 1_000,
    works: () => replicas.redisWorks,
  });
  return createCallers({
    petApi: { ...upstream.petApi, listPets },
    ledger: createFailoverLedger({ shared: ledgerInRedis(), replicas, rules, clock: systemClock, now }),
    listings,
    submits: {
      records: createInsistentRecords(createNamedRecords(createRedisRecords(store), nameOf)),
      leaseMs: 5_000,
    },
    nameOf,
    upstreamClock: createUpstreamClock(systemClock),
    clock: systemClock,
  });

  function ledgerInRedis(): Ledger {
    const kept = createMemoryLedger({ rules, now, log: silentLog, firstEver: true });
    return {
      ...kept,
      async exchange(apiKey, exchange) {
        await store.run({ name: 'petqlLedger', source: '' }, apiKey);
        return kept.exchange(apiKey, exchange);
      },
    };
  }
}

async function listPets(): ReturnType<PetApi['listPets']> {
  reads += 1;
  await new Promise((resolve) => {
    setTimeout(resolve, callMs);
  });
  return { outcome: { kind: 'ok', value: { pets: [], complete: true } }, sent: true, rateLimit: undefined };
}

/** @param key none for an animal without. */
function create(key: string | undefined, waitMs: number): Promise<string> {
  const pet = { name: `of ${key}`, categoryId: '1', status: undefined } as unknown as Parameters<typeof submit>[1];
  return submit(callers.withKey('a-key'), pet, { ...(key === undefined ? {} : { key }), waitMs });
}

function read(waitMs: number): Promise<string> {
  const freshness = readFreshness(undefined, { maxAgeMs: 0, maxStaleMs: 0 });
  const pets = callers.withKey('a-key').pets({ freshness, deadlineMs: systemClock.elapsed() + waitMs });
  return Promise.resolve(pets.list(undefined, 20)).then(
    () => 'found',
    (error: PetqlError) => error.code,
  );
}

interface End {
  readonly told: string;
  readonly tookMs: number;
}

async function ask(asking: Promise<string>): Promise<End> {
  const startedMs = systemClock.elapsed();
  let end: End | undefined;
  void asking.then((told) => {
    end = { told, tookMs: systemClock.elapsed() - startedMs };
  });
  for (;;) {
    if (end) return end;
    await vi.advanceTimersByTimeAsync(1);
  }
}

/** One after the other, in one operation. */
async function askBoth(keys: readonly (string | undefined)[], waitMs: number): Promise<End[]> {
  const ends: End[] = [];
  for (const key of keys) {
    const leftMs = waitMs - ends.reduce((sum, { tookMs }) => sum + tookMs, 0);
    ends.push(await ask(create(key, leftMs)));
  }
  return ends;
}

const posts = () => upstream.posts.length - 1;

/** Redis answers until this script is asked for. */
function hangAt(script: string): void {
  redis.setLatency(10);
  redis.onAsked = (name) => {
    if (name === script) redis.setLatency(Infinity);
  };
}

const TROUBLES: Readonly<Record<string, () => void>> = {
  'that hangs': () => redis.setLatency(Infinity),
  'that hangs when it is asked for the record': () => hangAt('petqlFindRecord'),
  'that hangs when it is asked for the plan': () => hangAt('petqlLedger'),
  'that hangs when the record is to be written': () => hangAt('petqlBeginRecord'),
  'that hangs once a call is under way': () => {
    onPost = () => redis.setLatency(Infinity);
  },
  'that is slow': () => redis.setLatency(200),
  'that is nearly too slow': () => redis.setLatency(400),
  'that is too slow, and carries out what was given up': () => redis.setLatency(800),
};
const CASES = Object.keys(TROUBLES).flatMap((trouble) =>
  [0, 500, 1_000, 3_000].flatMap((waitMs) => [true, false].map((keyed) => ({ trouble, waitMs, keyed }))),
);

describe('two creations of one operation beside a Redis', () => {
  test.each(CASES)(
    '$trouble are over at the deadline, but for a call and its telling: wait $waitMs, with keys: $keyed',
    async ({ trouble, waitMs, keyed }) => {
      const keys = keyed ? ['one', 'other'] : [undefined, undefined];
      TROUBLES[trouble]?.();
      const ends = await askBoth(keys, waitMs);
      const tookMs = ends.reduce((sum, end) => sum + end.tookMs, 0);
      const last = posts() > 0 ? callMs + COMMAND_MS : 0;
      // Each look at the time may be a tick late.
      expect(tookMs).toBeLessThanOrEqual(waitMs + MOMENT_MS + last + 5);
      expect(ends.filter(({ told }) => told.startsWith('animal'))).toHaveLength(posts());
      if (!keyed) return;

      redis.onAsked = () => {};
      onPost = () => {};
      redis.setLatency(1);
      // A replica that went on alone joins the others after a window.
      await vi.advanceTimersByTimeAsync(70_000);
      for (const [position, { told }] of ends.entries()) {
        const again = (await ask(create(keys[position], 10_000))).told;
        expect(again).toMatch(told.startsWith('animal') ? told : /^animal/);
      }
      expect(posts()).toBe(2);
    },
  );
});

test('the other replicas are told and the outcome is written at the same time, and a Redis that hangs is waited for once', async () => {
  onPost = () => redis.setLatency(Infinity);
  const { told, tookMs } = await ask(create('one', 3_000));
  expect(told).toBe('animal 2');
  expect(redis.givenUp).toEqual(expect.arrayContaining(['petqlWrote', 'petqlSettleRecord']));
  expect(Math.floor((tookMs - callMs) / COMMAND_MS)).toBe(1);
});

test('a submit that has more time than the one that it joined is not refused with it', async () => {
  redis.setLatency(200);
  const hasty = create('one', 0);
  const patient = create('one', 3_000);
  expect((await ask(hasty)).told).toBe('RATE_LIMITED');
  expect((await ask(patient)).told).toBe('animal 2');
  expect(posts()).toBe(1);
});

test('an attempt that was written too late is undone before the process ends', async () => {
  redis.setLatency(200);
  expect((await ask(create('one', 400))).told).toBe('RATE_LIMITED');
  expect(redis.asked.at(-2)).toBe('petqlBeginRecord');
  await ask(callers.close().then(() => 'closed'));
  expect(redis.asked).toContain('petqlReleaseRecord');
  expect(posts()).toBe(0);
});

test('a creation whose operation has used its time is not sent', async () => {
  callMs = 1_500;
  const [one, other] = await askBoth(['one', 'other'], 1_000);
  expect([one?.told, other]).toEqual(['animal 2', { told: 'RATE_LIMITED', tookMs: expect.any(Number) }]);
  expect(posts()).toBe(1);
});

describe('a read beside a Redis', () => {
  test.each(Object.keys(TROUBLES).flatMap((trouble) => [0, 500, 3_000].map((waitMs) => ({ trouble, waitMs }))))(
    '$trouble is over at its deadline, but for a call: wait $waitMs',
    async ({ trouble, waitMs }) => {
      TROUBLES[trouble]?.();
      const { told, tookMs } = await ask(read(waitMs));
      expect(told).toMatch(/^(?:found|RATE_LIMITED)$/);
      expect(tookMs).toBeLessThanOrEqual(waitMs + MOMENT_MS + reads * callMs + 5);
    },
  );
});
