import { beforeEach, expect, test } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Exchange, Grant, Ledger, Report } from '../../src/throttle/ledger.ts';
import type { Outage } from '../../src/throttle/replicas.ts';

// Another Redis may take the place of the one that was asked, and hold an older state of the same generation.

const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };
const START_MS = Date.UTC(2026, 10, 21, 12);

let elapsedMs: number;
let state: LedgerState;
/** What Redis is asked, in order. */
let asked: Exchange[];
/** What happens before it carries out the next exchange. */
let beforeNext: () => void;
let outage: Outage | undefined;
let ledger: Ledger;

beforeEach(() => {
  elapsedMs = 0;
  state = newLedgerState('first', rules);
  asked = [];
  beforeNext = () => {};
  outage = undefined;
  ledger = startLedger();
});

function startLedger(): Ledger {
  const replicas = {
    count: 1,
    most: 1,
    redisWorks: true,
    get outage() {
      return outage;
    },
    redisFailed() {},
    close() {},
  };
  const shared = {
    async exchange(_key: string, request: Exchange) {
      beforeNext();
      beforeNext = () => {};
      asked.push(request);
      return structuredClone(exchange(state, request, rules, START_MS + elapsedMs));
    },
    close: async () => {},
  };
  const now = () => START_MS + elapsedMs;
  return createFailoverLedger({ shared, replicas, rules, clock: { now, elapsed: () => elapsedMs }, now });
}

const ask = (wanted: number, ...reports: Report[]) => ledger.exchange('a key', { wanted, reports });

function failOverTo(stale: LedgerState): void {
  state = structuredClone(stale);
  const atMs = elapsedMs;
  outage = { agoMs: () => elapsedMs - atMs };
}

function answered(grant: Grant, remaining: number): Report {
  const reset = { resetInMs: 50_000, resetId: START_MS + 50_000, otherLimit: undefined };
  return { kind: 'answered', grant, readings: [{ window: 'minute', limit: 60, remaining, ...reset }] };
}

async function open(): Promise<void> {
  const [grant] = (await ask(1)).grants as [Grant];
  await ask(0, answered(grant, 59));
  elapsedMs += 5_000;
}

async function refused(retryAfterMs: number): Promise<void> {
  const [grant] = (await ask(1)).grants as [Grant];
  await ask(0, { kind: 'refused', grant, readings: [], refusal: { retryAfterMs, ban: false, jitter: 0 } });
}

test('what was started since, and is still under way, is told to a state that has not heard of it', async () => {
  await open();
  const [known] = (await ask(1)).grants as [Grant];
  const stale = structuredClone(state);
  const lost = (await ask(10)).grants;
  await ask(0, ...lost.slice(0, 4).map((grant) => answered(grant, 54)));
  state = stale;
  const { grants } = await ask(20);
  expect(grants).toMatchObject([{ probe: true }]);
  // Of the ten that it lacks, six are under way, and one that it knows may be one of them.
  expect(asked.at(-1)?.reports.at(-1)).toMatchObject({ kind: 'adopted', calls: 0, underWay: 7 });
  expect(grants[0]?.start).toBeGreaterThan(known.start + 6);
});

test('a window that was known to be used up stays closed', async () => {
  await open();
  const stale = structuredClone(state);
  expect((await ask(59)).grants).toHaveLength(59);
  state = stale;
  expect(await ask(10)).toMatchObject({ grants: [], closed: 'minute' });
});

test('what it grants in a pause that it has not heard of is given back', async () => {
  await open();
  const stale = structuredClone(state);
  await refused(600_000);
  // Nobody has noticed anything, as behind a proxy that holds the connections.
  stale.started = state.started;
  state = stale;
  elapsedMs += 60_000;
  expect(await ask(5)).toMatchObject({ grants: [], closed: 'paused', pausedForMs: 541_000 });
});

test('what it has granted before it is known that another has taken the place of Redis is given back', async () => {
  await open();
  const stale = structuredClone(state);
  beforeNext = () => failOverTo(stale);
  expect(await ask(10)).toMatchObject({ grants: [{ probe: true }], closed: 'probing' });
  expect(asked.at(-1)?.reports.filter(({ kind }) => kind === 'returned')).toHaveLength(10);
});

test('what a replica that was alone for ten minutes knows is told after an outage, too', async () => {
  await open();
  await ask(5);
  failOverTo(state);
  elapsedMs += 1;
  expect(await ask(0)).toMatchObject({ minute: { mode: 'unknown' } });
  // Once.
  await ask(0);
  expect(asked.at(-1)?.reports).toEqual([]);
});

test('where the new one fails at first, it is told all the same', async () => {
  await open();
  const stale = structuredClone(state);
  await refused(600_000);
  failOverTo(stale);
  beforeNext = () => {
    throw new RedisAway('there is no connection');
  };
  expect(await ask(5)).toMatchObject({ grants: [], closed: 'paused', pausedForMs: 601_000 });
});
