import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Ledger, Report } from '../../src/throttle/ledger.ts';
import { twoReplicas } from './two-replicas.ts';

// A process that is stopped after an outage knew alone what it had spent, and the next one spent it again.

const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 12) });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A replica that has Redis or has not, and what Redis has of each key. */
function startReplica({ answersAfterMs }: { answersAfterMs: number }) {
  const states = new Map<string, LedgerState>();
  let away = false;
  const replicas = twoReplicas();
  const shared = {
    async exchange(apiKey: string, request: Exchange) {
      if (away) throw new RedisAway('away');
      await new Promise((resolve) => {
        setTimeout(resolve, answersAfterMs);
      });
      const state = states.get(apiKey) ?? newLedgerState('one', rules);
      states.set(apiKey, state);
      return structuredClone(exchange(state, request, rules, Date.now()));
    },
    close: () => Promise.resolve(),
  };
  const clock = { now: Date.now, elapsed: () => Date.now() };
  const ledger = createFailoverLedger({ shared, replicas, rules, clock, now: Date.now });
  return {
    ledger,
    works(redisWorks: boolean) {
      replicas.redisWorks = redisWorks;
      away = !redisWorks;
    },
    told: () => [...states.values()].reduce((total, { started }) => total + started, 0),
  };
}

/** All that the plan allows of the minute, alone. */
async function spend(ledger: Ledger, apiKey: string): Promise<number> {
  let spent = 0;
  for (let reports: Report[] = []; ;) {
    const { grants } = await ledger.exchange(apiKey, { reports, wanted: 2 });
    if (grants.length === 0) return spent;
    spent += grants.length;
    const resetId = Math.ceil(Date.now() / 60_000 + 0.5) * 60_000;
    const of = {
      window: 'minute',
      limit: 60,
      resetInMs: resetId - Date.now(),
      resetId,
      otherLimit: undefined,
    } as const;
    reports = grants.map((grant) => ({ kind: 'answered', grant, readings: [{ ...of, remaining: 60 - spent }] }));
  }
}

test('whoever is stopped after an outage tells what it has spent alone', async () => {
  const { ledger, works, told } = startReplica({ answersAfterMs: 5 });
  works(false);
  const spent = (await spend(ledger, 'one')) + (await spend(ledger, 'other'));
  expect(spent).toBeGreaterThan(50);
  works(true);
  const closed = ledger.close();
  await vi.advanceTimersByTimeAsync(100);
  await closed;
  expect(told()).toBe(spent);
});

test('it tells of many keys at a time, and gives up after a second', async () => {
  const { ledger, works, told } = startReplica({ answersAfterMs: 300 });
  works(false);
  for (let key = 0; key < 1_000; key += 1) await ledger.exchange(String(key), { reports: [], wanted: 1 });
  works(true);
  let over = false;
  const closed = ledger.close().then(() => (over = true));
  await vi.advanceTimersByTimeAsync(999);
  expect(over).toBe(false);
  await vi.advanceTimersByTimeAsync(10);
  await closed;
  expect(told()).toBeGreaterThanOrEqual(300);
  const toldThen = told();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told()).toBeLessThanOrEqual(toldThen + 100);
});

test('nothing is waited for where Redis is still away', async () => {
  const { ledger, works, told } = startReplica({ answersAfterMs: 5 });
  works(false);
  await spend(ledger, 'one');
  const closed = ledger.close();
  await vi.advanceTimersByTimeAsync(1);
  await closed;
  expect(told()).toBe(0);
});

test('what is spent alone is told a moment after Redis is back, though its share of the minute is spent', async () => {
  const { ledger, works, told } = startReplica({ answersAfterMs: 5 });
  works(false);
  const spent = await spend(ledger, 'one');
  works(true);
  expect(
    (await Promise.all([ledger.exchange('one', { reports: [], wanted: 1 }), vi.advanceTimersByTimeAsync(10)]))[0],
  ).toMatchObject({ grants: [], closed: 'minute' });
  expect(told()).toBe(spent);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(told()).toBe(spent);
  await ledger.close();
});
