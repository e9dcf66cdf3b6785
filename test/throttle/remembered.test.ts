import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Grant, Ledger, Reading, Report } from '../../src/throttle/ledger.ts';
import { twoReplicas } from './two-replicas.ts';

// What a replica tells of the time without Redis, or to a Redis that has lost it, over hours and days.

const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MIDNIGHT_MS = Date.UTC(2026, 10, 22);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A replica, and the state that Redis has of its one key. */
function startReplica(atMs: number) {
  vi.setSystemTime(atMs);
  let state: LedgerState | undefined;
  let generations = 0;
  let reply: { id: string | undefined; grants: readonly Grant[] } | undefined;
  let refuses = (_request: Exchange) => false;
  let loses = refuses;
  const replicas = twoReplicas();
  const shared = {
    exchange(_apiKey: string, request: Exchange, id?: string) {
      if (!replicas.redisWorks || refuses(request)) return Promise.reject(new RedisAway('away'));
      state ??= newLedgerState(`generation ${(generations += 1)}`, rules);
      const again = reply?.id === id ? reply : undefined;
      const standing = exchange(state, again ? { reports: [], wanted: 0 } : request, rules, Date.now());
      reply = again ?? { id, grants: standing.grants };
      if (loses(request)) return Promise.reject(new RedisAway('its answer was lost'));
      return Promise.resolve(structuredClone({ ...standing, grants: reply.grants }));
    },
    close: () => Promise.resolve(),
  };
  const clock = { now: Date.now, elapsed: () => Date.now() - atMs };
  const ledger: Ledger = createFailoverLedger({ shared, replicas, rules, clock, now: Date.now });
  const ask = async (wanted: number, ...reports: Report[]) => {
    const asked = ledger.exchange('key', { wanted, reports });
    // It may insist for a moment.
    await vi.advanceTimersByTimeAsync(1_000);
    return asked;
  };
  return {
    ask,
    works(redisWorks: boolean) {
      replicas.redisWorks = redisWorks;
    },
    empty() {
      state = undefined;
      reply = undefined;
    },
    /** What Redis writes to its disk; answers with how it begins anew from there. */
    save() {
      const saved = structuredClone(state);
      return () => {
        state = saved;
      };
    },
    refuse(which: typeof refuses) {
      refuses = which;
    },
    /** Carries out such exchanges, and the answers do not arrive. */
    lose(which: typeof loses) {
      loses = which;
    },
    /** What anybody else would be told. */
    others: () => (state ? exchange(state, { reports: [], wanted: 0 }, rules, Date.now()) : undefined),
  };
}

type Replica = ReturnType<typeof startReplica>;

function answered(grant: Grant | undefined, ...readings: Reading[]): Report {
  return { kind: 'answered', grant: grant as Grant, readings };
}

function ofTheDay(remaining: number): Reading {
  const resetInMs = MIDNIGHT_MS - Date.now();
  return { window: 'day', limit: 1_000, remaining, resetInMs, resetId: MIDNIGHT_MS, otherLimit: undefined };
}

const tells = ({ reports }: Exchange) => reports.some(({ kind }) => kind === 'adopted');

/** Calls that are answered without a word of the plan, as many as it gets. */
async function spend({ ask }: Replica, most = Infinity): Promise<number> {
  let spent = 0;
  for (let done: Report[] = []; ;) {
    const { grants } = await ask(Math.min(50, most - spent), ...done);
    if (grants.length === 0) return spent;
    spent += grants.length;
    done = grants.map((grant) => answered(grant));
  }
}

/** A whole day of timers that tick would take a test too long: all but the end is skipped. */
async function wait(ms: number): Promise<void> {
  const lastMs = Math.min(ms, 3_000);
  vi.setSystemTime(Date.now() + ms - lastMs);
  await vi.advanceTimersByTimeAsync(lastMs);
}

