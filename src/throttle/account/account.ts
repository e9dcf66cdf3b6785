import { OTHER_WINDOW, contradicts, windowOfHeaders } from './limits.ts';
import type { AccountRules } from './limits.ts';
import {
  MAX_PAUSE_MS,
  MAX_PROBE_PAUSE_MS,
  WINDOWS,
  WINDOW_NAMES,
  add,
  countIn,
  dropOldest,
  freeInMs,
  slotFor,
  hasReset,
  inFlight,
  keepUntilReset,
  leftOf,
  newWindow,
  passTime,
  resetInMs,
} from './windows.ts';
import type { Account, Permit, WindowName } from './format.ts';
import type { HeaderLimits } from './header-limits.ts';

/**
 * Counts the calls of one API key; the upstream's headers only correct the count. The functions change the account in place
 * and have no other effect. Times are milliseconds of the store's clock.
 *
 * A permit is used from its grant until a whole window after the response to its call: that is safe against any window,
 * fixed or sliding, whatever the clocks say. It lies in the slot of time in which it is free again. Until the response it lies in
 * the slot of its lease, so that a call that vanishes is free again too.
 *
 * Invariants, with w.total for the used permits of a window w:
 * 1. If no other client uses the key, w.total is at least the calls that the upstream has counted in w plus those in flight.
 * 2. A header lowers w.total to `used in the header + uncounted` at the lowest. The upstream counted a permit that was settled
 *    before a call was sent before that call, so its response lacks the others only. Example: the header says 40 used, and
 *    3 permits were granted since: the count is 40 to 43. The oldest permits are dropped first, which keeps 1.
 * 3. A probe is safe: if a known reset is over and no permit was granted since, one call at least has left the window.
 * 4. While paused nothing is granted; half-open, one probe at a time over all replicas.
 * 5. `granted` only grows: of two accounts of one key, the one with fewer is the older.
 * 6. Permits granted = sent + refunded + leased.
 */

export interface Taken {
  readonly permits: readonly Permit[];
  /** Why fewer permits were granted than wanted. */
  readonly wait?: { readonly by: 'no-contact' | 'paused' | 'probe' | WindowName; readonly waitMs: number } | undefined;
}

/** The time of a change, and the rules for it. */
export interface Moment {
  readonly nowMs: number;
  readonly rules: AccountRules;
}

/** The rate limits in a response, and how long it took. */
export interface CallResponse {
  /** Undefined where its headers are missing or invalid. */
  readonly headers: HeaderLimits | undefined;
  readonly tookMs: number;
}

/** A 429, or what looks like a ban. */
export interface RateLimited extends CallResponse {
  /** Retry-After, or 0. */
  readonly retryAfterMs: number;
  /** Whether it is a 401 or 403 to a probe after a 429. */
  readonly mayBeBanned: boolean;
}

/** Resets and Dates are whole seconds. */
const SECOND_MS = 1_000;
const MIN_BACKOFF_MS = 5_000;
const MAX_BACKOFF_MS = 900_000;
const MIN_BAN_MS = 60_000;
const MAX_BAN_MS = 3_600_000;
const AFTER_LOST_PROBE_MS = 1_000;

/** @param isHalfOpen whether unknown calls may have been made before; the first call is a probe then. */
export function newAccount(epoch: string, isHalfOpen: boolean): Account {
  return {
    epoch,
    isProven: false,
    granted: 0,
    lastGrantAtMs: 0,
    minute: newWindow(),
    day: newWindow(),
    isPlanKnown: false,
    successes: { count: 0, sinceMs: 0 },
    pause: { isHalfOpen, untilMs: 0, probeUntilMs: 0, incidents: 0, incidentAtMs: 0, isBan: false },
  };
}

/** Grants up to `wanted` permits. */
export function take(account: Account, wanted: number, moment: Moment): Taken {
  const { nowMs, rules } = moment;
  const { pause } = account;
  passTime(account, nowMs, rules);

  // 1. Nothing is granted during a pause, or while a window is exhausted and no reset has freed a call of it.
  if (nowMs < pause.untilMs) return noPermits('paused', pause.untilMs - nowMs);
  const left = leftOf(account, rules);
  for (const name of WINDOW_NAMES) {
    const isExhausted = left[name] <= 0 && !hasReset(account, name, nowMs);
    if (isExhausted) return noPermits(name, freeInMs(account, name, nowMs, -left[name]));
  }

  // 2. One probe at a time follows a pause, and a reset that freed an unknown number of calls.
  const isProbe = pause.isHalfOpen || left.minute <= 0 || left.day <= 0;
  if (isProbe && nowMs < pause.probeUntilMs) return noPermits('probe', pause.probeUntilMs - nowMs);

  // 3. Otherwise the rest of both windows is granted.
  const flying = inFlight(account, nowMs);
  const max = isProbe ? 1 : Math.min(left.minute, left.day, (rules.offlineShare?.maxInFlight ?? Infinity) - flying);
  const granted = Math.max(0, Math.min(wanted, max));
  const permit = newPermit(account, flying, isProbe, moment);

  // 4. The permits are counted until the end of their lease.
  account.granted += granted;
  add(account.minute, permit.minuteSlot, granted);
  add(account.day, permit.daySlot, granted);
  if (isProbe) pause.probeUntilMs = nowMs + rules.probeMs;
  else if (granted > 0) account.lastGrantAtMs = nowMs;

  const permits = Array.from({ length: granted }, () => permit);
  return granted < wanted ? { permits, wait: waitForMore(account, nowMs, rules) } : { permits };
}

