import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { steadyTime } from '../../src/clock.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createThrottle } from '../../src/throttle/throttle.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { UpstreamAnswer } from '../../src/upstream/pet-api.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { createStrictPlan } from './strict-plan.ts';

const HOUR_MS = 3_600_000;
const RULES: LedgerRules = { plan: { perMinute: 60, perDay: 5, known: true }, probeMs: 5_000 };

test('a day that was used up before the machine fell asleep is over once it wakes on the next', async () => {
  let [nowMs, elapsedMs, sleptMs] = [Date.UTC(2026, 10, 21, 22), 5_000, 0];
  const clock = { now: () => nowMs, elapsed: () => elapsedMs };
  const wait = (ms: number) => {
    nowMs += ms;
    elapsedMs += ms;
  };
  const upstream = createStrictPlan({ perMinute: 60, perDay: 5, windows: 'fixed', tells: 'day' });
  const { log } = createMemoryLog();
  const ledger = createMemoryLedger({ rules: RULES, now: steadyTime(clock, () => sleptMs), log });
  const throttle = createThrottle({ apiKey: 'a key', ledger, upstreamClock: createUpstreamClock(clock), clock });
  const call = async () => {
    wait(2_000);
    await setImmediate();
    const { kind } = await throttle.pass({ kind: 'read', deadlineMs: elapsedMs + 1_000 }, () => {
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
  wait(60_000);
  expect(await call()).toBe('answered');
  expect(upstream.arrivals.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  await ledger.close();
});