describe("what was spent of a day whose reset is over closes none of the next day's", () => {
  test('where Redis was away meanwhile', async () => {
    const replica = startReplica(MIDNIGHT_MS - 10 * MINUTE_MS);
    const [probe] = (await replica.ask(1)).grants;
    await replica.ask(0, answered(probe, ofTheDay(4)));
    replica.works(false);
    await wait(MINUTE_MS);
    const { grants } = await replica.ask(1);
    await replica.ask(0, ...grants.map((grant) => answered(grant)));
    await wait(14 * MINUTE_MS);
    replica.works(true);
    expect(await replica.ask(5)).toMatchObject({ grants: [{ probe: true }], day: { used: 1 } });
  });

  test('where Redis was emptied meanwhile', async () => {
    const replica = startReplica(MIDNIGHT_MS - 5 * MINUTE_MS);
    const [probe] = (await replica.ask(1)).grants;
    await replica.ask(0, answered(probe, ofTheDay(0)));
    await wait(6 * MINUTE_MS);
    replica.empty();
    const { grants } = await replica.ask(3);
    expect(grants).toHaveLength(1);
    expect((await replica.ask(3, answered(grants[0]))).grants).toHaveLength(3);
  });

  test('nor what was spent alone before it', async () => {
    const replica = startReplica(MIDNIGHT_MS - 30 * MINUTE_MS);
    const [probe] = (await replica.ask(1)).grants;
    await replica.ask(0, answered(probe, ofTheDay(900)));
    replica.works(false);
    let alone = 0;
    for (let minutes = 0; minutes < 20; minutes += 2) {
      await wait(2 * MINUTE_MS);
      alone += await spend(replica);
    }
    expect(alone).toBeGreaterThan(200);
    // Nor are these of the minute any more.
    await wait(15 * MINUTE_MS);
    replica.works(true);
    expect((await replica.ask(0)).day).toMatchObject({ mode: 'unknown', used: 0 });
  });
});

test('a day that petql counts itself is remembered for as long as a call counts, and no longer', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  expect(await spend(replica)).toBe(60);
  await wait(2 * MINUTE_MS);
  expect(await spend(replica)).toBe(60);
  replica.works(false);
  await replica.ask(0);
  await wait(20 * HOUR_MS);
  replica.empty();
  replica.works(true);
  expect((await replica.ask(0)).day.used).toBe(120);
  replica.works(false);
  await replica.ask(0);
  await wait(26 * HOUR_MS);
  replica.empty();
  replica.works(true);
  expect((await replica.ask(0)).day.used).toBe(0);
});

describe('what was spent alone is counted once, though the answer to whoever told it was lost', () => {
  /** Three calls alone, which Redis has counted by the end, as far as the replica cannot know. */
  async function lostAnswer(): Promise<Replica> {
    const replica = startReplica(MIDNIGHT_MS);
    await spend(replica, 1);
    replica.works(false);
    await replica.ask(0);
    await wait(2 * MINUTE_MS);
    expect(await spend(replica, 3)).toBe(3);
    // Nobody asks for it meanwhile.
    await wait(MINUTE_MS);
    replica.lose(tells);
    replica.works(true);
    await wait(3_000);
    expect(replica.others()?.day.used).toBe(4);
    return replica;
  }

  test('again and again', async () => {
    const replica = await lostAnswer();
    for (let times = 0; times < 4; times += 1) {
      replica.works(true);
      await wait(3_000);
    }
    replica.lose(() => false);
    replica.works(true);
    await wait(3_000);
    expect(replica.others()?.day.used).toBe(4);
    expect((await replica.ask(1)).day.used).toBe(5);
  });

  test('and what was spent after it is counted too', async () => {
    const replica = await lostAnswer();
    expect(await spend(replica, 2)).toBe(2);
    expect(replica.others()?.day.used).toBe(4);
    // Again it is not known here whether that was counted.
    replica.lose(({ reports }) => reports.some((report) => report.kind === 'adopted' && report.calls === 2));
    replica.works(true);
    await wait(3_000);
    expect(replica.others()?.day.used).toBe(6);
    expect(await spend(replica, 1)).toBe(1);
    replica.lose(() => false);
    replica.works(true);
    await wait(3_000);
    expect(replica.others()?.day.used).toBe(7);
  });

  test('and all of it by a Redis that was emptied since', async () => {
    const replica = await lostAnswer();
    expect(await spend(replica, 2)).toBe(2);
    replica.empty();
    replica.lose(() => false);
    replica.works(true);
    await wait(3_000);
    expect(replica.others()?.day.used).toBe(6);
  });

  test('but for a Redis that was away for too long since to know whether it has counted it', async () => {
    const replica = await lostAnswer();
    await wait(MINUTE_MS);
    replica.lose(() => false);
    replica.works(true);
    await wait(3_000);
    expect(replica.others()?.day.used).toBe(7);
  });
});

