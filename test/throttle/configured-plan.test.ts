import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Grant, Reading, Report, Standing } from '../../src/throttle/ledger.ts';
import { readWindows } from '../../src/throttle/readings.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { createStrictPlan } from './strict-plan.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const plan = (perMinute: number, perDay: number, known = true): LedgerRules => {
  return { plan: { perMinute, perDay, known }, probeMs: 5_000 };
};

const real = useRedis();

let nowMs = NOW;
beforeEach(() => {
  nowMs = NOW;
});

/** Exchanges of a process that was started with these rules, on what was kept before. */
type Ask = (rules: LedgerRules, request: Exchange) => Promise<Standing>;

const places: Record<string, () => Ask> = {
  'in a file': () => {
    let kept: string | undefined;
    return (rules, request) => {
      const state = kept === undefined ? newLedgerState('one', rules) : (JSON.parse(kept) as LedgerState);
      const standing = exchange(state, request, rules, nowMs);
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
        now: () => nowMs,
      }).exchange(key, request, randomUUID());
  },
};

const ofTheDay = (limit: number, remaining: number, perMinute: number): Reading => {
  return { window: 'day', limit, remaining, resetInMs: 3_600_000, resetId: NOW + 3_600_000, otherLimit: perMinute };
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
    await hear(ask, plan(60, 1_000, false), ofTheDay(1_000, 0, 60));
    const look = (rules: LedgerRules) => ask(rules, { reports: [], wanted: 1 });
    expect(await look(plan(60, 1_000, false))).toMatchObject({ grants: [], closed: 'day' });
    await hear(ask, plan(300, 10_000), ofTheDay(2_000, 7, 300));
    // What headers say holds again, and beside it what was configured is heeded once.
    expect((await look(plan(300, 10_000))).day).toMatchObject({ mode: 'told', limit: 2_000, remaining: 6 });
    expect((await look(plan(60, 1_000, false))).minute.limit).toBe(300);
  },
);

test('the plan that was configured before changes nothing that the headers have said', async () => {
  const ask = (places['in a file'] as () => Ask)();
  await hear(ask, plan(60, 1_000), ofTheDay(2_000, 0, 60));
  expect((await ask(plan(60, 1_000), { reports: [], wanted: 1 })).day).toMatchObject({ limit: 2_000, remaining: 0 });
});

