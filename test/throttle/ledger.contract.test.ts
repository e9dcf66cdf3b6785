import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Grant, Ledger, Reading, Report, Standing } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';

const rules: LedgerRules = { plan: { perMinute: 10, perDay: 300, known: true }, probeMs: 5_000 };
const START = Date.UTC(2026, 10, 21, 12);

const real = useRedis();

const makers = {
  'in memory': (now: () => number, ledgerRules = rules): Ledger =>
    createMemoryLedger({ rules: ledgerRules, now, log: createMemoryLog().log }),
  'in Redis': (now: () => number, ledgerRules = rules): Ledger =>
    createRedisLedger({ redis: real.redis, rules: ledgerRules, nameOf: (apiKey) => apiKey, replica: 'one', now }),
};
/** The plan is assumed and not known. */
const unsure: LedgerRules = { ...rules, plan: { ...rules.plan, known: false } };

const ADOPTED = {
  kind: 'adopted',
  calls: 0,
  underWay: 0,
  minuteUsed: 0,
  dayUsed: 0,
  pausedForMs: 0,
  refusedLately: false,
} as const;

describe.each(Object.entries(makers))('the ledger %s', (place, make) => {
  const skipped = place === 'in Redis' && !redisIsHere;
  let nowMs: number;
  let key: string;
  let ledger: Ledger;

  beforeEach(() => {
    nowMs = START;
    key = randomUUID();
    ledger = skipped ? makers['in memory'](() => nowMs) : make(() => nowMs);
  });

  const ask = (wanted: number, ...reports: Report[]) => ledger.exchange(key, { reports, wanted });
  const take = async (wanted: number): Promise<Grant> => {
    const [grant] = (await ask(wanted)).grants;
    if (!grant) throw new Error('expected a grant');
    return grant;
  };
  const minute = (remaining: number, more: Partial<Reading> = {}): Reading => ({
    window: 'minute',
    limit: 10,
    remaining,
    resetInMs: 40_000,
    resetId: START + 40_000,
    otherLimit: undefined,
    ...more,
  });
  const answered = (grant: Grant, ...readings: Reading[]): Report => ({ kind: 'answered', grant, readings });
  const refused = (grant: Grant, retryAfterMs: number, ban = false): Report => ({
    kind: 'refused',
    grant,
    readings: [],
    refusal: { retryAfterMs, ban, jitter: 0 },
  });
  /** Opens the window with so many left. */
  const open = async (remaining: number) => ask(0, answered(await take(1), minute(remaining)));

  test.skipIf(skipped)('begins with one probe, and gives no second one meanwhile', async () => {
    const first = await ask(5);
    expect(first.grants).toMatchObject([{ probe: true, start: 1, countedBefore: 0 }]);
    expect(first).toMatchObject({ closed: 'probing', waitMs: 5_000, minute: { mode: 'unknown' } });
    expect(await ask(5)).toMatchObject({ grants: [], closed: 'probing' });
  });

  test.skipIf(skipped)('opens with what the answer to the probe tells', async () => {
    await open(7);
    const standing = await ask(9);
    expect(standing.grants).toHaveLength(7);
    expect(standing).toMatchObject({ closed: 'minute', waitMs: 41_000, minute: { mode: 'told', remaining: 0 } });
  });

  test.skipIf(skipped)('sends another probe when the first was lost, a second later', async () => {
    const grant = await take(1);
    expect(await ask(1, { kind: 'lost', grant })).toMatchObject({ grants: [], closed: 'probing', waitMs: 1_000 });
    nowMs += 1_000;
    expect((await ask(1)).grants).toHaveLength(1);
  });

  test.skipIf(skipped)('sends another probe when nothing was heard of the first', async () => {
    await take(1);
    nowMs += 5_000;
    expect((await ask(1)).grants).toMatchObject([{ probe: true }]);
  });

  test.skipIf(skipped)('takes a grant back as if it had never been given', async () => {
    await open(3);
    const { grants } = await ask(3);
    expect(await ask(9, ...grants.map((grant): Report => ({ kind: 'returned', grant })))).toMatchObject({
      grants: [{}, {}, {}],
    });
  });

  test.skipIf(skipped)('does not give back what the upstream has already said to be its last', async () => {
    await open(3);
    const [first, second] = (await ask(2)).grants as [Grant, Grant];
    // Nothing is left by now, with the second one spent as far as anybody knows.
    await ask(0, answered(first, minute(0)));
    expect((await ask(5, { kind: 'returned', grant: second })).grants).toEqual([]);
  });

  test.skipIf(skipped)('does not believe an older answer that there is more left', async () => {
    await open(9);
    const [first, second] = (await ask(2)).grants as [Grant, Grant];
    await ask(0, answered(second, minute(2)));
    const late = await ask(0, answered(first, minute(8)));
    expect(late.minute.remaining).toBeLessThanOrEqual(8);
    expect((await ask(20)).grants.length).toBeLessThanOrEqual(7);
  });

  test.skipIf(skipped)('is lowered by calls of somebody else with the same key', async () => {
    await open(9);
    const grant = await take(1);
    expect(await ask(0, answered(grant, minute(2)))).toMatchObject({ minute: { remaining: 2 } });
  });

  // When a sliding window's reset moves on, its headers say which calls under way they have counted less and less.
  test.skipIf(skipped)('learns from all answers together what has been counted', async () => {
    await open(10);
    const { grants } = await ask(5);
    const next = { resetInMs: 60_000, resetId: START + 100_000 };
    const told = [minute(9), minute(8), minute(8, next), minute(7, next), minute(6, next)];
    const reports = grants.map((grant, index) => answered(grant, told[index] as Reading));
    // By the third answer alone, none of the other four need be counted yet: that would leave 4.
    expect(await ask(0, ...reports)).toMatchObject({ minute: { remaining: 6 } });
  });

  // It was under way when the probe was counted, and what it was told does not tell of those under way now.
  test.skipIf(skipped)('takes a call from before the state was lost off what is left', async () => {
    await open(5);
    await ask(2);
    const grant = { generation: 'lost', start: 90, countedBefore: 88, grantedAtMs: START - 100, probe: false };
    await ask(0, answered(grant, minute(4)));
    expect((await ask(9)).grants).toHaveLength(2);
  });

  test.skipIf(skipped)('learns nothing from answers of which one told nothing', async () => {
    await open(10);
    const { grants } = await ask(5);
    const next = { resetInMs: 60_000, resetId: START + 100_000 };
    const told = [minute(9), undefined, minute(8, next), minute(7, next), minute(6, next)];
    const reports = grants.map((grant, index) => answered(grant, ...(told[index] ? [told[index]] : [])));
    expect(await ask(0, ...reports)).toMatchObject({ minute: { remaining: 4 } });
  });

  test.skipIf(skipped)('ignores what is said of an earlier window', async () => {
    await open(9);
    const [first, second] = (await ask(2)).grants as [Grant, Grant];
    const next = { resetInMs: 60_000, resetId: START + 100_000 };
    await ask(0, answered(second, minute(9, next)));
    expect(await ask(0, answered(first, minute(0)))).toMatchObject({ minute: { remaining: expect.any(Number) } });
    expect((await ask(20)).grants.length).toBeGreaterThan(5);
  });

  test.skipIf(skipped)('probes again once the window is over', async () => {
    await open(0);
    expect((await ask(1)).grants).toEqual([]);
    nowMs += 41_000;
    expect(await ask(4)).toMatchObject({ grants: [{ probe: true }], closed: 'probing' });
  });

  test.skipIf(skipped)('counts for itself what no header tells of', async () => {
    await ask(0, answered(await take(1)));
    const standing = await ask(20);
    expect(standing.grants).toHaveLength(9);
    expect(standing).toMatchObject({ closed: 'minute', minute: { mode: 'counted', remaining: 0 } });
    expect(standing.waitMs).toBeGreaterThanOrEqual(60_000);
    nowMs += standing.waitMs;
    expect((await ask(20)).grants).toHaveLength(10);
  });

  test.skipIf(skipped)('counts a day over 24 hours and keeps one call in a hundred back', async () => {
    let granted = 0;
    for (let minutes = 0; minutes < 60; minutes += 1) {
      const { grants } = await ask(10);
      granted += grants.length;
      await ask(0, ...grants.map((grant) => answered(grant)));
      nowMs += 65_000;
    }
    expect(granted).toBe(297);
    const full = await ask(1);
    expect(full).toMatchObject({ grants: [], closed: 'day', day: { mode: 'counted', remaining: 0 } });
    nowMs = START + 24 * 3_600_000 - 1;
    expect((await ask(1)).grants).toEqual([]);
    nowMs += 3_700_000;
    expect((await ask(10)).grants.length).toBeGreaterThan(0);
  });

  // A wait of nothing is asked again at once, and again, by a process that does nothing else any more.
  test.skipIf(skipped)('asks for a window that allows nothing again when its length is over', async () => {
    const none = (plan: Partial<LedgerRules['plan']>) =>
      make(() => nowMs, { ...rules, plan: { ...rules.plan, ...plan } });
    ledger = none({ perMinute: 0 });
    expect(await ask(1)).toMatchObject({ grants: [], closed: 'minute', waitMs: 60_000 });
    [ledger, key] = [none({ perDay: 0 }), randomUUID()];
    expect(await ask(1)).toMatchObject({ grants: [], closed: 'day', waitMs: 86_400_000 });
  });

  test.skipIf(skipped)('begins the day anew when the upstream told its reset', async () => {
    const day: Reading = { ...minute(2), window: 'day', limit: 300, resetInMs: 7_200_000, resetId: START + 7_200_000 };
    await ask(0, answered(await take(1), minute(9), day));
    expect((await ask(9)).grants).toHaveLength(2);
    nowMs += 7_100_000;
    expect((await ask(9)).grants).toEqual([]);
    nowMs += 101_000;
    const [probe] = (await ask(9)).grants as [Grant];
    const open2 = await ask(9, answered(probe, minute(9, { resetId: nowMs + 40_000 })));
    expect(open2).toMatchObject({ day: { mode: 'counted' } });
    expect(open2.grants).toHaveLength(9);
  });

  // Or a day that was misread, and told once more by a late answer, would hold no more than a minute for ever.
  test.skipIf(skipped)('knows that a day that was told with the limit of the minute was that minute', async () => {
    const misread: Reading = { ...minute(290), window: 'day', limit: 300 };
    await ask(0, answered(await take(1), misread));
    const next = { limit: 300, resetInMs: 60_000, resetId: START + 100_000, otherLimit: 9_000 };
    expect(await ask(0, answered(await take(1), minute(299, next)))).toMatchObject({
      minute: { limit: 300 },
      day: { limit: 9_000 },
    });
  });

  test.skipIf(skipped)('closes after a 429 until its time and a guard are over, and then probes', async () => {
    await open(5);
    const [first, second] = (await ask(2)).grants as [Grant, Grant];
    expect(await ask(9, refused(first, 20_000))).toMatchObject({ grants: [], closed: 'paused', pausedForMs: 21_000 });
    // It was under way already: no second incident.
    expect(await ask(9, refused(second, 10_000))).toMatchObject({ pausedForMs: 21_000 });
    nowMs += 20_999;
    expect((await ask(9)).grants).toEqual([]);
    nowMs += 1;
    expect((await ask(9)).grants).toMatchObject([{ probe: true }]);
  });

  // Each 429 of them would double the pause: of twenty in flight when Redis went away, up to a quarter of an hour.
  test.skipIf(skipped)('takes the 429s of calls that another ledger has granted for one incident', async () => {
    const strangers = Array.from({ length: 20 }, (): Grant => ({
      generation: 'another',
      start: 1,
      countedBefore: 0,
      grantedAtMs: nowMs,
      probe: false,
    }));
    for (const stranger of strangers) {
      nowMs += 10;
      await ask(0, refused(stranger, 1_000));
    }
    expect(await ask(9)).toMatchObject({ closed: 'paused', pausedForMs: 6_000 - 190 });
  });

  test.skipIf(skipped)('closes for longer after each further 429, and is done with it after a success', async () => {
    const pauses: number[] = [];
    for (let again = 0; again < 10; again += 1) {
      const { pausedForMs } = await ask(0, refused(await take(1), 0));
      pauses.push(pausedForMs);
      nowMs += pausedForMs;
    }
    expect(pauses).toEqual([6, 11, 21, 41, 81, 161, 321, 641, 901, 901].map((seconds) => seconds * 1_000));
    await open(5);
    expect(await ask(0, refused(await take(1), 0))).toMatchObject({ pausedForMs: 6_000 });
  });

  test.skipIf(skipped)('never shortens a Retry-After', async () => {
    const week = 7 * 86_400_000;
    expect(await ask(0, refused(await take(1), week))).toMatchObject({ pausedForMs: week + 1_000 });
  });

  test.skipIf(skipped)('takes a 401 or 403 for a ban only where there was a 429 lately', async () => {
    expect(await ask(0, refused(await take(1), 0, true))).toMatchObject({ banned: false, pausedForMs: 0 });
    await ask(0, refused(await take(1), 0));
    nowMs += 6_000;
    expect(await ask(0, refused(await take(1), 0, true))).toMatchObject({ banned: true, pausedForMs: 121_000 });
  });

  test.skipIf(skipped)('adopts calls that another ledger granted, and never loses a pause', async () => {
    await open(9);
    const standing = await ask(9, { ...ADOPTED, calls: 40, dayUsed: 100, pausedForMs: 30_000 });
    expect(standing).toMatchObject({ grants: [], closed: 'paused', pausedForMs: 30_000, day: { remaining: 197 } });
  });

  // In a store that is emptied, the minute began anew, and was overrun by all that had been called in it.
  test.skipIf(skipped)('counts what another ledger knows of a minute that no header tells of', async () => {
    await ask(0, { ...ADOPTED, minuteUsed: 7, dayUsed: 7 });
    const standing = await ask(20, answered(await take(1)));
    expect(standing.grants).toHaveLength(2);
    expect(standing.minute).toMatchObject({ mode: 'counted', remaining: 0 });
  });

  describe('of a minute in which another ledger has granted calls', () => {
    const told = (remaining: number, more: Partial<{ inMs: number; id: number }> = {}) => ({
      minuteTold: { remaining, inMs: 30_000, id: START + 40_000, ...more },
    });

    test.skipIf(skipped)('finds out by a probe what is left', async () => {
      await open(9);
      expect((await ask(9, { ...ADOPTED, calls: 4, ...told(5) })).grants).toMatchObject([{ probe: true }]);
    });

    // Each of these probes was a 429.
    test.skipIf(skipped)('does not where the last that was told of it is that nothing is', async () => {
      await open(9);
      const used = await ask(9, { ...ADOPTED, calls: 9, ...told(0) });
      expect(used).toMatchObject({ grants: [], closed: 'minute', waitMs: 30_000, minute: { mode: 'told' } });
      nowMs += 30_000;
      expect((await ask(9)).grants).toMatchObject([{ probe: true }]);
    });

    test.skipIf(skipped)('does not in a window that it knew nothing of, either', async () => {
      expect(await ask(9, { ...ADOPTED, calls: 9, ...told(0) })).toMatchObject({ grants: [], closed: 'minute' });
    });

    test.skipIf(skipped)('does not where all that was left is granted here', async () => {
      await open(9);
      await ask(9);
      expect(await ask(9, { ...ADOPTED, calls: 1, ...told(5) })).toMatchObject({ grants: [], closed: 'minute' });
    });

    test.skipIf(skipped)('hears nothing of one that is over, or from before what was told here', async () => {
      await ask(0, { ...ADOPTED, calls: 9, ...told(0, { inMs: 0 }) });
      await open(9);
      const standing = await ask(9, { ...ADOPTED, ...told(0, { id: START }) });
      expect(standing.grants).toHaveLength(9);
    });

    test.skipIf(skipped)(
      'does so though none is told of yet, where it could not be reached since it was told',
      async () => {
        await open(9);
        nowMs += 3_000;
        expect((await ask(9, { ...ADOPTED, awayForMs: 2_000 })).grants).toMatchObject([{ probe: true }]);
      },
    );

    test.skipIf(skipped)('goes on with what it was told after it could be reached again', async () => {
      await open(9);
      nowMs += 1_000;
      expect((await ask(2, { ...ADOPTED, awayForMs: 2_000 })).grants).toHaveLength(2);
      const late = { ...minute(9), agoMs: 5_000 };
      key = randomUUID();
      await ask(0, answered(await take(1), late));
      expect((await ask(9, { ...ADOPTED, awayForMs: 2_000 })).grants).toMatchObject([{ probe: true }]);
    });
  });

  // Told as spent now, what had left the day closed it for another.
  test.skipIf(skipped)('counts nothing again of what another ledger knows from here', async () => {
    const { generation, started } = await open(9);
    const known = { ...ADOPTED, minuteUsed: 7, dayUsed: 7, knownOf: { generation, started } };
    expect(await ask(0, known)).toMatchObject({ day: { used: 1 } });
    expect(await ask(0, { ...known, calls: 2 })).toMatchObject({ day: { used: 3 } });
    // It was restored to what it was before that.
    const further = { ...known, knownOf: { generation, started: 90 } };
    expect(await ask(0, further)).toMatchObject({ day: { used: 7 } });
  });

  describe('of a day of which another ledger knows when it resets', () => {
    const RESET_IN_MS = 7_200_000;
    const dayReset = { inMs: RESET_IN_MS, id: START + RESET_IN_MS };

    // Counted here, it would be over when the last call of it is a day old.
    test.skipIf(skipped)('waits for that, and for no longer', async () => {
      expect(await ask(1, { ...ADOPTED, dayUsed: 300, dayReset })).toMatchObject({ grants: [], closed: 'day' });
      nowMs += RESET_IN_MS - 1;
      expect(await ask(1)).toMatchObject({ grants: [], closed: 'day', waitMs: 1 });
      nowMs += 1;
      expect(await ask(1)).toMatchObject({ grants: [{ probe: true }], day: { mode: 'unknown', used: 1 } });
    });

    test.skipIf(skipped)('takes the most that any of several tells, and the reset of the first', async () => {
      await ask(0, { ...ADOPTED, dayUsed: 100, dayReset });
      nowMs += 1_000;
      expect((await ask(0, { ...ADOPTED, calls: 5, dayUsed: 205, dayReset })).day.remaining).toBe(95);
      nowMs += 1_000;
      const { day } = await ask(0, { ...ADOPTED, dayUsed: 150, dayReset });
      expect(day).toMatchObject({ mode: 'told', remaining: 95, resetInMs: RESET_IN_MS - 2_000 });
    });

    test.skipIf(skipped)('hears nothing that is of the day before', async () => {
      const next = { window: 'day', limit: 300, resetInMs: 86_400_000, resetId: START + 86_400_000 } as const;
      await ask(0, answered(await take(1), { ...next, remaining: 299, otherLimit: undefined }));
      const before = { inMs: 500, id: START };
      expect(await ask(0, { ...ADOPTED, dayUsed: 300, dayReset: before })).toMatchObject({ day: { remaining: 299 } });
    });

    test.skipIf(skipped)('is corrected by what the next answer tells', async () => {
      await ask(0, { ...ADOPTED, dayUsed: 100, dayReset });
      const ofDay = { window: 'day', limit: 300, resetInMs: RESET_IN_MS, resetId: dayReset.id } as const;
      const reading = { ...ofDay, remaining: 20, otherLimit: undefined };
      expect(await ask(0, answered(await take(1), reading))).toMatchObject({ day: { remaining: 20 } });
    });
  });

  test.skipIf(skipped)('counts what another ledger has counted of the day for as long as that does', async () => {
    await ask(0, { ...ADOPTED, dayUsed: 40, dayFreeInMs: 10_000_000 });
    nowMs += 9_900_000;
    expect((await ask(0)).day.used).toBe(40);
    // Its slot of an hour at most.
    nowMs += 3_700_000;
    expect((await ask(0)).day.used).toBe(0);
  });

  // A banned key was called with 14,000 times: a 403 was nobody's ban once the 429s before it had been adopted.
  test.skipIf(skipped)('knows a ban by the refusals that another ledger has seen', async () => {
    await open(9);
    await ask(0, { ...ADOPTED, refusedLately: true });
    expect(await ask(0, refused(await take(1), 0, true))).toMatchObject({ banned: true, refusedLately: true });
    expect((await ask(1)).grants).toEqual([]);
  });

  // A Redis that lost its state assumes the smallest plan again, and a larger one's day would be over by that.
  test.skipIf(skipped)('adopts the plan with the calls that were made on it, unless it knows the plan', async () => {
    const adopted = { ...ADOPTED, dayUsed: 400 };
    const plan = { perMinute: 100, perDay: 1_000 };
    expect(await ask(1, { ...adopted, plan })).toMatchObject({ grants: [], closed: 'day', day: { limit: 300 } });
    key = randomUUID();
    ledger = make(() => nowMs, unsure);
    expect(await ask(1, { ...adopted, plan })).toMatchObject({ grants: [{ probe: true }], day: { limit: 1_000 } });
  });

  test.skipIf(skipped)(
    'lets an answer from before its state was lost lower what is left, and not raise it',
    async () => {
      await open(5);
      const stranger: Grant = { ...(await take(1)), generation: 'another', countedBefore: 500 };
      expect(await ask(0, answered(stranger, minute(9)))).toMatchObject({ minute: { remaining: 3 } });
      expect(await ask(0, answered(stranger, minute(1)))).toMatchObject({ minute: { remaining: 1 } });
    },
  );

  test.skipIf(skipped)('keeps callers apart', async () => {
    await open(0);
    key = randomUUID();
    expect((await ask(1)).grants).toHaveLength(1);
  });
});

