import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Grant, Ledger } from '../../src/throttle/ledger.ts';
import { twoReplicas } from './two-replicas.ts';

// A Retry-After of an hour was forgotten once nobody had asked for the key in ten minutes: with a Redis that was emptied, the
// next call went out in the midst of it.

const HOUR_MS = 3_600_000;
const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };

let states: Map<string, LedgerState>;
let lives: number;
let ledger: Ledger;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 12) });
  lives = 1;
  states = new Map();
  const shared = {
    async exchange(apiKey: string, request: Exchange) {
      const state = states.get(apiKey) ?? newLedgerState(`${apiKey} ${lives}`, rules);
      states.set(apiKey, state);
      return exchange(state, request, rules, Date.now());
    },
    close: async () => {},
  };
  ledger = createFailoverLedger({ shared, replicas: twoReplicas(), rules, clock: systemClock, now: Date.now });
});
afterEach(async () => {
  await ledger.close();
  vi.useRealTimers();
});

async function refused(apiKey: string, retryAfterMs: number): Promise<void> {
  const [grant] = (await ledger.exchange(apiKey, { reports: [], wanted: 1 })).grants as [Grant];
  const refusal = { retryAfterMs, ban: false, jitter: 0 };
  await ledger.exchange(apiKey, { reports: [{ kind: 'refused', grant, readings: [], refusal }], wanted: 0 });
}

function emptyRedis(): void {
  states.clear();
  lives += 1;
}

const ask = (apiKey: string) => ledger.exchange(apiKey, { reports: [], wanted: 1 });

test('a pause is remembered for as long as it lasts, whether or not anybody asks for the key', async () => {
  await refused('a key', HOUR_MS);
  await vi.advanceTimersByTimeAsync(HOUR_MS / 2);
  emptyRedis();
  expect(await ask('a key')).toMatchObject({ grants: [], closed: 'paused' });
  await vi.advanceTimersByTimeAsync(HOUR_MS / 2 + 2_000);
  expect((await ask('a key')).grants).toMatchObject([{ probe: true }]);
});

test('so many pauses are not remembered, of keys that nobody asks for, that there is no room', async () => {
  for (let index = 0; index <= 10_000; index += 1) await refused(`key ${index}`, HOUR_MS);
  await vi.advanceTimersByTimeAsync(HOUR_MS / 2);
  emptyRedis();
  expect(await ask('key 9999')).toMatchObject({ grants: [], closed: 'paused' });
  expect((await ask('key 10000')).grants).toMatchObject([{ probe: true }]);
});
