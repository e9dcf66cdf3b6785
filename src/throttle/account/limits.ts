import { PLANS, isPublished, planName, planWith } from '../../plan.ts';
import type { AssumedPlan, Plan } from '../../plan.ts';
import type { Account, Permit, WindowName } from './format.ts';
import type { HeaderLimits } from './header-limits.ts';

/** Rules for all accounts of a process. */
export interface AccountRules {
  /** The plan of a key before the first headers. */
  readonly plan: AssumedPlan;
  /** When this process started, by the store's clock. */
  readonly startedAtMs: number;
  /** How long a call without a response may still be counted, in milliseconds: twice the upstream timeout, and a minute. */
  readonly leaseMs: number;
  /** How long a probe may be under way before another is sent, in milliseconds: twice the upstream timeout. */
  readonly probeMs: number;
  /** The rules of an offline account; undefined for stored ones, and where there are no other replicas. */
  readonly offlineShare?: OfflineShare;
}

/** The part of the plan that one replica may use without Redis. */
interface OfflineShare {
  /** Among how many replicas the plan is divided. */
  readonly divisor: number;
  readonly limits: Limits;
  /** How many calls may be in flight. */
  readonly maxInFlight: number;
}

export type Limits = Readonly<Record<WindowName, number>>;

/** The limits in an account: from headers and from configuration. */
interface KnownLimits {
  readonly minute: { readonly limit?: number | undefined };
  readonly day: { readonly limit?: number | undefined };
  readonly configured?: Account['configured'];
  readonly minuteGuess?: Account['minuteGuess'];
}

const FIELDS = { minute: 'perMinute', day: 'perDay' } as const;
export const OTHER_WINDOW = { minute: 'day', day: 'minute' } as const;

/** Returns the limits to count by: in headers, else configured, else of the plan that one window names; at first Free's. */
export function limitsOf({ minute, day, configured }: KnownLimits, assumed: AssumedPlan): Limits {
  const plan = configured ?? assumed;
  const isKnown = configured !== undefined || assumed.known;
  return { minute: minute.limit ?? beside('day', day.limit), day: day.limit ?? beside('minute', minute.limit) };

  /** Returns the limit of the other window beside this one. */
  function beside(name: WindowName, limit: number | undefined): number {
    const field = FIELDS[name];
    const isOfPlan = limit === undefined || plan[field] === limit || (isKnown && !isPublished(field, limit));
    return (isOfPlan ? plan : planWith(field, limit))[FIELDS[OTHER_WINDOW[name]]];
  }
}

/** Returns how many calls of each window may be granted: of a guessed minute, two more for each success above the assumed limit. */
export function grantableOf(account: Account, assumed: AssumedPlan): Limits {
  const limits = limitsOf(account, assumed);
  const { minuteGuess, minute, successes } = account;
  if (!minuteGuess || minuteGuess.limit !== minute.limit) return limits;
  const proved = Math.max(0, successes.count - assumed.perMinute);
  return { ...limits, minute: Math.min(limits.minute, assumed.perMinute + 2 * (proved + 1)) };
}

/** Returns which limits are known rather than assumed: in headers, configured, or of the published plan that a header names. */
export function knownWindows({ configured, isPlanKnown, minute, day }: Account): Readonly<Record<WindowName, boolean>> {
  const isNamed = (name: WindowName, limit: number | undefined) =>
    isPlanKnown && limit !== undefined && isPublished(FIELDS[name], limit);
  return {
    minute: configured !== undefined || minute.limit !== undefined || isNamed('day', day.limit),
    day: configured !== undefined || day.limit !== undefined || isNamed('minute', minute.limit),
  };
}

/** Returns the plan's name, or undefined while the plan is a guess. */
export function knownPlanName(account: Account, assumed: AssumedPlan): string | undefined {
  const known = knownWindows(account);
  if (!known.minute || !known.day || (!account.isPlanKnown && !account.configured)) return undefined;
  const { minute, day } = limitsOf(account, assumed);
  return planName({ perMinute: minute, perDay: day });
}