function newPermit(account: Account, flying: number, isProbe: boolean, { nowMs, rules }: Moment): Permit {
  return {
    epoch: account.epoch,
    grantedAtMs: nowMs,
    settledBefore: account.granted - flying,
    successesBefore: account.successes.count,
    minuteSlot: slotFor('minute', nowMs + rules.leaseMs),
    daySlot: slotFor('day', nowMs + rules.leaseMs),
    isProbe,
    isAfter429: isProbe && account.pause.incidents > 0,
  };
}

/** Returns why fewer permits were granted than wanted. */
function waitForMore(account: Account, nowMs: number, rules: AccountRules): Taken['wait'] {
  const { pause } = account;
  if (nowMs < pause.probeUntilMs) return { by: 'probe', waitMs: pause.probeUntilMs - nowMs };

  const left = leftOf(account, rules);
  const name = left.day <= left.minute ? 'day' : 'minute';
  // The calls in flight of an offline share end at any time.
  return { by: name, waitMs: left[name] > 0 ? SECOND_MS : freeInMs(account, name, nowMs, -left[name]) };
}

function noPermits(by: 'paused' | 'probe' | WindowName, waitMs: number): Taken {
  return { permits: [], wait: { by, waitMs } };
}

/** Takes back a permit whose call was not sent. */
export function refund(account: Account, permit: Permit): void {
  if (permit.epoch !== account.epoch) return;
  add(account.minute, permit.minuteSlot, -1);
  add(account.day, permit.daySlot, -1);
  if (permit.isProbe) account.pause.probeUntilMs = 0;
}

/** Leaves the permit to the end of its lease: without a response, the upstream may still count the call. */
export function lose(account: Account, permit: Permit, { nowMs, rules }: Moment): void {
  if (permit.isProbe) {
    const { pause } = account;
    // Only after a reset may such a probe have been one call too many.
    const lost = pause.isHalfOpen ? 0 : (pause.lostProbes ?? 0);
    const firstMs = Math.min(AFTER_LOST_PROBE_MS, rules.probeMs);
    pause.probeUntilMs = nowMs + Math.min(firstMs * 2 ** lost, MAX_PROBE_PAUSE_MS);
    pause.lostProbes = lost + 1;
  }
  pauseAgain(account, permit, nowMs);
}

/** Settles a permit by a 5xx: the upstream may have counted the call, and whether it allows another is not known. */
export function fail(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  settleAnswered(account, permit, response, moment);
  pauseAgain(account, permit, moment.nowMs);
}

/** Settles a permit by a response that is neither a 429 nor a 5xx. */
export function succeed(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  settleAnswered(account, permit, response, moment);
  // A response without headers may be a proxy's, which the upstream has not counted.
  if (response.headers) account.successes.count += 1;

  const { pause } = account;
  const isSentBeforePause = permit.grantedAtMs <= pause.incidentAtMs;
  if (isSentBeforePause || permit.epoch !== account.epoch) return;
  pause.isHalfOpen = false;
  pause.incidents = 0;
  pause.isBan = false;
  pause.probeUntilMs = 0;
}

/** Pauses the key after a 429, or a 401 or 403 that may be a ban. A probe follows the pause. */
export function pauseKey(account: Account, permit: Permit, response: RateLimited, moment: Moment): void {
  settle(account, permit, response, moment);
  const { nowMs, rules } = moment;
  const { pause } = account;

  // What looked like a minute is none.
  if (account.minuteGuess && account.minuteGuess.limit === account.minute.limit) {
    account.minute.limit = undefined;
    account.minuteGuess = undefined;
  }

  // A call that was granted before the last incident belongs to it.
  const isEcho = permit.grantedAtMs <= pause.incidentAtMs;
  const incidents = isEcho ? Math.max(0, pause.incidents - 1) : pause.incidents;

  const backoffMs = response.mayBeBanned ? banMs(incidents) : Math.min(MIN_BACKOFF_MS * 2 ** incidents, MAX_BACKOFF_MS);
  const left = leftOf(account, rules);
  const resetsMs = WINDOW_NAMES.map((name) => (left[name] <= 0 ? resetInMs(account, name, nowMs) : 0));
  const waitMs = Math.min(Math.max(response.retryAfterMs, backoffMs, ...resetsMs) + SECOND_MS, MAX_PAUSE_MS);

  pause.untilMs = Math.max(pause.untilMs, nowMs + waitMs);
  pause.isHalfOpen = true;
  pause.probeUntilMs = 0;
  if (isEcho) return;
  pause.incidents += 1;
  pause.incidentAtMs = nowMs;
  pause.isBan = response.mayBeBanned;
}