/** A report as fast-check makes it up, before it is known which grant it is of. */
interface GivenReport {
  readonly kind: string;
  readonly which: number;
  readonly readings: readonly (Omit<Reading, 'resetId'> & { readonly resetStep: number })[];
  readonly retryAfterMs: number;
  readonly ban: boolean;
  readonly jitter: number;
  readonly stranger: boolean;
}

test.skipIf(!redisIsHere)('in Redis, an exchange that is sent again is carried out once', async () => {
  let nowMs = START;
  const ledger = createRedisLedger({
    redis: real.redis,
    rules,
    nameOf: (apiKey) => apiKey,
    replica: 'one',
    now: () => nowMs,
  });
  const key = randomUUID();
  const { grants } = await ledger.exchange(key, { reports: [], wanted: 1 }, 'first');
  const again = await ledger.exchange(key, { reports: [], wanted: 1 }, 'first');
  expect(again.grants).toEqual(grants);
  const report: Report = { kind: 'answered', grant: grants[0] as Grant, readings: [] };
  const second = await ledger.exchange(key, { reports: [report], wanted: 4 }, 'second');
  nowMs += 400;
  expect(await ledger.exchange(key, { reports: [report], wanted: 4 }, 'second')).toMatchObject({
    grants: second.grants,
  });
  expect((await ledger.exchange(key, { reports: [], wanted: 20 }, 'third')).grants).toHaveLength(5);
});