/** The window that a response describes. */
interface DescribedWindow {
  readonly name: WindowName;
  readonly isCertain: boolean;
  /** What the next responses may prove to be a minute. */
  readonly minuteGuess?: Account['minuteGuess'];
}

/** Resets of a minute are no farther apart, as a key uses it. */
const NEXT_RESET_S = 600;
/** A reset farther ahead is not a minute's. */
const FAR_MS = 120_000;
/** A minute's reset is nearer. */
const NEAR_MS = 61_000;

/**
 * Returns the window that a response describes. Its headers name a limit, not a window, and 1,000 is both Free's day and
 * Business's minute (pet-api.md, "Rate limits by plan"). The first rule that holds decides.
 */
export function windowOfHeaders(
  { limit, remaining, reset }: HeaderLimits,
  permit: Permit,
  account: KnownLimits,
  { plan }: AccountRules,
): DescribedWindow {
  const known = limitsOf(account, plan);
  const isConfigured = plan.known || account.configured !== undefined;
  const used = limit - remaining;

  // 1. Far resets are the day's; but a limit that only a published minute has is the minute's, however its reset is written.
  if (reset && reset.inMs > FAR_MS) return certain(isMinuteAlone(limit) && limit !== known.day ? 'minute' : 'day');
  // 2. The minute as known.
  const guess = account.minuteGuess?.limit === limit ? account.minuteGuess : undefined;
  const isNext = guess && reset && reset.id > guess.resetId && reset.id <= guess.resetId + NEXT_RESET_S;
  if (limit === known.minute) return { name: 'minute', isCertain: !guess || isNext === true };
  // 3. A window that begins and soon resets is a minute, or a day that ends at an odd moment: a calendar's ends on the hour. The next
  // reset tells. Until then a configured plan counts, and under `auto` the guess is proved call by call.
  if (used === 1 && reset && reset.inMs <= NEAR_MS && !isOnTheHour(reset.id)) {
    if (isNext || (isMinuteAlone(limit) && limit !== known.day)) return certain('minute');
    const minuteGuess = { limit, resetId: reset.id };
    return isConfigured ? { ...other(), minuteGuess } : { name: 'minute', isCertain: false, minuteGuess };
  }
  return other();

  function other(): DescribedWindow {
    // 4. A day holds every call that succeeded.
    const mayBeDay = limit === known.day || isPublished('perDay', limit) || (!isConfigured && !isMinuteAlone(limit));
    if (mayBeDay && used >= permit.successesBefore) return { name: 'day', isCertain: false };
    // 5. Anything else is the minute, unless a configured plan says that it is the day.
    if (isConfigured && limit === (account.configured ?? plan).perDay) return certain('day');
    return certain('minute');
  }
}

function certain(name: WindowName): DescribedWindow {
  return { name, isCertain: true };
}

/** Returns whether the limit is a published minute's and no published day's. */
function isMinuteAlone(limit: number): boolean {
  return isPublished('perMinute', limit) && !isPublished('perDay', limit);
}

/** Returns whether two limits belong to different published plans: the older one is dropped then. */
export function contradicts(name: WindowName, limit: number, other: number | undefined): boolean {
  if (other === undefined) return false;
  const plans = Object.values<Plan>(PLANS);
  const named = plans.find((plan) => plan[FIELDS[name]] === limit);
  const before = plans.find((plan) => plan[FIELDS[OTHER_WINDOW[name]]] === other);
  return named !== undefined && before !== undefined && named !== before;
}

/** Returns whether a reset, in seconds since the epoch, can be that of a calendar day. */
export function isOnTheHour(id: number): boolean {
  const seconds = id % 3_600;
  return seconds <= 2 || seconds >= 3_598;
}
