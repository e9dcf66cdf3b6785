import type { RateLimitHeaders } from '../upstream/rate-limit-headers.ts';
import type { Reading, Standing, WindowName } from './ledger.ts';
import { isDayOfAPlan, isMinuteOfAPlan, perDayFor, perMinuteFor } from '../plan.ts';

const LENGTH_MS = { minute: 60_000, day: 86_400_000 } as const;
/** A reset further away is the day's, even where Date is set by a proxy whose clock is behind the one that counts. */
const SURELY_DAY_MS = 120_000;
const LONGEST_MS = { minute: LENGTH_MS.minute, day: LENGTH_MS.day, either: SURELY_DAY_MS } as const;
/** Further away than any day, by a clock that may be some hours behind. */
const LONGEST_DAY_MS = 36 * 3_600_000;
const SAME_RESET_MS = 1_500;
/**
 * A sliding window's reset, the end of its oldest call, is often only just ahead. Cut to a whole second, and with the
 * answer's way, it lies behind when it is read; what it says of the remaining calls holds all the same.
 */
const JUST_OVER_MS = 2_000;

export interface Times {
  /** The upstream's clock; undefined where it is not known. */
  readonly upstreamNowMs: number | undefined;
  /** Our own, in its stead. */
  readonly nowMs: number;
}

/** What is known of the caller's plan and windows before the response. */
export interface KnownPlan extends Pick<Standing, 'day' | 'minute' | 'planKnown'> {
  /** Calls of the last hours that the upstream had surely counted when this one was sent. Default 0. */
  readonly answered?: number;
}

/**
 * Which window a response's headers describe, and what they say of it. The contract (pet-api.md, "Rate-limit headers")
 * does not say which; so it is read off the reset and the limit. Headers that make no sense give no reading.
 *
 * What may be either window's is told of the minute, without what it would say of the plan. It holds back no longer than until
 * its reset, which is right for both, and the ledger counts the minute and the day itself until the plan is known.
 */
export function readWindows(headers: RateLimitHeaders, known: KnownPlan, times: Times): Reading[] {
  const { limit, remaining } = headers;
  // A limit of 0 is what a caller without a plan is told.
  if (remaining === undefined || limit === 0) return [];
  const reset = readReset(headers, times);
  if (reset && reset.inMs <= -JUST_OVER_MS) return [];
  const described = describedWindow({ limit, remaining }, reset, known, times);
  const window = described === 'either' ? 'minute' : described;
  // Capped to what there can be, it would say on every answer that nothing is spent.
  if (remaining > (limit ?? known[window].limit)) return [];
  return [
    {
      window,
      limit,
      remaining,
      resetInMs: reset ? Math.min(Math.max(0, reset.inMs), LONGEST_MS[described]) : LENGTH_MS[window],
      resetId: reset?.id ?? 0,
      otherLimit: described === 'either' ? undefined : otherLimit(window, limit, known),
    },
  ];
}

interface Reset {
  readonly inMs: number;
  readonly id: number;
  /** Whether a clock that may be the one that counts is two minutes or less before it. */
  readonly mayBeNear: boolean;
  /** Whether the clocks agree. Seconds from now need none. */
  readonly isSure: boolean;
}

/** A Unix timestamp by the contract; milliseconds and seconds-from-now are read as well, since others send those. */
function readReset({ reset: value, dateMs }: RateLimitHeaders, { upstreamNowMs, nowMs }: Times): Reset | undefined {
  if (value === undefined) return undefined;
  const now = upstreamNowMs ?? nowMs;
  const isDelta = value < 1e9;
  const atMs = isDelta ? Math.round(now + value * 1000) : value < 1e12 ? value * 1000 : value;
  const inMs = Math.round(atMs - now);
  // Further away than any day it names no window, and all true ones would be before it. Without the upstream's clock, nobody knows.
  const isKnown = isDelta || upstreamNowMs !== undefined;
  if (isKnown && inMs > LONGEST_DAY_MS) return undefined;
  // Date is one backend's, and the limits are counted by a clock that they share: an answer that is dated wrong tells its reset right.
  const clocks = isDelta ? [now] : [now, dateMs ?? now, nowMs];
  const mayBeNear = clocks.some((clockMs) => atMs - clockMs > -JUST_OVER_MS && atMs - clockMs <= SURELY_DAY_MS);
  const isSure = Math.max(...clocks) - Math.min(...clocks) <= SURELY_DAY_MS;
  return { inMs, id: atMs, mayBeNear, isSure };
}

interface Told {
  readonly limit: number | undefined;
  readonly remaining: number;
}

