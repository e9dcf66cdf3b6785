import { expect, test } from 'vitest';
import { createIdempotency } from '../../src/caller/idempotency.ts';
import { createCallers } from '../../src/caller/callers.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { steadyTime, systemClock as clock } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import { silentLog } from '../../src/log.ts';
import { PLANS } from '../../src/plan.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { PetApi } from '../../src/upstream/pet-api.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { modelPet } from './model-store.ts';

/** A hundred thousand take a minute on a slow machine, and say the same. */
const KEYS = 40_000;
const MOST_MEGABYTES = 50;
const AT_A_TIME = 500;

function heapMegabytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 1_000_000;
}

test('what makes creations happen once holds nothing of the request that it was made for', async () => {
  const options = { apiKey: 'key', clock, records: {} as any, leaseMs: 1, onForeign() {} };
  const made: unknown[] = [];
  const makeIn = () => {
    const request = { body: 'of a stranger' };
    const answer = () => {
      made.push(createIdempotency(options));
      return request;
    };
    return new WeakRef(answer());
  };
  const request = makeIn();
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  collectGarbage();
  expect(request.deref()).toBeUndefined();
  expect(made).toHaveLength(1);
});

test('looks with keys that somebody made up leave nothing behind beside a Redis', async () => {
  const rules = { plan: { ...PLANS.free, known: false }, probeMs: 5_000 };
  const unkept = createMemoryLedger({ rules, now: steadyTime(clock), log: silentLog });
  const ledger = createFailoverLedger({
    shared: {
      ...unkept,
      exchange: async (apiKey, asked) => ({ ...(await unkept.exchange(apiKey, asked)), generation: '' }),
    },
    replicas: {
      count: 1,
      most: 1,
      redisWorks: true,
      outage: undefined,
      redisFailed() {},
      close() {},
    },
    rules,
    clock,
    now: steadyTime(clock),
  });
  const before = heapMegabytes();
  for (let key = 0; key < KEYS; key += 1) await ledger.exchange(`key number ${key}`, { reports: [], wanted: 0 });
  expect(heapMegabytes() - before).toBeLessThan(5);
  await ledger.close();
});

test('keys seen once leave about a kilobyte each, and what they spent is known', async () => {
  const rateLimit = () => ({
    limit: 60,
    remaining: 59,
    reset: Math.floor(Date.now() / 1000) + 30,
    retryAfterMs: undefined,
    dateMs: Date.now(),
  });
  const pets = Array.from({ length: 20 }, (_, index) => modelPet(index + 1));
  const petApi = {
    getPet: (id: Int64) =>
      Promise.resolve({ outcome: { kind: 'ok', value: modelPet(Number(id)) }, sent: true, rateLimit: rateLimit() }),
    listPets: () =>
      Promise.resolve({
        outcome: { kind: 'ok', value: { pets: pets.map((pet) => ({ ...pet })), complete: true } },
        sent: true,
        rateLimit: rateLimit(),
      }),
  } as unknown as PetApi;
  const rules = { plan: { ...PLANS.free, known: false }, probeMs: 5_000 };
  const ledger = createMemoryLedger({ rules, now: steadyTime(clock), log: silentLog });
  const callers = createCallers({ petApi, ledger, upstreamClock: createUpstreamClock(clock), clock });
  const freshness = readFreshness(undefined, { maxAgeMs: 1_000, maxStaleMs: 600_000 });
  const before = heapMegabytes();
  for (let key = 0; key < KEYS; key += AT_A_TIME) {
    await Promise.all(
      Array.from({ length: AT_A_TIME }, async (_, index) => {
        const caller = callers.withKey(`key number ${key + index}`);
        await caller.pets({ deadlineMs: clock.elapsed() + 10_000, freshness }).list(undefined, 20);
      }),
    );
  }
  // What the last calls left behind goes with their timers.
  await expect.poll(() => heapMegabytes() - before, { timeout: 30_000, interval: 500 }).toBeLessThan(MOST_MEGABYTES);
  const { day } = await ledger.exchange('key number 7', { reports: [], wanted: 0 });
  expect(day.used).toBe(1);
  await callers.close();
}, 120_000);

// Two keys that read 500 animals each took more than a gigabyte.
test('animals with names of a megabyte take no more than the room that there is for all callers', async () => {
  const readings = { limit: 100_000, remaining: 99_999, reset: Math.floor(Date.now() / 1000) + 60, dateMs: Date.now() };
  const petApi = {
    getPet: (id: Int64) => {
      const name = Buffer.alloc(1_000_000, 'x').toString('latin1');
      const value = { ...modelPet(Number(id)), name };
      return Promise.resolve({ outcome: { kind: 'ok', value }, sent: true, rateLimit: readings });
    },
    listPets: () =>
      Promise.resolve({
        outcome: { kind: 'ok', value: { pets: [], complete: false } },
        sent: true,
        rateLimit: readings,
      }),
  } as unknown as PetApi;
  const rules = { plan: { perMinute: 100_000, perDay: 1_000_000, known: true }, probeMs: 5_000 };
  const ledger = createMemoryLedger({ rules, now: steadyTime(clock), log: silentLog });
  const callers = createCallers({ petApi, ledger, upstreamClock: createUpstreamClock(clock), clock });
  const freshness = readFreshness(undefined, { maxAgeMs: 600_000, maxStaleMs: 600_000 });
  const before = heapMegabytes();
  for (const key of ['one', 'other']) {
    for (let id = 1; id <= 150; id += 1) {
      const pets = callers.withKey(key).pets({ deadlineMs: clock.elapsed() + 10_000, freshness });
      expect((await pets.byId(String(id) as Int64))?.name).toHaveLength(1_000_000);
    }
  }
  expect(heapMegabytes() - before).toBeLessThan(220);
  await callers.close();
}, 120_000);