describe('a day that the service called used up', () => {
  // Counted from then on, it was closed for 25 hours more.
  test.each(['is', 'is away and'])('is over at its reset, though Redis %s emptied before', async (what) => {
    const replica = startReplica(MIDNIGHT_MS - 2 * HOUR_MS);
    const [probe] = (await replica.ask(1)).grants;
    await replica.ask(0, answered(probe, ofTheDay(0)));
    if (what === 'is away and') {
      replica.works(false);
      await replica.ask(0);
    }
    await wait(HOUR_MS);
    replica.empty();
    replica.works(true);
    expect(await replica.ask(1)).toMatchObject({ grants: [], closed: 'day', day: { resetId: MIDNIGHT_MS } });
    await wait(HOUR_MS + MINUTE_MS);
    expect((await replica.ask(1)).grants).toMatchObject([{ probe: true }]);
  });

  test('while Redis was away is over at its reset for all', async () => {
    const replica = startReplica(MIDNIGHT_MS - 10 * HOUR_MS);
    await spend(replica, 1);
    replica.works(false);
    await replica.ask(0);
    await wait(2 * MINUTE_MS);
    const [probe] = (await replica.ask(1)).grants;
    await replica.ask(0, answered(probe, ofTheDay(0)));
    replica.works(true);
    await wait(5_000);
    expect(replica.others()?.day).toMatchObject({ mode: 'told', resetId: MIDNIGHT_MS });
  });
});

test('what was spent of a day that petql counts is free in time, however often Redis is emptied', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  expect(await spend(replica)).toBe(60);
  await wait(10 * HOUR_MS);
  replica.empty();
  expect((await replica.ask(0)).day.used).toBe(60);
  await wait(10 * HOUR_MS);
  replica.empty();
  expect((await replica.ask(0)).day.used).toBe(60);
  await wait(4 * HOUR_MS);
  expect((await replica.ask(0)).day.used).toBe(60);
  await wait(2 * HOUR_MS);
  expect((await replica.ask(0)).day.used).toBe(0);
});

test('what was spent alone is told when Redis is back, even where nobody asks for it here any more', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  await spend(replica, 1);
  replica.works(false);
  let spent = 1;
  for (let minutes = 0; minutes < 10; minutes += 2) {
    await wait(2 * MINUTE_MS);
    spent += await spend(replica);
  }
  expect(spent).toBeGreaterThan(100);
  expect(replica.others()?.day.used).toBe(1);
  replica.works(true);
  await wait(5_000);
  expect(replica.others()?.day.used).toBe(spent);
  // And once.
  await wait(MINUTE_MS);
  expect((await replica.ask(0)).day.used).toBe(spent);
});

