import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Wait } from '../../src/quota/account/wait.ts';
import { admitAll, lineOf } from '../../src/line/admission.ts';
import type { Admission, Before, Claim, Ending, Verdict, View, WantedCall } from '../../src/line/admission.ts';
import { OPEN } from '../../src/closed/closed-api.ts';
import type { Visitor } from '../../src/quota/visitors.ts';
import { chooseSeed } from '../support/seed.ts';

const NOW_MS = 1_000_000;
const MINUTE_MS = 60_000;
/** No call of a line waits as long for a minute. */
const NEXT_DAY_MS = 60 * MINUTE_MS;
const NO_WAIT: Wait = { waitMs: 0, window: undefined };
const VISITORS = [undefined, 'one', 'two', 'three'] as const;

/** What there is for the calls of one key. */
interface Key {
  /** Calls that the minute allows now, beside the permits; and those that it allows more at each reset. */
  readonly left: number;
  readonly limit: number;
  readonly resetMs: number;
  /** Calls that the day allows until the next one. */
  readonly leftOfDay: number;
  readonly pausedMs: number;
  /** Calls that background work leaves to others. */
  readonly reserve: number;
  /** Of the refresh budget. */
  readonly tokens: number;
  readonly permits: number;
  readonly freeCalls: number;
  readonly promisedReturns: number;
  readonly isOld: boolean;
  readonly isStopping: boolean;
  readonly isAfter429: boolean;
  /** By visitor. */
  readonly used: Readonly<Record<string, number>>;
}

const keys = fc.record<Key>({
  left: fc.integer({ min: 0, max: 8 }),
  limit: fc.integer({ min: 1, max: 8 }),
  resetMs: fc.constantFrom(500, 20_000, 50_000),
  leftOfDay: fc.constantFrom(0, 3, 9, 100, 100, 100),
  pausedMs: fc.constantFrom(0, 0, 0, 15_000, 90_000),
  reserve: fc.integer({ min: 0, max: 6 }),
  tokens: fc.integer({ min: 0, max: 10 }),
  permits: fc.integer({ min: 0, max: 3 }),
  freeCalls: fc.integer({ min: 0, max: 10 }),
  promisedReturns: fc.constantFrom(0, 0, 3, 20),
  isOld: fc.boolean(),
  isStopping: fc.constantFrom(false, false, false, false, false, true),
  isAfter429: fc.boolean(),
  used: fc.record({ one: fc.integer({ min: 0, max: 5 }), two: fc.integer({ min: 0, max: 2 }), three: fc.constant(0) }),
});
const request = fc.record<Claim['request']>({
  visitor: fc.constantFrom(...VISITORS),
  deadlineMs: fc
    .constantFrom(-2_000, -1_000, -500, -100, -50, 400, 10_000, 20_000, 70_000, 200_000)
    .map((ms) => NOW_MS + ms),
  isBackground: fc.constantFrom(false, false, true),
});
const claim = fc.record<Claim>({
  request,
  isRefresh: fc.constantFrom(false, false, true),
});
const write = claim.map((one): WantedCall => ({ claims: [{ ...one, isRefresh: false }] }));
const read = fc.array(claim, { minLength: 1, maxLength: 3 }).map((claims): WantedCall => ({ claims }));
const newRefresh = claim.map((one): WantedCall => ({ claims: [{ ...one, isRefresh: true }], isNewRefresh: true }));
const writes = fc.array(write, { maxLength: 3 });
const reads = fc.array(fc.oneof(read, read, newRefresh), { maxLength: 10 });
const lines = fc.tuple(writes, reads).map((calls) => lineOf(...calls));

