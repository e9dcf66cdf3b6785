import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admitAll } from '../../src/throttle/admission.ts';
import type { Claim, View, WantedCall } from '../../src/throttle/admission.ts';
import { chooseSeed } from '../support/seed.ts';

const NOW_MS = 1_000_000;
const MINUTE_MS = 60_000;
const VISITORS = [undefined, 'one', 'two', 'three'] as const;

/** A key with one window of a minute. */
interface Key {
  /** Calls that the plan allows now, beside the permits; and those that it allows in each later minute. */
  readonly left: number;
  readonly limit: number;
  readonly resetMs: number;
  readonly permits: number;
  readonly slots: number;
  readonly promised: number;
  readonly isOld: boolean;
  readonly isStopping: boolean;
  readonly isAfter429: boolean;
  readonly used: Readonly<Record<string, number>>;
}

const keys = fc.record<Key>({
  left: fc.integer({ min: 0, max: 8 }),
  limit: fc.integer({ min: 1, max: 8 }),
  resetMs: fc.constantFrom(500, 20_000, 50_000),
  permits: fc.integer({ min: 0, max: 3 }),
  slots: fc.integer({ min: 0, max: 10 }),
  promised: fc.constantFrom(0, 0, 3, 20),
  isOld: fc.boolean(),
  isStopping: fc.constantFrom(false, false, false, true),
  isAfter429: fc.boolean(),
  used: fc.record({ one: fc.integer({ min: 0, max: 5 }), two: fc.integer({ min: 0, max: 2 }), three: fc.constant(0) }),
});
const claim = fc.record<Claim>({
  visitor: fc.constantFrom(...VISITORS),
  deadlineMs: fc.constantFrom(-2_000, -500, -50, 400, 10_000, 70_000, 200_000).map((ms) => NOW_MS + ms),
  isRefresh: fc.constantFrom(false, false, true),
  isBackground: fc.constant(false),
});
const lines = fc.array(
  fc.array(claim, { minLength: 1, maxLength: 3 }).map((claims): WantedCall => ({ claims })),
  {
    maxLength: 12,
  },
);

function viewOf(key: Key): View {
  const { left, limit, resetMs, used } = key;
  return {
    ...key,
    nowMs: NOW_MS,
    waitOf(ahead) {
      const waitMs = ahead < left ? 0 : resetMs + MINUTE_MS * Math.floor((ahead - left) / limit);
      return { waitMs, window: waitMs > 0 ? 'MINUTE' : undefined };
    },
    hasShare: (visitor, own, ahead) => mayPay(visitor === undefined ? 0 : (used[visitor] ?? 0) + own, left - ahead),
    reserveWaitOf: () => ({ waitMs: 0, window: undefined }),
    shareWaitOf: () => ({ waitMs: MINUTE_MS, window: 'MINUTE' }),
    hasRefreshToken: () => true,
  };
}

function mayPay(used: number, remaining: number): boolean {
  return used === 0 || used < remaining;
}

/**
 * The same by a queue that counts nothing: it ends the first claim that must not wait, and begins again with the queue that is
 * left, until nobody has to go.
 */
function endOneByOne(line: readonly WantedCall[], key: Key): Map<Claim, string> {
  const view = viewOf(key);
  const ended = new Map<Claim, string>();
  for (;;) {
    const next = firstToEnd();
    if (!next) return ended;
    ended.set(...next);
  }

  function firstToEnd(): [Claim, string] | undefined {
    const places: Claim[] = [];
    for (const { claims } of line) {
      const waiting = claims.filter((each) => !ended.has(each));
      for (const each of waiting) {
        const why = whyNot(each, places.length);
        if (why) return [each, why];
      }
      const payer = waiting.find(({ visitor }) => {
        const own = places.filter((paid) => paid.visitor === visitor).length;
        return view.hasShare(visitor, own, places.length - key.permits);
      });
      if (payer) places.push(payer);
      else if (waiting[0] && !key.isOld) return [waiting[0], waiting[0].isRefresh ? 'stale' : 'visitor-share'];
    }
    return undefined;
  }

  function whyNot({ deadlineMs, isRefresh }: Claim, place: number): string | undefined {
    if (key.isStopping) return 'stopping';
    if (place < key.permits) return undefined;
    const { waitMs } = view.waitOf(place - key.permits);
    const mayGo = waitMs === 0 && place < key.slots;
    if (isRefresh) return mayGo || (key.isOld && place < key.slots) ? undefined : 'stale';
    if (NOW_MS >= deadlineMs + (mayGo ? 1_000 : 100)) return waitMs > 0 ? 'plan' : 'late';
    return !key.isOld && waitMs > 0 && NOW_MS + waitMs > deadlineMs ? 'plan' : undefined;
  }
}

function decide(line: readonly WantedCall[], key: Key) {
  const { admissions, after } = admitAll(line, viewOf(key));
  const all = [...admissions.values()];
  const ended = new Map(
    all.flatMap((each) =>
      [...each.ended].map(([who, end]) => [who, end.kind === 'refuse' ? end.reason : 'stale'] as const),
    ),
  );
  return { all, after, ended };
}

describe('the line of calls', () => {
  test('ends the same claims as a queue that counts nothing', () => {
    fc.assert(
      fc.property(lines, keys, (line, key) => {
        expect(decide(line, key).ended).toEqual(endOneByOne(line, key));
      }),
      { numRuns: 3_000, seed: chooseSeed() },
    );
  });

  test('lets no more calls go than there are permits, quota and slots', () => {
    fc.assert(
      fc.property(lines, keys, (line, key) => {
        const going = decide(line, key).all.filter(({ verdict }) => verdict.kind === 'go').length;
        const { permits, left, slots } = key;
        expect(going).toBeLessThanOrEqual(Math.max(permits, Math.min(permits + left, slots)));
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
        const alone = line.map(({ claims }) => ({ claims: claims.map((each) => ({ ...each, visitor: undefined })) }));
        const before = waitOf(key, alone);
        const after = waitOf(
          key,
          alone.filter((_, place) => place !== index % line.length),
        );
        for (const [call, verdict] of after) expect(verdict).toBeLessThanOrEqual(before.get(call) as number);
      }),
      { numRuns: 1_000, seed: chooseSeed() },
    );
  });

  test('tells as many refused calls to return in each minute as it has room for', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 8 }), (count, limit) => {
        const hurried = { visitor: undefined, deadlineMs: NOW_MS + 400, isRefresh: false, isBackground: false };
        const key: Key = { left: 0, limit, resetMs: 20_000, permits: 0, slots: 50, promised: 0, ...NORMAL };
        const { all } = decide(
          Array.from({ length: count }, () => ({ claims: [{ ...hurried }] })),
          key,
        );
        const told = all.map(({ verdict }) => (verdict.kind === 'refuse' ? verdict.wait.waitMs : 0));
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
        { visitor: `greedy ${index % greedy}`, deadlineMs: NOW_MS + 400, isRefresh: false, isBackground: false },
      ],
    }));
    const key: Key = { left, limit: left, resetMs: 20_000, permits: 0, slots: 600, promised: 0, ...NORMAL };
    const { after } = decide(calls, key);
    for (const share of after.paidBy.values()) expect(Math.abs(share - left / (greedy + 1))).toBeLessThanOrEqual(1);
    expect(left - after.calls).toBeGreaterThanOrEqual(left / (greedy + 1) - greedy);
  });
});

const NORMAL = { isOld: false, isStopping: false, isAfter429: false, used: {} };

function rank(kind: string): number {
  return ['go', 'wait', 'look', 'serve-stale', 'refuse'].indexOf(kind);
}