// The outage of a moment closed the key for another 25 hours.
test('calls that have left the day while Redis was away are not counted anew by a Redis that knows them', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  let spent = 0;
  for (let minutes = 0; minutes < 30; minutes += 2) {
    spent += await spend(replica);
    await wait(2 * MINUTE_MS);
  }
  expect(spent).toBeGreaterThan(800);
  await wait(23 * HOUR_MS);
  await replica.ask(0);
  replica.works(false);
  await replica.ask(0);
  await wait(2 * HOUR_MS);
  replica.works(true);
  expect(await replica.ask(1)).toMatchObject({ grants: [{}], day: { used: 1 } });
});

test('a Redis that is restored to an earlier state is told what it has lost', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  await spend(replica);
  const restore = replica.save();
  await wait(2 * MINUTE_MS);
  await spend(replica);
  replica.works(false);
  await replica.ask(0);
  restore();
  replica.works(true);
  expect((await replica.ask(0)).day.used).toBe(120);
});

test('a pause that was met alone is told too', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  await spend(replica, 1);
  replica.works(false);
  await replica.ask(0);
  await wait(2 * MINUTE_MS);
  const [grant] = (await replica.ask(1)).grants;
  const refusal = { retryAfterMs: 600_000, ban: false, jitter: 0 };
  await replica.ask(0, { kind: 'refused', grant: grant as Grant, readings: [], refusal });
  replica.works(true);
  await wait(5_000);
  expect(replica.others()?.pausedForMs).toBeGreaterThan(590_000);
});

describe('a Redis that is emptied grants nothing to whoever knows', () => {
  test('that the key is paused', async () => {
    const replica = startReplica(MIDNIGHT_MS);
    const [grant] = (await replica.ask(1)).grants;
    const refusal = { retryAfterMs: 600_000, ban: false, jitter: 0 };
    await replica.ask(0, { kind: 'refused', grant: grant as Grant, readings: [], refusal });
    replica.empty();
    expect(await replica.ask(5)).toMatchObject({ grants: [], closed: 'paused' });
    await wait(10 * MINUTE_MS);
    expect((await replica.ask(5)).grants).toMatchObject([{ probe: true }]);
  });

  test('that the day is used up', async () => {
    const replica = startReplica(MIDNIGHT_MS);
    for (let minutes = 0; minutes < 40; minutes += 2) {
      await spend(replica);
      await wait(2 * MINUTE_MS);
    }
    expect((await replica.ask(0)).day.used).toBe(990);
    replica.empty();
    expect(await replica.ask(5)).toMatchObject({ grants: [], closed: 'day', day: { used: 990 } });
  });

  test('but what there is, once', async () => {
    const replica = startReplica(MIDNIGHT_MS);
    await spend(replica);
    await wait(2 * MINUTE_MS);
    replica.empty();
    const { grants, day } = await replica.ask(5);
    expect(grants).toMatchObject([{ probe: true }]);
    expect(day.used).toBe(61);
    const next = await replica.ask(5, answered(grants[0]));
    expect(next).toMatchObject({ grants: [{}, {}, {}, {}, {}], day: { used: 66 } });
  });
});

test('what Redis has lost is told again where it failed while it was told', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  await spend(replica);
  await wait(2 * MINUTE_MS);
  await spend(replica);
  replica.empty();
  replica.refuse(tells);
  // Of 990 that are not kept back, half of what is left.
  expect((await replica.ask(0)).day.remaining).toBe(435);
  replica.refuse(() => false);
  replica.works(true);
  await wait(2_000);
  expect((await replica.ask(0)).day.used).toBe(120);
});

test('a replica that goes on alone counts of a day what is known, though a pause has made it unknown', async () => {
  const replica = startReplica(MIDNIGHT_MS);
  const memory = { calls: 0, underWay: 0, minuteUsed: 0, pausedForMs: 5_000, refusedLately: true };
  await replica.ask(0, { kind: 'adopted', ...memory, dayUsed: 980 });
  replica.works(false);
  await wait(10_000);
  expect((await replica.ask(0)).day.remaining).toBeLessThanOrEqual(5);
});