function viewOf(key: Key): View {
  const { left, limit, resetMs, leftOfDay, pausedMs, reserve, tokens, used } = key;
  const usedBy = (visitor: Visitor) => (visitor === undefined ? 0 : (used[visitor] ?? 0));
  const countedWaitOf = (ahead: number): Wait => {
    if (ahead >= leftOfDay) return { waitMs: NEXT_DAY_MS, window: 'DAY' };
    if (ahead < left) return NO_WAIT;
    return { waitMs: resetMs + MINUTE_MS * Math.floor((ahead - left) / limit), window: 'MINUTE' };
  };
  return {
    ...key,
    nowMs: NOW_MS,
    turn: OPEN,
    waitOf(ahead) {
      const counted = countedWaitOf(ahead);
      return counted.waitMs < pausedMs ? { waitMs: pausedMs, window: 'MINUTE' } : counted;
    },
    reserveWaitOf: (ahead) => countedWaitOf(ahead + reserve),
    hasPlace: () => true,
    hasShare(visitor, own, ahead) {
      const mine = usedBy(visitor) + own;
      return visitor === undefined || mine === 0 || mine < Math.min(left, leftOfDay) - ahead;
    },
    shareWaitOf: (visitor, own, ahead) => countedWaitOf(ahead + usedBy(visitor) + own),
    hasRefreshToken: (visitor, own, calls) => tokens - calls >= Math.max(1, usedBy(visitor) + own),
  };
}

/** What a line comes to. */
interface Decided {
  readonly admissions: ReadonlyMap<WantedCall, Admission>;
  readonly after: Before;
}

/**
 * The same by src/quota/README.md alone, without any place in the line: it ends the first claim that has to end, and begins
 * again without it, until none has to. For each wait it looks at one moment after the other.
 */
function decideSlowly(line: readonly WantedCall[], key: Key): Decided {
  const endings = new Map(line.map((call) => [call, new Map<Claim, Ending>()] as const));
  for (;;) {
    const decided = decideOrEnd(line, key, endings);
    if (decided) return decided;
  }
}

/** Walks along the line once. Returns undefined where it has ended a claim. */
function decideOrEnd(
  line: readonly WantedCall[],
  key: Key,
  endings: ReadonlyMap<WantedCall, Map<Claim, Ending>>,
): Decided | undefined {
  const admissions = new Map<WantedCall, Admission>();
  const paid: Claim[] = [];
  let refused = 0;

  for (const call of line) {
    const ended = endings.get(call) as Map<Claim, Ending>;
    const staying = call.claims.filter((each) => !ended.has(each));
    if (staying.length === 0) {
      // A call is refused if one of its claims is, and the first of these says why.
      const all = [...ended.values()];
      const verdict = (all.find(({ kind }) => kind === 'refuse') ?? all[0]) as Ending;
      admissions.set(call, { verdict, payer: undefined, isStartable: false, ended });
      if (verdict.kind === 'refuse' && verdict.reason === 'quota') refused += 1;
      continue;
    }

    const met = meet(call, staying, { paid, refused, key });
    if ('ends' in met) {
      ended.set(...met.ends);
      return undefined;
    }
    admissions.set(call, { ...met, isStartable: met.payer !== undefined, ended });
    if (met.payer) paid.push(met.payer);
  }

  const named = paid.flatMap((each) => each.request.visitor ?? []);
  const paidBy = new Map(named.map((visitor) => [visitor, named.filter((each) => each === visitor).length]));
  return { admissions, after: { calls: paid.length, startable: paid.length, refused, paidBy } };
}

/** What stands in front of a call: who pays for the calls that go or wait, and how many calls the plan refuses. */
interface Front {
  readonly paid: readonly Claim[];
  readonly refused: number;
  readonly key: Key;
}