/** Returns the pause for a probable ban. A ban follows a 429, which is the first incident. */
function banMs(incidents: number): number {
  return Math.min(MIN_BAN_MS * 2 ** Math.max(0, incidents - 1), MAX_BAN_MS);
}

/** An overloaded upstream mixes 429 with 5xx and silence, so a probe after a 429 that fails is another incident. */
function pauseAgain(account: Account, permit: Permit, nowMs: number): void {
  const { pause } = account;
  const isOver = pause.incidents === 0 || permit.grantedAtMs <= pause.incidentAtMs;
  if (!permit.isAfter429 || isOver) return;

  const waitMs = Math.min(MIN_BACKOFF_MS * 2 ** pause.incidents + SECOND_MS, MAX_PROBE_PAUSE_MS);
  pause.untilMs = Math.max(pause.untilMs, nowMs + waitMs);
  pause.probeUntilMs = 0;
  pause.incidents += 1;
  pause.incidentAtMs = nowMs;
}

/** Settles a permit of a call that the upstream may have counted. */
function settleAnswered(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  settle(account, permit, response, moment);
  if (permit.isProbe) account.lastGrantAtMs = Math.max(account.lastGrantAtMs, permit.grantedAtMs);
}

/** Moves a permit from its lease to the time of its response, and corrects the counts by its headers. */
export function settle(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  const { nowMs, rules } = moment;
  passTime(account, nowMs, rules);

  for (const name of WINDOW_NAMES) {
    const leased = name === 'minute' ? permit.minuteSlot : permit.daySlot;
    const isLeased = permit.epoch === account.epoch && countIn(account[name], leased) > 0;
    if (!isLeased) continue;
    add(account[name], leased, -1);
    add(account[name], slotFor(name, nowMs), 1);
  }

  if (permit.isProbe) Object.assign(account.pause, { probeUntilMs: 0, lostProbes: undefined });
  correct(account, permit, response, moment);
}

function correct(account: Account, permit: Permit, { headers, tookMs }: CallResponse, { nowMs, rules }: Moment): void {
  if (!headers) return;
  const { name, isCertain, minuteGuess } = windowOfHeaders(headers, permit, account, rules);
  const window = account[name];
  const { reset } = headers;

  // 1. Headers count the calls of all replicas, so they correct no offline share.
  if (rules.offlineShare) {
    if (headers.remaining < 2 * rules.offlineShare.divisor) pauseUntilReset(account, name, headers, nowMs);
    return;
  }

  // 2. A response of an earlier window is too old.
  if (reset && window.reset && reset.id < window.reset.id - 1) return;

  // 3. The limit in the header counts from now on.
  const other = account[OTHER_WINDOW[name]];
  if (contradicts(name, headers.limit, other.limit)) other.limit = undefined;
  window.limit = headers.limit;
  if (isCertain) account.isPlanKnown = true;
  if (minuteGuess) account.minuteGuess = minuteGuess;
  else if (isCertain && name === 'minute') account.minuteGuess = undefined;

  // 4. The count moves between the bounds of the header (invariant 2).
  const used = Math.max(0, headers.limit - headers.remaining);
  const uncounted = account.granted - permit.settledBefore - 1;
  const excess = window.total - used - uncounted;
  if (excess > 0 && permit.epoch === account.epoch) dropOldest(window, excess);
  const missing = used - window.total;
  if (missing > 0) add(window, slotFor(name, nowMs), missing);

  // 5. Permits of other clients are free at the reset.
  if (!reset) return;
  if (!window.reset || window.reset.id < reset.id) {
    const atMs = nowMs + reset.inMs;
    window.reset = { fromMs: atMs - tookMs - SECOND_MS, byMs: atMs + SECOND_MS, id: reset.id };
  }
  keepUntilReset(window, name, window.reset);
}

/** Ends an offline share when little is left: without Redis, other replicas may take the rest. */
function pauseUntilReset(account: Account, name: WindowName, headers: HeaderLimits, nowMs: number): void {
  const inMs = headers.reset?.inMs ?? WINDOWS[name].lengthMs;
  account.pause.untilMs = Math.max(account.pause.untilMs, nowMs + Math.min(inMs + SECOND_MS, MAX_PAUSE_MS));
}
