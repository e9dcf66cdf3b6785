/*
 * The rules for the calls of one key, written once: histories of real processes (check-plan.ts) and the models of the explorer are
 * held to them. Which call is over the plan, the double of the pet API says to both (pet-api/strict-plan.ts).
 */

/** A call, by the clock of its pause. */
export interface TimedCall {
  readonly sentAtMs: number;
  /** When its client got the response or gave it up; Infinity while it is under way. */
  readonly endedAtMs: number;
  /** Whether its response shows that the upstream serves the key: neither a 429, a 401, a 403 nor a 5xx. */
  readonly isServed: boolean;
}

/** What a 429 demands of the calls that are sent after `knownAtMs`. */
export interface Pause {
  readonly knownAtMs: number;
  /** When its Retry-After is over. */
  readonly untilMs: number;
}

/** Nothing is sent after a 429 until its Retry-After is over. */
export function isInPause({ knownAtMs, untilMs }: Pause, sentAtMs: number): boolean {
  return sentAtMs > knownAtMs && sentAtMs < untilMs;
}

/** Returns from when on the calls that are sent follow the pause. */
export function endOfPause({ knownAtMs, untilMs }: Pause): number {
  return Math.max(knownAtMs, untilMs);
}

/**
 * Whether one call at a time may go at this moment, since none that followed the pause was served.
 *
 * @param followers the calls that have followed the pause before.
 */
export function isProbing(sentAtMs: number, followers: readonly TimedCall[]): boolean {
  return !followers.some(({ endedAtMs, isServed }) => isServed && endedAtMs <= sentAtMs);
}

/** One call at a time follows a pause, until one is served. */
export function isBesideProbe(sentAtMs: number, followers: readonly TimedCall[]): boolean {
  return isProbing(sentAtMs, followers) && followers.some(({ endedAtMs }) => endedAtMs > sentAtMs);
}

/**
 * Whether a 429 belongs to the one before it: its call was sent before that was known. Both by one order of what happened, in time
 * or by numbers.
 */
export function isSameIncident(sentAt: number, knownAt: number): boolean {
  return sentAt <= knownAt;
}

interface Permits {
  /** With those without a response, which count until their leases end. */
  readonly sent: number;
  readonly returned?: number;
  /** Those that nobody got. */
  readonly leased?: number;
}

/** Each permit is sent, returned or leased. */
export function permitProblem(granted: number, { sent, returned = 0, leased = 0 }: Permits): string | undefined {
  return granted === sent + returned + leased
    ? undefined
    : `${granted} permits are counted, ${sent} were sent, ${returned} returned and ${leased} leased`;
}

/** `granted` only grows: of two accounts of one key, the one with fewer is the older. */
export function isOlder(granted: number, grantedBefore: number): boolean {
  return granted < grantedBefore;
}

/** Returns how many calls of a window one visitor of a process gets at most. */
export function maxOfVisitor(limit: number): number {
  return Math.ceil(limit / 2);
}