/** Returns what a call gets behind those in front of it, or a claim of it that has to end first. */
function meet(
  call: WantedCall,
  staying: readonly Claim[],
  front: Front,
): { readonly verdict: Verdict; readonly payer: Claim | undefined } | { readonly ends: [Claim, Ending] } {
  const { paid, key } = front;
  const spot = spotOf(call, front);
  for (const each of staying) {
    const ending = endByQuota(each, spot, front);
    if (ending) return { ends: [each, ending] };
  }
  if (spot.isHeldBack) return { verdict: { kind: 'wait', wait: spot.wait }, payer: undefined };

  // A visitor pays as long as it has used less than it leaves, and for a first call in any case.
  const first = staying[0] as Claim;
  const usedBy = (visitor: string) =>
    (key.used[visitor] ?? 0) + paid.filter((each) => each.request.visitor === visitor).length;
  const isLeft = allowedBy(key, 0) - paid.length;
  const payer = staying.find(
    ({ request: { visitor } }) => visitor === undefined || usedBy(visitor) === 0 || usedBy(visitor) < isLeft,
  );
  if (!payer) {
    if (key.isOld && spot.isInLine) return { verdict: { kind: 'look' }, payer };
    if (first.isRefresh) return { ends: [first, { kind: 'serve-stale', reason: 'QUOTA_EXHAUSTED' }] };
    const untilShare = waitForMore(key, paid.length + usedBy(first.request.visitor as string));
    return { ends: [first, { kind: 'refuse', reason: 'visitor-share', wait: untilShare }] };
  }

  // A new refresh needs a token. Each call in front takes one, and a visitor leaves as many as it has used.
  const tokens = key.tokens - paid.length;
  const { visitor } = payer.request;
  const hasToken = tokens >= 1 && (visitor === undefined || usedBy(visitor) <= tokens);
  if (!spot.isInLine && !hasToken) return { ends: [first, { kind: 'serve-stale', reason: 'SAVING_QUOTA' }] };

  return { verdict: spot.mayGo ? { kind: 'go' } : { kind: 'wait', wait: spot.wait }, payer };
}

type Spot = ReturnType<typeof spotOf>;

/** Returns what keeps a call waiting that is next behind those in front. */
function spotOf({ claims, isNewRefresh }: WantedCall, { paid, key }: Front) {
  // The first calls of the line have the permits. All others wait for the plan and for the end of a pause.
  const isPermitLeft = paid.length < key.permits;
  const byPlan = isPermitLeft ? NO_WAIT : laterOf(waitForMore(key, paid.length), pauseOf(key));
  // Background work takes nothing, and no permit, before the reserve is left besides.
  const isBackground = claims.every((each) => each.request.isBackground);
  const byReserve = isBackground ? waitForMore(key, paid.length + key.reserve) : NO_WAIT;
  const isHeldBack = byReserve.waitMs > byPlan.waitMs;

  const wait = isHeldBack ? byReserve : byPlan;
  const isSlotLeft = isPermitLeft || paid.length < key.freeCalls;
  return {
    wait,
    isHeldBack,
    isSlotLeft,
    hasPermit: isPermitLeft && !isHeldBack,
    mayGo: isSlotLeft && wait.waitMs === 0,
    isInLine: isNewRefresh !== true,
  };
}

/** Returns why a claim does not wait for the quota. */
function endByQuota({ isRefresh, request: { deadlineMs } }: Claim, spot: Spot, front: Front): Ending | undefined {
  const { key } = front;
  const { wait, isHeldBack, isSlotLeft, hasPermit, mayGo, isInLine } = spot;
  if (key.isStopping) return { kind: 'refuse', reason: 'stopping', wait };
  if (hasPermit) return undefined;

  if (isRefresh) {
    // It waits for nothing; but if it is in the line already, it waits for a look at the account.
    const isLookedAt = key.isOld && isSlotLeft && isInLine;
    if (mayGo || isLookedAt) return undefined;
    if (key.isAfter429) return { kind: 'serve-stale', reason: 'PAUSED' };
    return { kind: 'serve-stale', reason: wait.waitMs === 0 ? 'CALLS_IN_FLIGHT' : 'QUOTA_EXHAUSTED' };
  }

  // The deadline is over by a moment, or by a second where the claim waits for petql alone.
  const isOver = deadlineMs + (mayGo ? 1_000 : 100) <= NOW_MS;
  // An old view refuses nobody for what is to come.
  const isInVain = wait.waitMs > 0 && deadlineMs < NOW_MS + wait.waitMs && !key.isOld;
  if (!isOver && !isInVain) return undefined;
  if (isHeldBack) return { kind: 'refuse', reason: 'background', wait };
  if (wait.waitMs === 0) return { kind: 'refuse', reason: mayGo ? 'late' : 'in-flight', wait };
  return { kind: 'refuse', reason: 'quota', wait: returnAfter(wait, front) };
}

