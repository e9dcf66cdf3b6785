import { isPublished } from '../../common/plan.ts';
import type { AssumedPlan } from '../../common/plan.ts';
import type { Account, Permit } from './format.ts';
import type { HeaderLimits } from './header-limits.ts';
import { knownWindows, limitsOf } from './limits.ts';
import type { WindowLimits } from './limits.ts';
import type { WindowName } from './slots.ts';
import { ownCount } from './window.ts';
import { FAR_MS, HALF_DAY_S, MAX_AHEAD_MS } from './times.ts';

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

/** Own calls that the upstream may not have counted, as those that failed. */
const UNCOUNTED = 10;

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

/** What is known when a response describes a window. */
interface Facts {
  readonly limit: number;
  readonly used: number;
  readonly hasReset: boolean;
  /** Whether its reset is farther than a minute's can be. */
  readonly isFar: boolean;
  /** Calls of petql that the upstream may have counted. */
  readonly own: OwnCalls;
  readonly limits: WindowLimits;
  /** Whether the window is known, whatever its limit; and whether it is known to have this limit. */
  readonly known: Readonly<Record<WindowName, boolean>>;
  readonly isKnown: (name: WindowName) => boolean;
  /** Whether a published plan has this limit for the window. */
  readonly mayBeMinute: boolean;
  readonly mayBeDay: boolean;
  /** Whether the configured minute has this limit, or that of which a header has surely told. */
  readonly isMinuteAsSet: boolean;
  /** Whether it is configured so, and a header has told the same of the minute. */
  readonly isMinuteShown: boolean;
  readonly isNamed: boolean;
  readonly endsOnTheHour: boolean;
  /** Whether a day would count more: at least this share of petql's calls. */
  readonly isTooFewForDay: (share: number) => boolean;
  /** The same of the calls since its told reset. */
  readonly isTooFewSinceReset: boolean;
}

type Rule = readonly [
  reason: string,
  holds: (facts: Facts) => boolean,
  name: WindowName | undefined,
  isSure: boolean | ((facts: Facts) => boolean),
];

/** A day holds every call that worked; but a sliding one lets go of some before petql does, and each of several nodes counts its own. */
const FEW = 0.25;

/**
 * Which window a limit means: the first rule that holds decides. 1,000 is both Free's day and Business's minute (pet-api.md, "Rate
 * limits by plan"), and a reset may be any clock's, so the plan and the count go before it.
 */
const RULES: readonly Rule[] = [
  [
    'as configured, and a day would count more, whatever the reset says',
    ({ isFar, isMinuteAsSet, isMinuteShown, isTooFewSinceReset, mayBeDay }) =>
      isFar && mayBeDay && isMinuteAsSet && (isMinuteShown || isTooFewSinceReset),
    'minute',
    true,
  ],
  [
    'the minute as known, and no reset of a day',
    ({ isFar, isKnown, mayBeDay }) => isKnown('minute') && !(isFar && (mayBeDay || isKnown('day'))),
    'minute',
    true,
  ],
  [
    'the day as known, and it counts as much as a day',
    ({ hasReset, isFar, isKnown, isTooFewForDay }) => isKnown('day') && (isFar || !hasReset || !isTooFewForDay(0.5)),
    'day',
    true,
  ],
  ['only a published minute has it', ({ mayBeDay, mayBeMinute }) => mayBeMinute && !mayBeDay, 'minute', true],
  ['only a published day has it', ({ mayBeDay, mayBeMinute }) => mayBeDay && !mayBeMinute, 'day', true],
  [
    'less than the known minute: no day allows less than its minute',
    ({ known, limit, limits, mayBeDay }) => known.minute && limit < limits.minute && !mayBeDay,
    'minute',
    false,
  ],
  [
    'more than the known day: no minute allows more than its day',
    ({ known, limit, limits, mayBeMinute }) => known.day && limit > limits.day && !mayBeMinute,
    'day',
    false,
  ],
  [
    'a day would count more',
    ({ isFar, isTooFewForDay, mayBeDay }) => isTooFewForDay(FEW) && !(isFar && mayBeDay),
    'minute',
    true,
  ],
  [
    'no minute has so far a reset',
    ({ isFar }) => isFar,
    'day',
    ({ mayBeDay, own, used }) => mayBeDay || (used >= own.day && own.day > own.minute + UNCOUNTED),
  ],
  ['the minute is known, and has another limit', ({ hasReset, known }) => known.minute && !hasReset, 'day', false],
  ['no day is known to have it', ({ limit, limits, mayBeDay }) => limits.day !== limit && !mayBeDay, 'minute', false],
  ['nothing names a minute', ({ hasReset, isNamed }) => !hasReset && !isNamed, 'day', false],
  ['more than a minute of petql', ({ own, used }) => used > own.madeInMinute + UNCOUNTED, 'day', false],
  [
    'a calendar day ends on the hour, too',
    ({ endsOnTheHour, hasReset }) => hasReset && endsOnTheHour,
    undefined,
    false,
  ],
  ['a near reset is a minute’s', () => true, 'minute', false],
];

/** Returns the window that a response describes; undefined where it may be either. */
function guessWindow(
  { limit, reset, used }: HeaderLimits,
  own: OwnCalls,
  account: Account,
  assumed: AssumedPlan,
): Pick<NamedWindow, 'isSure' | 'name'> | undefined {
  const limits = limitsOf(account, assumed);
  const known = knownWindows(account);
  const { configured, minute } = account;
  const isTooFew = (calls: number) => used + UNCOUNTED < calls;
  const { day } = account;
  // A reset that was not told before may have freed all.
  const isSameDay = reset && (day.reset ? reset.id - day.reset.id < HALF_DAY_S : minute.limit === limit);
  const sinceReset = !isSameDay ? 0 : own.day - (day.doubted?.total ?? 0);
  const minuteAsSet = configured?.perMinute ?? (minute.isSure ? minute.limit : undefined);
  const facts: Facts = {
    limit,
    used,
    hasReset: reset !== undefined,
    isFar: reset !== undefined && reset.inMs > FAR_MS,
    own,
    limits,
    known,
    isKnown: (name) => known[name] && limits[name] === limit,
    mayBeMinute: isPublished('perMinute', limit),
    mayBeDay: isPublished('perDay', limit),
    isMinuteAsSet: minuteAsSet === limit,
    isMinuteShown: configured !== undefined && minute.limit === limit,
    isNamed: minute.limit === limit,
    endsOnTheHour: reset !== undefined && isOnTheHour(reset.id),
    isTooFewForDay: (share) => isTooFew(share * own.day),
    isTooFewSinceReset: isTooFew(FEW * sinceReset),
  };

  const [, , name, isSure] = RULES.find(([, holds]) => holds(facts)) as Rule;
  return name && { name, isSure: typeof isSure === 'boolean' ? isSure : isSure(facts) };
}

/** Returns whether a reset, in seconds since the epoch, can be that of a calendar day. */
function isOnTheHour(id: number): boolean {
  const seconds = id % 3_600;
  return seconds <= 2 || seconds >= 3_598;
}
