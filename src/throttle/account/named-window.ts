import { isPublished } from '../../plan.ts';
import type { AssumedPlan } from '../../plan.ts';
import type { Account, Permit } from './format.ts';
import type { HeaderLimits } from './header-limits.ts';
import { knownWindows, limitsOf } from './limits.ts';
import type { KnownLimits, WindowLimits } from './limits.ts';
import type { WindowName } from './slots.ts';
import { ownCount } from './window.ts';

/** What the headers of a response say of one window. The account acts on these alone, and reads no header again. */
export interface NamedWindow extends HeaderLimits {
  readonly name: WindowName;
  /** Whether it is this window for sure. */
  readonly isSure: boolean;
}

/** Calls of petql, as a response describes a window. */
interface OwnCalls extends WindowLimits {
  /** All of the last minute, with those in flight; the upstream had surely counted the others before this one. */
  readonly madeInMinute: number;
}

/** A reset farther ahead is not a minute's. */
const FAR_MS = 120_000;
/** Own calls that the upstream may not have counted, as those that failed. */
const UNCOUNTED = 10;
/** A reset is at most a window ahead: and by the seconds of its reset and Date, and once a year by the hour of a local day. */
const MAX_AHEAD_MS = { minute: 62_000, day: 25 * 3_600_000 };

/**
 * Names the window that the headers of a response describe; undefined where it may be either. Headers that name theirs one day need
 * no guess: they are read here too.
 */
export function nameWindow(
  headers: HeaderLimits,
  account: Account,
  permit: Permit,
  assumed: AssumedPlan,
): NamedWindow | undefined {
  const later = permitsAfter(account, permit);
  const ownIn = (name: WindowName) => Math.max(0, ownCount(account[name]) - later);
  const own = { minute: ownIn('minute'), day: ownIn('day'), madeInMinute: ownCount(account.minute) };
  const guess = guessWindow(headers, own, account, assumed);
  return guess && { ...headers, ...guess, reset: believedReset(headers, guess.name) };
}

/** Returns how many permits, with this one, the upstream may not have counted at its response; it had surely counted the others. */
export function permitsAfter({ epoch, granted }: Account, permit: Permit): number {
  return permit.epoch === epoch ? granted - permit.settledBefore : Infinity;
}

/** A reset is believed as far as its window goes: a minute's is at most a minute ahead. */
function believedReset({ reset }: HeaderLimits, name: WindowName): HeaderLimits['reset'] {
  return reset && reset.inMs <= MAX_AHEAD_MS[name] ? reset : undefined;
}

/**
 * Returns the window that a response describes; undefined where it may be either. Its headers name a limit, not a window, and 1,000
 * is both Free's day and Business's minute (pet-api.md, "Rate limits by plan"). The first rule that holds decides.
 *
 * @param own calls of petql that the upstream may have counted.
 */
function guessWindow(
  { limit, reset, used }: HeaderLimits,
  own: OwnCalls,
  account: KnownLimits,
  assumed: AssumedPlan,
): Pick<NamedWindow, 'isSure' | 'name'> | undefined {
  const limits = limitsOf(account, assumed);
  const known = knownWindows(account);
  const isKnown = (name: WindowName) => known[name] && limits[name] === limit;
  const [mayBeMinute, mayBeDay] = [isPublished('perMinute', limit), isPublished('perDay', limit)];
  const isFar = reset !== undefined && reset.inMs > FAR_MS;
  // A day holds every call that succeeded; but a sliding one lets go of some before petql does, and each of several nodes may count its own.
  const isTooFewForDay = (share: number) => used + UNCOUNTED < share * own.day;

  // 1. The window as known.
  if (isKnown('minute') && !(isFar && (mayBeDay || isKnown('day')))) return { name: 'minute', isSure: true };
  if (isKnown('day') && (isFar || !reset || !isTooFewForDay(0.5))) return { name: 'day', isSure: true };
  // 2. A limit that only one published window has.
  if (mayBeMinute && !mayBeDay) return { name: 'minute', isSure: true };
  if (mayBeDay && !mayBeMinute) return { name: 'day', isSure: true };
  // 3. No minute allows more than its day.
  if (known.minute && limit < limits.minute && !mayBeDay) return { name: 'minute', isSure: false };
  if (known.day && limit > limits.day && !mayBeMinute) return { name: 'day', isSure: false };
  // 4. The calls that it counts, and how far its reset is.
  if (isTooFewForDay(0.25) && !(isFar && mayBeDay)) return { name: 'minute', isSure: true };
  if (isFar) return { name: 'day', isSure: mayBeDay || (used >= own.day && own.day > own.minute + UNCOUNTED) };
  // 5. A near reset is a minute's, or that of a day that ends soon: a calendar's does on the hour.
  if (known.minute && !reset) return { name: 'day', isSure: false };
  if (limits.day !== limit && !mayBeDay) return { name: 'minute', isSure: false };
  const isNamed = account.minute.limit === limit;
  if ((!reset && !isNamed) || used > own.madeInMinute + UNCOUNTED) return { name: 'day', isSure: false };
  return reset && isOnTheHour(reset.id) ? undefined : { name: 'minute', isSure: false };
}

/** Returns whether a reset, in seconds since the epoch, can be that of a calendar day. */
function isOnTheHour(id: number): boolean {
  const seconds = id % 3_600;
  return seconds <= 2 || seconds >= 3_598;
}
