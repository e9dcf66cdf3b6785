import { expect, test } from 'vitest';
import { NOTHING_BEFORE, admit } from '../../src/throttle/admission.ts';
import type { Before, Claim, View } from '../../src/throttle/admission.ts';

const NOW_MS = 1_000_000;
const NONE = { waitMs: 0, window: undefined } as const;

/** A key whose plan has room for everything. */
const VIEW: View = {
  nowMs: NOW_MS,
  isStopping: false,
  isOld: false,
  isAfter429: false,
  permits: 0,
  slots: 50,
  promised: 0,
  waitOf: () => NONE,
  reserveWaitOf: () => NONE,
  hasShare: () => true,
  shareWaitOf: () => ({ waitMs: 40_000, window: 'MINUTE' }),
  hasRefreshToken: () => true,
};

/** The minute is exhausted, and 60 calls are free again in 30 s, 60 more a minute later. */
const MINUTE_EXHAUSTED: Partial<View> = {
  waitOf: (ahead) => ({ waitMs: 30_000 + 60_000 * Math.floor(ahead / 60), window: 'MINUTE' }),
};
const DAY_EXHAUSTED: Partial<View> = { waitOf: () => ({ waitMs: 3_600_000, window: 'DAY' }) };
const PAUSED: Partial<View> = { isAfter429: true, waitOf: () => ({ waitMs: 20_000, window: 'MINUTE' }) };

const waiting = (waitMs: number): Claim => ({
  visitor: undefined,
  deadlineMs: NOW_MS + waitMs,
  isRefresh: false,
  isBackground: false,
});
const READ = waiting(10_000);
const PATIENT = waiting(90_000);
const BACKGROUND: Claim = { ...READ, isBackground: true };
const RESERVED: Partial<View> = { reserveWaitOf: () => ({ waitMs: 5_000, window: 'MINUTE' }) };
const REFRESH: Claim = { ...READ, isRefresh: true };
const GREEDY: Claim = { ...READ, visitor: 'greedy' };
const HONEST: Claim = { ...READ, visitor: 'honest' };

interface Situation {
  readonly what: string;
  /** Who waits for the call. */
  readonly claims: readonly Claim[];
  readonly needsBudget?: boolean;
  readonly view?: Partial<View>;
  /** Calls before it in the line. */
  readonly before?: number;
  readonly refusedBefore?: number;
  /** `go`, `look`, or the verdict with its reason or wait. */
  readonly verdict: string;
}