/** Returns when a refused call has room, behind all that were refused before: ten minutes later at most. */
function returnAfter(wait: Wait, { paid, refused, key }: Front): Wait {
  const room = laterOf(waitForMore(key, paid.length + key.promisedReturns + refused), pauseOf(key));
  return room.waitMs - wait.waitMs > 10 * MINUTE_MS ? { ...wait, waitMs: wait.waitMs + 10 * MINUTE_MS } : room;
}

function pauseOf({ pausedMs }: Key): Wait {
  return { waitMs: pausedMs, window: 'MINUTE' };
}

function laterOf(one: Wait, other: Wait): Wait {
  return other.waitMs > one.waitMs ? other : one;
}

/** Returns the wait until the key has allowed more than so many calls. */
function waitForMore(key: Key, calls: number): Wait {
  if (allowedBy(key, 0) > calls) return NO_WAIT;
  for (let waitMs = key.resetMs; waitMs < NEXT_DAY_MS; waitMs += MINUTE_MS) {
    if (allowedBy(key, waitMs) > calls) return { waitMs, window: 'MINUTE' };
  }
  return { waitMs: NEXT_DAY_MS, window: 'DAY' };
}

/** Returns how many calls the key has allowed by then: its permits, and what both windows allow. */
function allowedBy({ permits, left, limit, resetMs, leftOfDay }: Key, afterMs: number): number {
  let ofMinutes = left;
  for (let atMs = resetMs; atMs <= afterMs; atMs += MINUTE_MS) ofMinutes += limit;
  return permits + Math.min(ofMinutes, leftOfDay);
}

/** Returns the order of the README, by a rank for each call. */
function orderSlowly(ofWrites: readonly WantedCall[], ofReads: readonly WantedCall[]): readonly WantedCall[] {
  const rankOf = (call: WantedCall) => {
    const isForOthers = call.claims.some((each) => !each.request.isBackground);
    return (isForOthers ? 0 : 2) + (ofReads.includes(call) ? 1 : 0);
  };
  return [...ofReads, ...ofWrites].toSorted((one, other) => rankOf(one) - rankOf(other));
}

/** A line for each call: its verdict, who pays, and who has ended for which reason; and what stands before the next one. */
function textOf(line: readonly WantedCall[], { admissions, after }: Decided): readonly string[] {
  const texts = line.map((call) => {
    const { verdict, payer, ended } = admissions.get(call) as Admission;
    const endings = [...ended].map(([who, ending]) => [call.claims.indexOf(who), ending]);
    return JSON.stringify({ ...verdict, payer: payer && call.claims.indexOf(payer), endings });
  });
  const paidBy = VISITORS.map((visitor) => after.paidBy.get(visitor) ?? 0);
  return [...texts, JSON.stringify({ ...after, paidBy })];
}

