import { PLANS, isPublished, planName, planWith } from '../../common/plan.ts';
import type { AssumedPlan, Plan } from '../../common/plan.ts';
import type { Account, WindowCount } from './format.ts';
import type { WindowName } from './slots.ts';

/** Rules for all accounts of a process. */
export interface AccountRules {
  /** The plan of a key before the first headers. */
  readonly plan: AssumedPlan;
  /** The part of each window that petql's own calls may use, in percent. Default 100. */
  readonly planShare?: number;
  /** When this process started, by the store's clock. */
  readonly startedAtMs: number;
  /** After so many milliseconds a call without a response counts as made, and its window begins: twice the upstream timeout, and a minute. */
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
  readonly limits: WindowLimits;
  /** How many calls may be in flight. */
  readonly maxInFlight: number;
}

export type WindowLimits = Readonly<Record<WindowName, number>>;

type ToldLimit = Pick<WindowCount, 'isSure' | 'limit'>;

/** The limits in an account: from headers and from configuration. */
export interface KnownLimits {
  readonly minute: ToldLimit;
  readonly day: ToldLimit;
  readonly configured?: Account['configured'];
}

const LIMIT_FIELDS = { minute: 'perMinute', day: 'perDay' } as const;
export const OTHER_WINDOW = { minute: 'day', day: 'minute' } as const;

/** Returns what the limit of a window would be without its own header. */
export function assumedLimit(account: KnownLimits, name: WindowName, assumed: AssumedPlan): number {
  return limitsOf({ ...account, [name]: {} }, assumed)[name];
}

/** Returns the limits of the plan: in headers, else configured, else of the plan that one window names; at first Free's. */
export function limitsOf({ minute, day, configured }: KnownLimits, assumed: AssumedPlan): WindowLimits {
  const plan = configured ?? assumed;
  const isKnown = configured !== undefined || assumed.known;
  return { minute: minute.limit ?? beside('day', day.limit), day: day.limit ?? beside('minute', minute.limit) };

  /** Returns the limit of the other window beside this one. */
  function beside(name: WindowName, limit: number | undefined): number {
    const field = LIMIT_FIELDS[name];
    const isOfPlan = limit === undefined || plan[field] === limit || (isKnown && !isPublished(field, limit));
    return (isOfPlan ? plan : planWith(field, limit))[LIMIT_FIELDS[OTHER_WINDOW[name]]];
  }
}

/** Returns which limits are known rather than assumed: sure by headers, configured, or of the published plan that a header names. */
export function knownWindows({ configured, minute, day }: KnownLimits): Readonly<Record<WindowName, boolean>> {
  const isKnown = (told: ToldLimit, name: WindowName, beside: ToldLimit) => {
    if (told.limit !== undefined) return told.isSure === true;
    if (configured !== undefined) return true;
    return (
      beside.isSure === true &&
      beside.limit !== undefined &&
      isPublished(LIMIT_FIELDS[OTHER_WINDOW[name]], beside.limit)
    );
  };
  return { minute: isKnown(minute, 'minute', day), day: isKnown(day, 'day', minute) };
}

/** Returns the plan's name, or undefined while the plan is a guess. */
export function knownPlanName(account: KnownLimits, assumed: AssumedPlan): string | undefined {
  const known = knownWindows(account);
  if (!known.minute || !known.day) return undefined;
  const { minute, day } = limitsOf(account, assumed);
  return planName({ perMinute: minute, perDay: day });
}

/** Returns whether a limit is that of one published window, so that it cannot mean another one. */
export function isOneWindows(limit: number): boolean {
  return isPublished('perMinute', limit) !== isPublished('perDay', limit);
}

/** Returns whether two limits belong to different published plans: the older one is dropped then. */
export function contradicts(name: WindowName, limit: number, other: number | undefined): boolean {
  if (other === undefined) return false;
  const plans = Object.values<Plan>(PLANS);
  const named = plans.find((plan) => plan[LIMIT_FIELDS[name]] === limit);
  const before = plans.find((plan) => plan[LIMIT_FIELDS[OTHER_WINDOW[name]]] === other);
  return named !== undefined && before !== undefined && named !== before;
}