test.each<Situation>([
  { what: 'a read while there is quota', claims: [READ], verdict: 'go' },
  {
    what: 'a read that has a permit, at the end of the quota',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, permits: 1 },
    verdict: 'go',
  },
  { what: 'a read behind 50 calls in flight', claims: [READ], view: { slots: 0 }, verdict: 'wait 0 s' },
  {
    what: 'a read that the reset comes too late for',
    claims: [READ],
    view: MINUTE_EXHAUSTED,
    verdict: 'refuse plan MINUTE 30 s',
  },
  { what: 'a read that can wait for the reset', claims: [PATIENT], view: MINUTE_EXHAUSTED, verdict: 'wait 30 s' },
  {
    what: 'a read behind 60 that fill the next minute',
    claims: [waiting(60_000)],
    view: MINUTE_EXHAUSTED,
    before: 60,
    verdict: 'refuse plan MINUTE 90 s',
  },
  {
    what: 'a read after 60 that were told to return in the next minute',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, promised: 60 },
    verdict: 'refuse plan MINUTE 90 s',
  },
  {
    what: 'a read after 60 that are refused with it',
    claims: [READ],
    view: MINUTE_EXHAUSTED,
    refusedBefore: 60,
    verdict: 'refuse plan MINUTE 90 s',
  },
  {
    what: 'a read after thousands that were told to return',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, promised: 6_000 },
    verdict: 'refuse plan MINUTE 630 s',
  },
  { what: 'a read on a used-up day', claims: [PATIENT], view: DAY_EXHAUSTED, verdict: 'refuse plan DAY 3600 s' },
  { what: 'a read in a pause', claims: [READ], view: PAUSED, verdict: 'refuse plan MINUTE 20 s' },
  {
    what: 'a read beside the probe of a pause',
    claims: [READ],
    view: { isAfter429: true, slots: 0 },
    verdict: 'wait 0 s',
  },
  {
    what: 'a read on a view that is old',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, isOld: true },
    verdict: 'wait 30 s',
  },
  {
    what: 'a read past its deadline, in a crowd',
    claims: [waiting(-200)],
    view: { slots: 0 },
    verdict: 'refuse late - 0 s',
  },
  {
    what: 'a read past its deadline, on a view that is old',
    claims: [waiting(-200)],
    view: { ...MINUTE_EXHAUSTED, isOld: true },
    verdict: 'refuse plan MINUTE 30 s',
  },
  { what: 'a read past its deadline that may go now', claims: [waiting(-200)], verdict: 'go' },
  { what: 'a read of a second ago that might go now', claims: [waiting(-1_200)], verdict: 'refuse late - 0 s' },
  {
    what: 'a read while petql stops',
    claims: [PATIENT],
    view: { isStopping: true, permits: 1 },
    verdict: 'refuse stopping - 0 s',
  },
  { what: 'a stale list while there is quota', claims: [REFRESH], needsBudget: true, verdict: 'go' },
  {
    what: 'a stale list without a token of the refresh budget',
    claims: [REFRESH],
    needsBudget: true,
    view: { hasRefreshToken: () => false },
    verdict: 'serve-stale SAVING_QUOTA',
  },
  {
    what: 'a stale list that a waiting read pays for',
    claims: [REFRESH],
    view: { hasRefreshToken: () => false },
    verdict: 'go',
  },
  {
    what: 'a stale list on an exhausted minute',
    claims: [REFRESH],
    needsBudget: true,
    view: MINUTE_EXHAUSTED,
    verdict: 'serve-stale QUOTA_EXHAUSTED',
  },
  {
    what: 'a stale list behind 50 calls in flight',
    claims: [REFRESH],
    needsBudget: true,
    view: { slots: 0 },
    verdict: 'serve-stale QUOTA_EXHAUSTED',
  },
  {
    what: 'a stale list in a pause',
    claims: [REFRESH],
    needsBudget: true,
    view: PAUSED,
    verdict: 'serve-stale PAUSED',
  },
  {
    what: 'a stale list beside the probe of a pause',
    claims: [REFRESH],
    needsBudget: true,
    view: { isAfter429: true, slots: 0 },
    verdict: 'serve-stale PAUSED',
  },
  {
    what: 'a stale list of a visitor without a share',
    claims: [{ ...GREEDY, isRefresh: true }],
    needsBudget: true,
    view: { hasShare: () => false },
    verdict: 'serve-stale QUOTA_EXHAUSTED',
  },
  {
    what: 'a read of a visitor without a share',
    claims: [GREEDY],
    view: { hasShare: () => false },
    verdict: 'refuse visitor-share MINUTE 40 s',
  },
  {
    what: 'the same, on a view that is old',
    claims: [GREEDY],
    view: { hasShare: () => false, isOld: true },
    verdict: 'look',
  },
  { what: 'background work while there is more than the reserve', claims: [BACKGROUND], verdict: 'go' },
  { what: 'background work at the reserve', claims: [BACKGROUND], view: RESERVED, verdict: 'wait 5 s' },
  {
    what: 'the same, though a permit is left over',
    claims: [BACKGROUND],
    view: { ...RESERVED, permits: 1 },
    verdict: 'wait 5 s',
  },
  {
    what: 'background work that cannot wait for the reserve',
    claims: [{ ...BACKGROUND, deadlineMs: NOW_MS + 1_000 }],
    view: RESERVED,
    verdict: 'refuse background MINUTE 5 s',
  },
  {
    what: 'background work that a read of somebody else needs too',
    claims: [BACKGROUND, READ],
    view: RESERVED,
    verdict: 'go',
  },
  {
    what: 'a read of two visitors, of whom one has a share',
    claims: [GREEDY, HONEST],
    view: { hasShare: (visitor) => visitor === 'honest' },
    verdict: 'go',
  },
])('$what: $verdict', ({ claims, needsBudget = false, view, before = 0, refusedBefore = 0, verdict: expected }) => {
  const standing: Before = { ...NOTHING_BEFORE, calls: before, refused: refusedBefore };
  const { verdict } = admit({ claims, needsBudget }, { ...VIEW, ...view }, standing);
  const parts: unknown[] = [verdict.kind];
  if ('reason' in verdict) parts.push(verdict.reason);
  if (verdict.kind === 'refuse') parts.push(verdict.wait.window ?? '-');
  if ('wait' in verdict) parts.push(`${verdict.wait.waitMs / 1_000} s`);
  expect(parts.join(' ')).toBe(expected);
});