describe('the line of calls', () => {
  test('has the order, the verdicts and the payers that a slow reading of the rules finds', () => {
    fc.assert(
      fc.property(writes, reads, keys, (ofWrites, ofReads, key) => {
        const line = orderSlowly(ofWrites, ofReads);
        expect(lineOf(ofWrites, ofReads).map((call) => line.indexOf(call))).toEqual([...line.keys()]);
        expect(textOf(line, admitAll(line, viewOf(key)))).toEqual(textOf(line, decideSlowly(line, key)));
      }),
      { numRuns: 2_500, seed: chooseSeed() },
    );
  });

  test('lets no more calls go than there are permits, quota and freeCalls', () => {
    fc.assert(
      fc.property(lines, keys, (line, key) => {
        const going = verdictsOf(line, key).filter(({ kind }) => kind === 'go').length;
        const { permits, left, leftOfDay, freeCalls } = key;
        expect(going).toBeLessThanOrEqual(Math.max(permits, Math.min(permits + left, permits + leftOfDay, freeCalls)));
      }),
      { numRuns: 1_000, seed: chooseSeed() },
    );
  });

  test('makes nobody wait longer when another call leaves', () => {
    const waitOf = (key: Key, line: readonly WantedCall[]) =>
      new Map([...admitAll(line, viewOf(key)).admissions].map(([call, { verdict }]) => [call, rank(verdict.kind)]));
    fc.assert(
      fc.property(lines, keys, fc.nat(), (line, given, index) => {
        // A share depends on the calls of all: one that gets a place may cost another visitor its share.
        const key = { ...given, used: {} };
        const alone = line.map(({ claims, ...call }) => ({
          ...call,
          claims: claims.map((each) => ({ ...each, request: { ...each.request, visitor: undefined } })),
        }));
        const before = waitOf(key, alone);
        const after = waitOf(
          key,
          alone.filter((_, place) => place !== index % line.length),
        );
        const losers = [...after].filter(([call, verdict]) => verdict > (before.get(call) as number));
        expect(losers).toEqual([]);
      }),
      { numRuns: 1_000, seed: chooseSeed() },
    );
  });

  test('tells as many refused calls to return in each minute as it has room for', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 8 }), (count, limit) => {
        const hurried = {
          request: { visitor: undefined, deadlineMs: NOW_MS + 400, isBackground: false },
          isRefresh: false,
        };
        const line = Array.from({ length: count }, () => ({ claims: [{ ...hurried }] }));
        const verdicts = verdictsOf(line, { ...NORMAL, left: 0, limit });
        const told = verdicts.map((verdict) => (verdict.kind === 'refuse' ? verdict.wait.waitMs : 0));
        const inFirstMinutes = told.filter((ms) => ms < 620_000);
        for (const at of new Set(inFirstMinutes))
          expect(told.filter((ms) => ms === at).length).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 200, seed: chooseSeed() },
    );
  });

  test.each([1, 2, 3, 5])('gives %i greedy visitors equal shares, and leaves the next one as much', (greedy) => {
    const left = 60;
    const calls = Array.from({ length: 60 * greedy }, (_, index) => ({
      claims: [
        {
          request: { visitor: `greedy ${index % greedy}`, deadlineMs: NOW_MS + 400, isBackground: false },
          isRefresh: false,
        },
      ],
    }));
    const { after } = admitAll(calls, viewOf({ ...NORMAL, left, limit: left, freeCalls: 600 }));
    for (const share of after.paidBy.values()) expect(Math.abs(share - left / (greedy + 1))).toBeLessThanOrEqual(1);
    expect(left - after.calls).toBeGreaterThanOrEqual(left / (greedy + 1) - greedy);
  });
});

const NORMAL: Omit<Key, 'left' | 'limit'> = {
  resetMs: 20_000,
  leftOfDay: 1_000,
  pausedMs: 0,
  reserve: 0,
  tokens: 100,
  permits: 0,
  freeCalls: 50,
  promisedReturns: 0,
  isOld: false,
  isStopping: false,
  isAfter429: false,
  used: {},
};

function verdictsOf(line: readonly WantedCall[], key: Key): Verdict[] {
  return [...admitAll(line, viewOf(key)).admissions.values()].map(({ verdict }) => verdict);
}

function rank(kind: string): number {
  return ['go', 'wait', 'look', 'serve-stale', 'refuse'].indexOf(kind);
}