describe.each(Object.keys(places))('where what was spent is kept %s', (place) => {
  const skipped = place === 'in Redis' && !redisIsHere;
  const FREE = plan(60, 1_000);
  const PRO = plan(300, 10_000);
  const ofTheMinute = (remaining: number, otherLimit?: number): Reading => {
    return { window: 'minute', limit: 60, remaining, resetInMs: 40_000, resetId: NOW + 40_000, otherLimit };
  };

  test.skipIf(skipped)('a minute that is used up stays so, whatever plan is configured', async () => {
    const ask = (places[place] as () => Ask)();
    await hear(ask, FREE, ofTheMinute(0, 1_000));
    expect(await ask(PRO, { reports: [], wanted: 1 })).toMatchObject({ grants: [], closed: 'minute', waitMs: 41_000 });
    nowMs += 41_000;
    const { grants, minute } = await ask(PRO, { reports: [], wanted: 1 });
    expect(grants).toMatchObject([{ probe: true }]);
    expect(minute.limit).toBe(300);
  });

  test.skipIf(skipped)('a plan is heeded again a minute after the last process with the other one', async () => {
    const ask = (places[place] as () => Ask)();
    const dayLimit = async (rules: LedgerRules) => (await ask(rules, { reports: [], wanted: 0 })).day.limit;
    await hear(ask, FREE, ofTheMinute(59, 1_000));
    expect(await dayLimit(PRO)).toBe(10_000);
    expect(await dayLimit(FREE)).toBe(10_000);
    nowMs += 59_000;
    expect(await dayLimit(PRO)).toBe(10_000);
    nowMs += 30_000;
    expect(await dayLimit(FREE)).toBe(10_000);
    nowMs += 30_000;
    expect(await dayLimit(FREE)).toBe(1_000);
    expect(await dayLimit(PRO)).toBe(1_000);
  });

  test.skipIf(skipped)('of two plans that processes have at the same time, the later one stands', async () => {
    const ask = (places[place] as () => Ask)();
    const dayLimit = async (rules: LedgerRules) => (await ask(rules, { reports: [], wanted: 0 })).day.limit;
    await hear(ask, FREE, ofTheMinute(59, 1_000));
    expect(await dayLimit(PRO)).toBe(10_000);
    for (let minute = 0; minute < 100; minute += 1) {
      nowMs += 30_000;
      expect(await dayLimit(FREE)).toBe(10_000);
      nowMs += 29_000;
      expect(await dayLimit(PRO)).toBe(10_000);
    }
  });

  test.skipIf(skipped)(
    'an answer says nothing of the plan that was configured since its reader last looked',
    async () => {
      const ask = (places[place] as () => Ask)();
      await hear(ask, FREE, ofTheMinute(59, 1_000));
      const { grants } = await ask(FREE, { reports: [], wanted: 2 });
      await ask(PRO, { reports: [], wanted: 0 });
      const tell = (index: number, reading: Reading) =>
        ask(FREE, {
          reports: grants
            .slice(index, index + 1)
            .map((grant): Report => ({ kind: 'answered', grant, readings: [reading] })),
          wanted: 0,
        });
      expect(await tell(0, ofTheMinute(58))).toMatchObject({ minute: { limit: 300 }, day: { limit: 10_000 } });
      expect(await tell(1, ofTheMinute(57, 1_000))).toMatchObject({ minute: { limit: 60 }, day: { limit: 1_000 } });
    },
  );

  /** Calls that the key has made of its day. */
  const adopted = (calls: number): Report => {
    return { kind: 'adopted', calls, underWay: 0, minuteUsed: 0, dayUsed: 0, pausedForMs: 0, refusedLately: false };
  };
  const toldPro = (otherLimit?: number): Reading => {
    return { window: 'minute', limit: 300, remaining: 200, resetInMs: 40_000, resetId: nowMs + 40_000, otherLimit };
  };

  // A Pro key was shut for the day, its limit being Free's, and no call went out by which a header could have said otherwise.
  test.skipIf(skipped)('a process that lags behind takes back nothing that the upstream has told', async () => {
    const ask = (places[place] as () => Ask)();
    await ask(FREE, { reports: [adopted(1)], wanted: 0 });
    await hear(ask, PRO, toldPro());
    await ask(PRO, { reports: [adopted(1_976)], wanted: 0 });
    for (const quietMs of [61_000, 600_000, 3_600_000]) {
      nowMs += quietMs;
      expect(await ask(FREE, { reports: [], wanted: 1 })).toMatchObject({
        grants: [{ probe: true }],
        minute: { limit: 300 },
        day: { limit: 10_000, used: expect.any(Number) },
      });
    }
  });

  // What was counted of the day before was held against the new plan, for another day.
  test.skipIf(skipped)('a smaller plan that is configured once a used-up day is over finds a new one', async () => {
    const ask = (places[place] as () => Ask)();
    await ask(PRO, { reports: [adopted(5_000)], wanted: 0 });
    await hear(ask, PRO, ofTheDay(10_000, 0, 300));
    expect(await ask(PRO, { reports: [], wanted: 1 })).toMatchObject({ grants: [], closed: 'day' });
    nowMs += 3_600_000 + 2_000;
    expect(await ask(FREE, { reports: [], wanted: 1 })).toMatchObject({ grants: [{ probe: true }], day: { used: 1 } });
  });

  describe('a day that is used up by a smaller plan that was merely configured', () => {
    let ask: Ask;
    const look = () => ask(FREE, { reports: [], wanted: 1 });

    async function probe() {
      ask = (places[place] as () => Ask)();
      await ask(PRO, { reports: [adopted(1_976)], wanted: 0 });
      nowMs += 200_000;
      const { grants } = await look();
      expect(grants).toMatchObject([{ probe: true }]);
      expect(await look()).toMatchObject({ grants: [], closed: 'probing', day: { mode: 'unknown', limit: 1_000 } });
      return grants;
    }

    test.skipIf(skipped)('is opened by the headers of a larger one', async () => {
      const [grant] = await probe();
      await ask(FREE, {
        reports: [{ kind: 'answered', grant: grant as Grant, readings: [toldPro(10_000)] }],
        wanted: 0,
      });
      expect(await look()).toMatchObject({ grants: [{ probe: false }], day: { limit: 10_000, used: 1_978 } });
    });

    test.skipIf(skipped)('is closed once an answer does not say otherwise', async () => {
      const [grant] = await probe();
      await ask(FREE, { reports: [{ kind: 'answered', grant: grant as Grant, readings: [] }], wanted: 0 });
      expect(await look()).toMatchObject({ grants: [], closed: 'day' });
    });

    test.skipIf(skipped)('is closed once a call was refused', async () => {
      const [grant] = await probe();
      const refusal = { retryAfterMs: 0, ban: false, jitter: 0 };
      const report: Report = { kind: 'refused', grant: grant as Grant, readings: [], refusal };
      await ask(FREE, { reports: [report], wanted: 0 });
      nowMs += 3_600_000;
      expect(await look()).toMatchObject({ grants: [], closed: 'day' });
    });
  });

  const fleets = (['free', 'pro'] as const).flatMap((name) =>
    (['fixed', 'sliding'] as const).map((windows) => ({ name, windows })),
  );
  // As in a roll-out of the one after the other.
  test.skipIf(skipped).each(fleets)(
    'processes that were given Free and Pro use up a $name key with $windows windows, and meet no 429',
    async ({ name, windows }) => {
      const ask = (places[place] as () => Ask)();
      const upstream = createStrictPlan({ ...PLANS[name], windows, tells: 'minute' });
      const processes = [FREE, PRO].map((rules) => ({ rules, reports: [] as Report[], standing: {} as Standing }));
      for (; nowMs < NOW + 300_000; nowMs += 250) {
        for (const process of processes) {
          process.standing = await ask(process.rules, { reports: process.reports, wanted: 5 });
          // Answered when the next one asks.
          process.reports = process.standing.grants.map((grant): Report => {
            const { status, headers } = upstream.arrive(nowMs);
            const readings = readWindows(headers, process.standing, { upstreamNowMs: nowMs, nowMs });
            if (status === 200) return { kind: 'answered', grant, readings };
            return { kind: 'refused', grant, readings, refusal: { retryAfterMs: 60_000, ban: false, jitter: 0 } };
          });
        }
      }
      const served = upstream.arrivals.filter(({ status }) => status === 200).length;
      expect(upstream.arrivals).toHaveLength(served);
      expect(served).toBeGreaterThanOrEqual(PLANS[name].perMinute * 4.5);
      for (const { standing } of processes) expect(standing.day.limit).toBe(PLANS[name].perDay);
    },
  );
});
