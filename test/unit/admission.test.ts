import { expect, test } from 'vitest';
import { NOTHING_BEFORE, admit } from '../../src/line/admission.ts';
import type { Before, Claim, View } from '../../src/line/admission.ts';
import { OPEN } from '../../src/closed/closed-api.ts';

const NOW_MS = 1_000_000;
const NONE = { waitMs: 0, window: undefined } as const;

/** A key whose plan has room for everything. */
const VIEW: View = {
  nowMs: NOW_MS,
  isStopping: false,
  isOld: false,
  isAfter429: false,
  permits: 0,
  freeCalls: 50,
  turn: OPEN,
  promisedReturns: 0,
  waitOf: () => NONE,
  reserveWaitOf: () => NONE,
  hasPlace: () => true,
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

const waiting = (waitMs: number, terms: Partial<Claim['request']> = {}): Claim => ({
  request: { visitor: undefined, deadlineMs: NOW_MS + waitMs, isBackground: false, ...terms },
  isRefresh: false,
});
const READ = waiting(10_000);
const PATIENT = waiting(90_000);
const CREATE = waiting(40_000);
const BACKGROUND = waiting(10_000, { isBackground: true });
const RESERVED: Partial<View> = { reserveWaitOf: () => ({ waitMs: 5_000, window: 'MINUTE' }) };
const REFRESH: Claim = { ...READ, isRefresh: true };
const GREEDY = waiting(10_000, { visitor: 'greedy' });
const HONEST = waiting(10_000, { visitor: 'honest' });

interface Situation {
  readonly what: string;
  /** Who waits for the call. */
  readonly claims: readonly Claim[];
  readonly isNewRefresh?: boolean;
  readonly view?: Partial<View>;
  /** Calls before it in the line. */
  readonly before?: number;
  readonly refusedBefore?: number;
  /**
   * The verdict, with its reason, the window and the wait; and the visitor that pays. A client sees `refuse` as RATE_LIMITED, and the
   * reason of `serve-stale` as `staleReason`.
   */
  readonly verdict: string;
}

// Where 1,000 wait already (`crowded`), another one does not stand in the line: plan/waiting shows it.
test.each<Situation>([
  { what: 'a read while there is quota', claims: [READ], verdict: 'go' },
  {
    what: 'a read that has the last permit',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, permits: 1 },
    verdict: 'go',
  },
  { what: 'a read behind 50 calls in flight', claims: [READ], view: { freeCalls: 0 }, verdict: 'wait - 0 s' },
  {
    what: 'a read on an exhausted minute',
    claims: [READ],
    view: MINUTE_EXHAUSTED,
    verdict: 'refuse quota MINUTE 30 s',
  },
  {
    what: 'a read that can wait for the reset',
    claims: [PATIENT],
    view: MINUTE_EXHAUSTED,
    verdict: 'wait MINUTE 30 s',
  },
  {
    what: 'a create that can wait for the reset',
    claims: [CREATE],
    view: MINUTE_EXHAUSTED,
    verdict: 'wait MINUTE 30 s',
  },
  {
    what: 'a create behind 60 of the next minute',
    claims: [CREATE],
    view: MINUTE_EXHAUSTED,
    before: 60,
    verdict: 'refuse quota MINUTE 90 s',
  },
  {
    what: 'a create on an exhausted day',
    claims: [CREATE],
    view: DAY_EXHAUSTED,
    verdict: 'refuse quota DAY 3600 s',
  },
  {
    what: 'a read behind 60 of the next minute',
    claims: [waiting(60_000)],
    view: MINUTE_EXHAUSTED,
    before: 60,
    verdict: 'refuse quota MINUTE 90 s',
  },
  {
    what: 'a read after 60 that are told to return',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, promisedReturns: 60 },
    verdict: 'refuse quota MINUTE 90 s',
  },
  {
    what: 'a read after 60 that are refused with it',
    claims: [READ],
    view: MINUTE_EXHAUSTED,
    refusedBefore: 60,
    verdict: 'refuse quota MINUTE 90 s',
  },
  {
    what: 'a read after 6,000 that are to return',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, promisedReturns: 6_000 },
    verdict: 'refuse quota MINUTE 630 s',
  },
  { what: 'a read on an exhausted day', claims: [PATIENT], view: DAY_EXHAUSTED, verdict: 'refuse quota DAY 3600 s' },
  { what: 'a read in a pause', claims: [READ], view: PAUSED, verdict: 'refuse quota MINUTE 20 s' },
  {
    what: 'a read beside the probe of a pause',
    claims: [READ],
    view: { isAfter429: true, freeCalls: 0 },
    verdict: 'wait - 0 s',
  },
  {
    what: 'a read on a view that is old',
    claims: [READ],
    view: { ...MINUTE_EXHAUSTED, isOld: true },
    verdict: 'wait MINUTE 30 s',
  },
  {
    what: 'a late read behind 50 calls in flight',
    claims: [waiting(-200)],
    view: { freeCalls: 0 },
    verdict: 'refuse in-flight - 0 s',
  },
  {
    what: 'a late read on a view that is old',
    claims: [waiting(-200)],
    view: { ...MINUTE_EXHAUSTED, isOld: true },
    verdict: 'refuse quota MINUTE 30 s',
  },
  { what: 'a late read that may go now', claims: [waiting(-200)], verdict: 'go' },
  { what: 'a read 1.2 s late that might go now', claims: [waiting(-1_200)], verdict: 'refuse late - 0 s' },
  {
    what: 'a read while petql stops',
    claims: [PATIENT],
    view: { isStopping: true, permits: 1 },
    verdict: 'refuse stopping - 0 s',
  },
  { what: 'a stale list while there is quota', claims: [REFRESH], isNewRefresh: true, verdict: 'go' },
  {
    what: 'a stale list without a refresh token',
    claims: [REFRESH],
    isNewRefresh: true,
    view: { hasRefreshToken: () => false },
    verdict: 'serve-stale SAVING_QUOTA',
  },
  {
    what: 'a stale list whose call is in the line',
    claims: [REFRESH],
    view: { hasRefreshToken: () => false },
    verdict: 'go',
  },
  {
    what: 'a stale list on an exhausted minute',
    claims: [REFRESH],
    isNewRefresh: true,
    view: MINUTE_EXHAUSTED,
    verdict: 'serve-stale QUOTA_EXHAUSTED',
  },
  {
    what: 'a stale list behind 50 calls in flight',
    claims: [REFRESH],
    isNewRefresh: true,
    view: { freeCalls: 0 },
    verdict: 'serve-stale CALLS_IN_FLIGHT',
  },
  {
    what: 'a stale list in a pause',
    claims: [REFRESH],
    isNewRefresh: true,
    view: PAUSED,
    verdict: 'serve-stale PAUSED',
  },
  {
    what: 'a stale list beside the probe of a pause',
    claims: [REFRESH],
    isNewRefresh: true,
    view: { isAfter429: true, freeCalls: 0 },
    verdict: 'serve-stale PAUSED',
  },
  {
    what: 'a stale list of a visitor at its share',
    claims: [{ ...GREEDY, isRefresh: true }],
    isNewRefresh: true,
    view: { hasShare: () => false },
    verdict: 'serve-stale QUOTA_EXHAUSTED',
  },
  {
    what: 'a read of a visitor at its share',
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
  {
    what: 'a read of a visitor whose calls hang',
    claims: [GREEDY],
    view: { permits: 1, hasPlace: (visitor) => visitor === 'honest' },
    verdict: 'wait - 0 s, greedy pays',
  },
  {
    what: 'a stale list of a visitor whose calls hang',
    claims: [{ ...GREEDY, isRefresh: true }],
    isNewRefresh: true,
    view: { permits: 1, hasPlace: (visitor) => visitor === 'honest' },
    verdict: 'serve-stale CALLS_IN_FLIGHT',
  },
  {
    what: 'a read of two visitors, one whose calls hang',
    claims: [GREEDY, HONEST],
    view: { hasPlace: (visitor) => visitor === 'honest' },
    verdict: 'go, honest pays',
  },
  { what: 'background work above the reserve', claims: [BACKGROUND], verdict: 'go' },
  { what: 'background work at the reserve', claims: [BACKGROUND], view: RESERVED, verdict: 'wait MINUTE 5 s' },
  {
    what: 'the same, though a permit is left over',
    claims: [BACKGROUND],
    view: { ...RESERVED, permits: 1 },
    verdict: 'wait MINUTE 5 s',
  },
  {
    what: 'background work that cannot wait so long',
    claims: [waiting(1_000, { isBackground: true })],
    view: RESERVED,
    verdict: 'refuse background MINUTE 5 s',
  },
  {
    what: 'background work that others need too',
    claims: [BACKGROUND, READ],
    view: RESERVED,
    verdict: 'go',
  },
  {
    what: 'a read of two visitors, one at its share',
    claims: [GREEDY, HONEST],
    view: { hasShare: (visitor) => visitor === 'honest' },
    verdict: 'go, honest pays',
  },
])('$what: $verdict', ({ claims, isNewRefresh = false, view, before = 0, refusedBefore = 0, verdict: expected }) => {
  const standing: Before = { ...NOTHING_BEFORE, calls: before, startable: before, refused: refusedBefore };
  const { verdict, payer } = admit({ claims, isNewRefresh }, { ...VIEW, ...view }, standing);
  const parts: unknown[] = [verdict.kind];
  if ('reason' in verdict) parts.push(verdict.reason);
  if ('wait' in verdict) parts.push(verdict.wait.window ?? '-', `${verdict.wait.waitMs / 1_000} s`);
  const visitor = payer?.request.visitor;
  expect(parts.join(' ') + (visitor === undefined ? '' : `, ${visitor} pays`)).toBe(expected);
});
