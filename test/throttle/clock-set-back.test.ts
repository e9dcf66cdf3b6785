import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Grant, Report, Standing } from '../../src/throttle/ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';

const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

const real = useRedis();
let nowMs: number;

/** A ledger whose clock is `nowMs`. */
const places: Record<string, () => (request: Exchange) => Promise<Standing>> = {
  'of one process': () => {
    const state = newLedgerState('one', rules);
    return (request) => Promise.resolve(exchange(state, request, rules, nowMs));
  },
  'in Redis': () => {
    const now = () => nowMs;
    const ledger = createRedisLedger({ redis: real.redis, rules, nameOf: (apiKey) => apiKey, replica: 'one', now });
    const key = randomUUID();
    return (request) => ledger.exchange(key, request, randomUUID());
  },
};

test.each(
  Object.keys(places).flatMap((place) => [
    { place, what: 'a reset', afterMs: HOUR_MS },
    { place, what: 'a pause', afterMs: 10 * MINUTE_MS },
    { place, what: 'a probe', afterMs: 5_000 },
    { place, what: 'a counted minute', afterMs: 70_000 },
  ]),
)('by the ledger $place, $what ends as soon as it would have, though somebody sets the clock back', async (given) => {
  const { place, what, afterMs } = given;
  if (place === 'in Redis' && !redisIsHere) return;
  nowMs = Date.UTC(2026, 10, 21, 12);
  const ask = (places[place] as () => (request: Exchange) => Promise<Standing>)();
  const take = (wanted: number, ...reports: Report[]) => ask({ wanted, reports });
  const [grant] = (await take(1)).grants as [Grant];
  if (what === 'a reset') {
    const reading = { window: 'day', limit: 1_000, remaining: 0, resetInMs: HOUR_MS, resetId: 1 } as const;
    await take(0, { kind: 'answered', grant, readings: [{ ...reading, otherLimit: undefined }] });
  } else if (what === 'a pause') {
    await take(0, { kind: 'refused', grant, readings: [], refusal: { retryAfterMs: afterMs, ban: false, jitter: 0 } });
  } else if (what === 'a counted minute') {
    const { grants } = await take(100, { kind: 'answered', grant, readings: [] });
    await take(0, ...grants.map((one): Report => ({ kind: 'answered', grant: one, readings: [] })));
  }
  nowMs -= 6 * HOUR_MS;
  expect((await take(1)).grants).toEqual([]);
  nowMs += afterMs - 1_000;
  expect((await take(1)).grants).toEqual([]);
  // A reset has its guard, and what is counted goes by slots.
  nowMs += 8_000;
  expect((await take(1)).grants).toHaveLength(1);
});
