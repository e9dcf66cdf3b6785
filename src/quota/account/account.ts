import { SECOND_MS } from '../../common/plan.ts';
import type { CallResponse, RateLimited } from './call-response.ts';
import { correct } from './correct.ts';
import { guessDayEnd } from './doubt.ts';
import type { Account, Permit } from './format.ts';
import { learn, paceLeft, paceWaitMs, unlearn } from './lessons.ts';
import { nameWindow } from './named-window.ts';
import type { NamedWindow } from './named-window.ts';
import { passTime } from './pass-time.ts';
import { WINDOW_NAMES, add, countIn, newSlots, slotFor } from './slots.ts';
import type { WindowName } from './slots.ts';
import { beginTrust, loseTrial, proveTrial, returnTrial, takeTrials, trialsLeft } from './trust.ts';
import { WindowAt, inFlight } from './window.ts';
import type { Moment } from './window.ts';
import {
  FIRST_BAN_PAUSE_MS,
  FIRST_PAUSE_MS,
  MAX_BAN_PAUSE_MS,
  MAX_DOUBLED_PAUSE_MS,
  MAX_PAUSE_MS,
  MAX_PROBE_PAUSE_MS,
} from './times.ts';

/**
 * Counts the calls of one API key. The functions change the account in place and have no other effect. Times are milliseconds of
 * the store's clock.
 *
 * An own permit is used from its grant until a whole window after the response to its call: that is safe against any window,
 * fixed or sliding, whatever the clocks say. It lies in the slot of time in which it is free again. Until the response it lies in
 * the slot of its lease, so that a call that vanishes is free again too.
 *
 * Invariants, with w for a window:
 * 1. Own: if no other client uses the key, w.total is at least the calls that the upstream has counted in w plus those in flight.
 *    No header of the same window lowers it. A header of the next one, whose reset is a whole window later than the told one, drops
 *    what was counted before that window began.
 * 2. Foreign: what a header counts above w.total. It is void at the told reset, and a header alone never holds a key for longer than
 *    ten minutes.
 * 3. Trust: a call goes beyond the count only where a reset may have freed it or nobody has said the limit, and then by trust.
 * 4. While paused nothing is granted, and trust begins anew afterwards: one call at a time over all replicas until one succeeds.
 * 5. `granted` only grows: of two accounts of one key, the one with fewer is the older.
 * 6. Permits granted = sent + refunded + leased.
 */

export interface Taken {
  readonly permits: readonly Permit[];
  /** Why fewer permits were granted than wanted. */
  readonly wait?: { readonly by: WaitsFor; readonly waitMs: number } | undefined;
}

type WaitsFor = 'no-contact' | 'pace' | 'paused' | 'probe' | WindowName;

/** @param isTrusted whether no unknown calls may have been made before; otherwise the first calls go by trust. */
export function newAccount(epoch: string, isTrusted = false): Account {
  const account: Account = {
    epoch,
    isProven: false,
    granted: 0,
    lastGrantAtMs: 0,
    minute: newSlots(),
    day: newSlots(),
    pause: { untilMs: 0, incidents: 0, incidentAtMs: 0, isBan: false },
  };
  if (!isTrusted) beginTrust(account, 0);
  return account;
}

/** Grants up to `wanted` permits. */
export function take(account: Account, wanted: number, moment: Moment): Taken {
  const { nowMs, rules } = moment;
  const { pause } = account;
  passTime(account, moment);

  // 1. Nothing is granted during a pause, or while a window is full by the count and there is nothing to try.
  if (nowMs < pause.untilMs) return noPermits('paused', pause.untilMs - nowMs);
  let max = wanted;
  for (const name of WINDOW_NAMES) {
    const window = new WindowAt(account, name, moment);
    const { beyond, left } = window;
    if (left <= 0 && beyond === 0) return noPermits(name, window.waitFor(1));
    max = Math.min(max, left > 0 ? left : beyond);
    goBeyond(account, name, { isBeyond: left <= 0, nowMs });
  }

  // 2. As many as trust, the pace and an offline share allow.
  const flying = inFlight(account, nowMs);
  const { offlineShare } = rules;
  max = Math.min(max, trialsLeft(account, nowMs), paceLeft(account, nowMs));
  if (offlineShare) max = Math.min(max, Math.max(0, offlineShare.maxInFlight - flying));

  // 3. The permits are counted until the end of their lease.
  const permits = grant(account, max, flying, moment);
  return max < wanted ? { permits, wait: waitForMore(account, moment) } : { permits };
}