test.skipIf(!redisIsHere)('in Redis, nothing is kept of whoever only looks', async () => {
  const { redis } = real;
  const ledger = createRedisLedger({ redis, rules, nameOf: (apiKey) => apiKey, replica: 'one' });
  const key = randomUUID();
  const exists = { name: 'testExists', source: `return tostring(redis.call('EXISTS', KEYS[1]))` };
  const isKept = () => redis.run(exists, `petql:ledger:${key}`);
  expect(await ledger.exchange(key, { reports: [], wanted: 0 })).toMatchObject({ generation: '', day: { used: 0 } });
  expect(await isKept()).toBe('0');
  const { generation } = await ledger.exchange(key, { reports: [], wanted: 1 });
  expect(await isKept()).toBe('1');
  expect(await ledger.exchange(key, { reports: [], wanted: 0 })).toMatchObject({ generation, day: { used: 1 } });
});

describe.skipIf(!redisIsHere)('the two ledgers', () => {
  const reading = fc.record({
    window: fc.constantFrom('minute' as const, 'day' as const),
    limit: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
    // Often nearly the same, so that several answers together say more than one.
    remaining: fc.oneof(fc.nat(45), fc.integer({ min: 6, max: 8 })),
    resetInMs: fc.nat(90_000),
    resetStep: fc.oneof(fc.constant(0), fc.integer({ min: -2, max: 3 })),
    otherLimit: fc.option(fc.integer({ min: 1, max: 400 }), { nil: undefined }),
  });
  const report = fc.record({
    kind: fc.constantFrom('returned', 'lost', 'answered', 'answered', 'answered', 'refused', 'adopted'),
    which: fc.nat(50),
    readings: fc.array(reading, { maxLength: 2 }),
    retryAfterMs: fc.nat(30_000),
    ban: fc.boolean(),
    jitter: fc.nat(1_000).map((thousandths) => thousandths / 1_000),
    stranger: fc.nat(9).map((number) => number === 0),
  });
  const step = fc.record({
    passMs: fc.oneof(fc.nat(500), fc.nat(70_000), fc.nat(8_000_000)),
    wanted: fc.nat(15),
    reports: fc.array(report, { maxLength: 4 }),
  });

  test('give the same grants and the same standing for the same history', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        let nowMs = START;
        const memory = makers['in memory'](() => nowMs);
        const shared = makers['in Redis'](() => nowMs);
        const key = randomUUID();
        // Each ledger's own grants, in step with the other's.
        const open: [Grant, Grant][] = [];
        for (const { passMs, wanted, reports } of steps) {
          nowMs += passMs;
          const pairs = reports.map((given): [Report, Report] | undefined => {
            const [pair] = open.splice(given.which % Math.max(1, open.length), 1);
            return pair && [reportOf(given, pair[0], nowMs), reportOf(given, pair[1], nowMs)];
          });
          const done = pairs.filter((pair) => pair !== undefined);
          const exchangeOf = (side: 0 | 1): Exchange => ({ wanted, reports: done.map((pair) => pair[side]) });
          const one = await memory.exchange(key, exchangeOf(0));
          const other = await shared.exchange(key, exchangeOf(1));
          expect(comparable(other)).toEqual(comparable(one));
          for (const [index, grant] of one.grants.entries()) open.push([grant, other.grants[index] as Grant]);
        }
      }),
      { numRuns: Number(process.env['FUZZ_RUNS'] ?? 150) },
    );
  });

  function reportOf(given: GivenReport, grant: Grant, nowMs: number): Report {
    const ofGrant = given.stranger ? { ...grant, generation: 'a stranger' } : grant;
    const readings = given.readings.map(({ resetStep, ...rest }) => ({
      ...rest,
      resetId: Math.floor(nowMs / 60_000) * 60_000 + resetStep * 60_000,
      ...(resetStep === 0 && given.which % 2 === 0 ? { agoMs: given.retryAfterMs } : {}),
    }));
    const [first] = readings;
    switch (given.kind) {
      case 'adopted':
        return {
          kind: 'adopted',
          ...(given.stranger ? { plan: { perMinute: 1 + given.which, perDay: 500 } } : {}),
          calls: given.which % 5,
          underWay: given.which % 3,
          ...(given.ban ? { knownOf: { generation: ofGrant.generation, started: 2 * given.which } } : {}),
          minuteUsed: given.which,
          ...(first && given.jitter > 0.4
            ? { minuteTold: { remaining: given.which % 3, inMs: first.resetInMs - 2_000, id: first.resetId } }
            : {}),
          ...(given.jitter < 0.5 ? { awayForMs: given.retryAfterMs } : {}),
          dayUsed: given.which,
          ...(given.retryAfterMs % 2 === 0 ? { dayFreeInMs: given.retryAfterMs * 3_000 } : {}),
          ...(first ? { dayReset: { inMs: first.resetInMs, id: first.resetId } } : {}),
          pausedForMs: 0,
          refusedLately: given.stranger,
        };
      case 'answered':
        return { kind: 'answered', grant: ofGrant, readings };
      case 'refused':
        return { kind: 'refused', grant: ofGrant, readings, refusal: given };
      default:
        return { kind: given.kind as 'lost' | 'returned', grant: ofGrant };
    }
  }

  /** Each ledger names its generations by itself. */
  function comparable(standing: Standing) {
    return { ...standing, generation: '', grants: standing.grants.map((grant) => ({ ...grant, generation: '' })) };
  }
});
