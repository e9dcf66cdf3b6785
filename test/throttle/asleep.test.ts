import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { countingSleep, steadyTime, systemClock } from '../../src/clock.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createThrottle } from '../../src/throttle/throttle.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { UpstreamAnswer } from '../../src/upstream/pet-api.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { createStrictPlan } from './strict-plan.ts';

const HOUR_MS = 3_600_000;
const RULES: LedgerRules = { plan: { perMinute: 60, perDay: 5, known: true }, probeMs: 5_000 };

afterEach(() => void vi.useRealTimers());

test('a day that was used up before the machine fell asleep is over once it wakes on the next', async () => {
  let [nowMs, elapsedMs, sleptMs] = [Date.UTC(2026, 10, 21, 22), 5_000, 0];
  const own = { now: () => nowMs, elapsed: () => elapsedMs };
  const clock = countingSleep(own, () => elapsedMs + sleptMs);
  const wait = (ms: number) => {
    nowMs += ms;
    elapsedMs += ms;
  };
  const upstream = createStrictPlan({ perMinute: 60, perDay: 5, windows: 'fixed', tells: 'day' });
  const { log } = createMemoryLog();
  const ledger = createMemoryLedger({ rules: RULES, now: steadyTime(clock), log });
  const throttle = createThrottle({ apiKey: 'a key', ledger, upstreamClock: createUpstreamClock(clock), clock });
  const call = async () => {
    wait(2_000);
    await setImmediate();
    const { kind } = await throttle.pass({ kind: 'read', deadlineMs: clock.elapsed() + 1_000 }, () => {
      const { headers } = upstream.arrive(nowMs);
      const answer: UpstreamAnswer<number> = { outcome: { kind: 'ok', value: 1 }, sent: true, rateLimit: headers };
      return Promise.resolve(answer);
    });
    return kind;
  };
  for (let count = 0; count < 5; count += 1) expect(await call()).toBe('answered');
  expect(await call()).toBe('refused');

  nowMs += 9 * HOUR_MS;
  sleptMs += 9 * HOUR_MS;
  expect(await call()).toBe('answered');
  expect(upstream.arrivals.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  await ledger.close();
});

/** Timers stand still in a sleep, and deadlines do not: each has to end with its timer, and nothing waits for the other. */
test('who waits while the machine sleeps waits no longer than its timer, and whoever comes after it is answered', async () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 22) });
  let sleptMs = 0;
  const clock = countingSleep(systemClock, () => performance.now() + sleptMs);
  const { log } = createMemoryLog();
  const ledger = createMemoryLedger({ rules: RULES, now: steadyTime(clock), log });
  const upstreamClock = createUpstreamClock(clock);
  const throttle = createThrottle({ apiKey: 'a key', ledger, upstreamClock, clock, maxConcurrent: 1 });
  const answer: UpstreamAnswer<number> = { outcome: { kind: 'ok', value: 1 }, sent: true, rateLimit: undefined };
  const ends: string[] = [];
  const pass = async (name: string, send: () => Promise<UpstreamAnswer<number>>) => {
    const { kind } = await throttle.pass({ kind: 'read', deadlineMs: clock.elapsed() + 1_000 }, send);
    ends.push(`${name} ${kind}`);
  };
  const sent = Promise.withResolvers<UpstreamAnswer<number>>();
  void pass('under way', () => sent.promise);
  void pass('waiting', () => Promise.resolve(answer));

  await vi.advanceTimersByTimeAsync(500);
  sleptMs += HOUR_MS;
  await vi.advanceTimersByTimeAsync(600);
  expect(ends).toEqual(['waiting refused']);
  sent.resolve(answer);
  void pass('after it', () => Promise.resolve(answer));
  await vi.advanceTimersByTimeAsync(100);
  expect(ends).toEqual(['waiting refused', 'under way answered', 'after it answered']);
  await ledger.close();
});