/** Trust begins anew where calls begin to go beyond the count. */
function goBeyond(account: Account, name: WindowName, { isBeyond, nowMs }: { isBeyond: boolean; nowMs: number }): void {
  const window = account[name];
  // After a 429 the probe is the one call that may go.
  const isNew = isBeyond && window.beyondSinceMs === undefined && account.pause.incidents === 0;
  if (isNew) beginTrust(account, nowMs);
  window.beyondSinceMs = isBeyond ? (window.beyondSinceMs ?? nowMs) : undefined;
}

function grant(account: Account, count: number, flying: number, moment: Moment): Permit[] {
  if (count <= 0) return [];
  const { nowMs, rules } = moment;
  const permit: Permit = {
    epoch: account.epoch,
    grantedAtMs: nowMs,
    settledBefore: account.granted - flying,
    minuteSlot: slotFor('minute', nowMs + rules.leaseMs),
    daySlot: slotFor('day', nowMs + rules.leaseMs),
    isTrial: account.trust !== undefined,
    isProbe: account.trust !== undefined && account.pause.incidents > 0,
  };
  takeTrials(account, count, moment);
  account.granted += count;
  account.lastGrantAtMs = nowMs;
  add(account.minute, permit.minuteSlot, count);
  add(account.day, permit.daySlot, count);
  return Array.from({ length: count }, () => permit);
}

/** Returns why fewer permits were granted than wanted. */
function waitForMore(account: Account, moment: Moment): Taken['wait'] {
  const { nowMs } = moment;
  const { trust } = account;
  if (trust && trialsLeft(account, nowMs) === 0) return { by: 'probe', waitMs: trust.againAtMs - nowMs };
  if (paceLeft(account, nowMs) === 0) return { by: 'pace', waitMs: paceWaitMs(account, nowMs) };

  const [minute, day] = WINDOW_NAMES.map((name) => new WindowAt(account, name, moment)) as [WindowAt, WindowAt];
  const window = day.left <= minute.left ? day : minute;
  // The calls in flight of an offline share end at any time.
  return { by: window.name, waitMs: window.left > 0 ? SECOND_MS : window.waitFor(1) };
}

function noPermits(by: WaitsFor, waitMs: number): Taken {
  return { permits: [], wait: { by, waitMs } };
}

/** Takes back a permit whose call was not sent. */
export function refund(account: Account, permit: Permit): void {
  if (permit.epoch !== account.epoch) return;
  add(account.minute, permit.minuteSlot, -1);
  add(account.day, permit.daySlot, -1);
  returnTrial(account, permit);
}

/** Leaves the permit to the end of its lease: without a response, the upstream may still count the call. */
export function lose(account: Account, permit: Permit, moment: Moment): void {
  loseTrial(account, permit, moment);
  pauseAgain(account, permit, moment.nowMs);
}

/** Settles a permit by a 401 or a 403 that is no ban. */
export function reject(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  settle(account, permit, response, moment);
  returnTrial(account, permit);
}

/** Settles a permit by a 5xx or what is not the upstream's own: it may have counted the call, and may allow another or not. */
export function fail(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  reject(account, permit, response, moment);
  pauseAgain(account, permit, moment.nowMs);
}

/** Settles a permit by a response that is neither a 429 nor a 5xx. */
export function succeed(account: Account, permit: Permit, response: CallResponse, moment: Moment): void {
  settle(account, permit, response, moment);
  proveTrial(account, permit);
  unlearn(account, moment);

  const { pause } = account;
  const isSentBeforePause = permit.grantedAtMs <= pause.incidentAtMs;
  if (isSentBeforePause || permit.epoch !== account.epoch) return;
  pause.incidents = 0;
  pause.isBan = false;
}

