import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Reading, Standing } from '../../src/throttle/ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const plan = (perMinute: number, perDay: number, known = true): LedgerRules => {
  return { plan: { perMinute, perDay, known }, probeMs: 5_000 };
};

const real = useRedis();

/** Exchanges of a process that was started with these rules, on what was kept before. */
type Ask = (rules: LedgerRules, request: Exchange) => Promise<Standing>;

const places: Record<string, () => Ask> = {
  'in a file': () => {
    let kept: string | undefined;
    return (rules, request) => {
      const state = kept === undefined ? newLedgerState('one', rules) : (JSON.parse(kept) as LedgerState);
      const standing = exchange(state, request, rules, NOW);
      kept = JSON.stringify(state);
      return Promise.resolve(standing);
    };
  },
  'in Redis': () => {
    const key = randomUUID();
    return (rules, request) =>
      createRedisLedger({
        redis: real.redis,
        rules,
        nameOf: (apiKey) => apiKey,
        replica: 'one',
        now: () => NOW,
      }).exchange(key, request, randomUUID());
  },
};

const ofTheDay = (limit: number, remaining: number): Reading => {
  return { window: 'day', limit, remaining, resetInMs: 3_600_000, resetId: NOW + 3_600_000, otherLimit: undefined };
};

/** Asks once, and hears this of the day. */
async function hear(ask: Ask, rules: LedgerRules, reading: Reading): Promise<void> {
  const { grants } = await ask(rules, { reports: [], wanted: 1 });
  expect(grants).toMatchObject([{ probe: true }]);
  await ask(rules, { reports: grants.map((grant) => ({ kind: 'answered', grant, readings: [reading] })), wanted: 0 });
}

test.each(Object.keys(places))(
  'a larger plan that was bought opens a day that is used up, where that is kept %s',
  async (place) => {
    if (place === 'in Redis' && !redisIsHere) return;
    const ask = (places[place] as () => Ask)();
    await hear(ask, plan(60, 1_000, false), ofTheDay(1_000, 0));
    const look = (rules: LedgerRules) => ask(rules, { reports: [], wanted: 1 });
    expect(await look(plan(60, 1_000, false))).toMatchObject({ grants: [], closed: 'day' });
    await hear(ask, plan(300, 10_000), ofTheDay(2_000, 7));
    // What headers say holds again, and beside it what was configured is heeded once.
    expect((await look(plan(300, 10_000))).day).toMatchObject({ mode: 'told', limit: 2_000, remaining: 6 });
    expect((await look(plan(60, 1_000, false))).minute.limit).toBe(300);
  },
);

test('the plan that was configured before changes nothing that the headers have said', async () => {
  const ask = (places['in a file'] as () => Ask)();
  await hear(ask, plan(60, 1_000), ofTheDay(2_000, 0));
  expect((await ask(plan(60, 1_000), { reports: [], wanted: 1 })).day).toMatchObject({ limit: 2_000, remaining: 0 });
});