function describedWindow(
  { limit, remaining }: Told,
  reset: Reset | undefined,
  known: KnownPlan,
  { upstreamNowMs }: Times,
): WindowName | 'either' {
  const { minute, day, planKnown } = known;
  const byLimit = windowWithLimit(limit, minute.limit, day.limit);
  // Without the upstream's clock a reset may be off by any amount; a limit that fits one window says more.
  if (upstreamNowMs === undefined || !reset) return byLimit ?? 'minute';
  const isByLimit = !reset.isSure && isMinutesLimit(limit, planKnown, byLimit);
  const mayBeMinute = reset.mayBeNear || isNextMinute(reset, minute) || isByLimit;
  if (!mayBeMinute) return 'day';
  // At the day's end, or somebody's minute: 1,000 is Free's day and Business's minute, and a custom plan may have any.
  if (limit !== undefined && isDayOfAPlan(limit) && !planKnown)
    return isNoDay(limit - remaining, reset, known) ? 'minute' : 'either';
  if (byLimit === 'day' && isAnotherPlansMinute(day.limit - remaining, reset, known)) return 'minute';
  if (byLimit) return byLimit;
  for (const window of ['minute', 'day'] as const) {
    const { mode, resetId } = window === 'minute' ? minute : day;
    if (mode === 'told' && Math.abs(reset.id - resetId) <= SAME_RESET_MS) return window;
  }
  return 'minute';
}

/**
 * Whether it is the limit of a published plan's minute, and of no day: of this one, or, before that is known, of any. Of another
 * plan nobody knows whether what was read as its minute is one.
 */
function isMinutesLimit(limit: number | undefined, planKnown: boolean, byLimit: WindowName | undefined): boolean {
  if (limit === undefined || isDayOfAPlan(limit)) return false;
  return isMinuteOfAPlan(limit) && (byLimit === 'minute' || !planKnown);
}

/**
 * Whether it is the reset that was told of the minute, or that of the minute after it, which is so whatever any clock says. What was
 * read before the plan was known may have been the day's.
 */
function isNextMinute({ id }: Reset, { mode, resetId }: Pick<Standing['minute'], 'mode' | 'resetId'>): boolean {
  const laterMs = id - resetId;
  if (Math.abs(laterMs) <= SAME_RESET_MS) return mode === 'told';
  return resetId > 0 && laterMs > 0 && laterMs <= LENGTH_MS.minute + SAME_RESET_MS;
}

/**
 * Whether what resets so soon cannot be a day's.
 *
 * @param used calls of that window, the answered one with them.
 */
function isNoDay(used: number, { id }: Reset, { minute, answered = 0 }: KnownPlan): boolean {
  // A day has those in it too that were answered before.
  if (used < answered) return true;
  // The day after one that has ended lately does not end as soon; and one that slides still has the call in it that told of the
  // reset before, and an older one, which is the next to leave.
  const laterMs = id - minute.resetId;
  return minute.resetId > 0 && laterMs > SAME_RESET_MS && laterMs < LENGTH_MS.day / 2 && used <= 1;
}

/**
 * Whether what has the day's limit, and resets about a minute from now, is the minute of a plan that the key has changed to:
 * 1,000 is Free's day and Business's minute.
 *
 * @param used calls of that window, the answered one with them.
 */
function isAnotherPlansMinute(
  used: number,
  { id }: Reset,
  { minute, day }: Pick<KnownPlan, 'day' | 'minute'>,
): boolean {
  // A day that is about to end, or slides, has calls of before the last minute in it.
  if (used > Math.max(1, minute.used)) return false;
  // Who tells of days would have told of this one when it was not about to end.
  if (day.resetId === 0) return day.mode === 'counted';
  // The one that was told is over, and the next does not end hours after it.
  const laterMs = id - day.resetId;
  return day.mode === 'unknown' && laterMs > SAME_RESET_MS && laterMs < LENGTH_MS.day / 2;
}

function windowWithLimit(limit: number | undefined, perMinute: number, perDay: number): WindowName | undefined {
  if (limit === undefined || perMinute === perDay) return undefined;
  if (limit === perMinute) return 'minute';
  return limit === perDay ? 'day' : undefined;
}

/**
 * A window's limit gives the plan away, and with it the other window's; unless that one is known already. A custom limit
 * gives away only beyond which published plan it is: while that is the same, so is what is known of the other window.
 */
function otherLimit(window: WindowName, limit: number | undefined, known: KnownPlan): number | undefined {
  const [before, other] = window === 'minute' ? [known.minute, known.day] : [known.day, known.minute];
  const [otherFor, backFrom] = window === 'minute' ? [perDayFor, perMinuteFor] : [perMinuteFor, perDayFor];
  if (limit === undefined || (known.planKnown && limit === before.limit)) return undefined;
  const published = otherFor(limit);
  if (!known.planKnown || backFrom(published) === limit) return published;
  const publishedBefore = otherFor(before.limit);
  if (published === publishedBefore) return other.limit;
  return published > publishedBefore ? Math.max(other.limit, published) : Math.min(other.limit, published);
}