/** Pauses the key after a 429, or a 401 or 403 that may be a ban. Trust begins anew after the pause. */
export function pauseKey(account: Account, permit: Permit, response: RateLimited, moment: Moment): void {
  const told = settle(account, permit, response, moment);
  const { nowMs } = moment;
  const { pause } = account;

  // A call that was granted before the last incident belongs to it.
  const isEcho = permit.grantedAtMs <= pause.incidentAtMs;
  if (!response.mayBeBanned) learn(account, permit, { told, retryAfterMs: response.retryAfterMs, isEcho }, moment);

  const incidents = isEcho ? Math.max(0, pause.incidents - 1) : pause.incidents;
  const backoffMs = response.mayBeBanned
    ? banMs(incidents)
    : Math.min(FIRST_PAUSE_MS * 2 ** incidents, MAX_DOUBLED_PAUSE_MS);
  // A reset outvotes no Retry-After, but for one that was too short.
  const mayTellReset = response.retryAfterMs === 0 || incidents > 0;
  const resetMs = mayTellReset && told?.remaining === 0 ? account[told.name].reset?.byMs : undefined;
  const waitMs = Math.max(response.retryAfterMs, backoffMs, (resetMs ?? 0) - nowMs) + SECOND_MS;

  pause.untilMs = Math.max(pause.untilMs, nowMs + Math.min(waitMs, MAX_PAUSE_MS));
  beginTrust(account, nowMs);
  // A day whose own header shows room has not ended.
  const hasDayRoom = told?.name === 'day' && told.remaining > 0;
  if (!response.mayBeBanned && !hasDayRoom) guessDayEnd(account, nowMs, response.retryAfterMs);
  if (isEcho) return;
  pause.incidents += 1;
  pause.incidentAtMs = nowMs;
  pause.isBan = response.mayBeBanned;
}

/** Returns the pause for a probable ban. A ban follows a 429, which is the first incident. */
function banMs(incidents: number): number {
  return Math.min(FIRST_BAN_PAUSE_MS * 2 ** Math.max(0, incidents - 1), MAX_BAN_PAUSE_MS);
}

/** An overloaded upstream mixes 429 with 5xx and silence, so a probe after a 429 that fails is another incident. */
function pauseAgain(account: Account, permit: Permit, nowMs: number): void {
  const { pause } = account;
  const isOver = pause.incidents === 0 || permit.grantedAtMs <= pause.incidentAtMs;
  if (!permit.isProbe || isOver) return;

  const waitMs = Math.min(FIRST_PAUSE_MS * 2 ** pause.incidents + SECOND_MS, MAX_PROBE_PAUSE_MS);
  pause.untilMs = Math.max(pause.untilMs, nowMs + waitMs);
  beginTrust(account, nowMs);
  pause.incidents += 1;
  pause.incidentAtMs = nowMs;
}

/**
 * Moves a permit from its lease to the time of its response, and corrects the counts by its headers.
 *
 * @returns what they say of a window.
 */
function settle(account: Account, permit: Permit, response: CallResponse, moment: Moment): NamedWindow | undefined {
  const { nowMs, rules } = moment;
  passTime(account, moment);

  for (const name of WINDOW_NAMES) {
    const leased = name === 'minute' ? permit.minuteSlot : permit.daySlot;
    const isLeased = permit.epoch === account.epoch && countIn(account[name], leased) > 0;
    if (!isLeased) continue;
    add(account[name], leased, -1);
    add(account[name], slotFor(name, nowMs), 1);
  }

  if (!response.headers) return undefined;
  const told = nameWindow(response.headers, account, permit, rules.plan);
  if (told) correct(account, permit, { ...told, tookMs: response.tookMs }, moment);
  else for (const name of WINDOW_NAMES) account[name].toldAtMs = nowMs;
  return told;
}
