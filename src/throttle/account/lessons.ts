import type { RateLimited } from './call-response.ts';
import { endDoubt } from './doubt.ts';
import type { Account, Permit, WindowCount } from './format.ts';
import { isOneWindows } from './limits.ts';
import type { NamedWindow } from './named-window.ts';
import { WINDOW_NAMES, countAfter, slotFor } from './slots.ts';
import type { WindowName } from './slots.ts';
import { WindowAt } from './window.ts';
import type { Moment } from './window.ts';

/** A limit that a 429 has lowered holds for so long: a wrong one costs four 429s a day. */
const LOWERED_MS = 21_600_000;
/** What calls beyond a limit that nobody has said have found out holds for a week. */
const FOUND_MS = 604_800_000;
/** No plan allows fewer calls a minute. */
const MIN_LIMIT = 10;
/** A longer Retry-After is a minute's, and a far longer one is a day's. */
const BRIEF_MS = 10_000;
const FAR_MS = 120_000;

/** In so long the pace doubles: half of what a hidden limit allows becomes all of it. */
const PACE_DOUBLES_MS = 120_000;
/** Silence proves nothing: between two calls it grows for no longer than this. */
const MAX_IDLE_MS = 60_000;
/** Fewer calls a second meet no such limit, and more than these are as good as none. */
const MIN_CALLS = 4;
const MAX_PACE = 1_000;
const SECOND_MS = 1_000;

interface Lesson extends Pick<RateLimited, 'retryAfterMs'> {
  /** What its headers say of a window. */
  readonly told: NamedWindow | undefined;
  /** Whether the call was granted before the last incident. */
  readonly isEcho: boolean;
}

/**
 * Learns from a 429 where petql's count had room: the limit of the window whose count is near is lowered, else the pace. Where a call
 * went beyond the count, that ends; where a header shows the calls of others or a smaller limit, nothing is to learn.
 */
export function learn(account: Account, permit: Permit, lesson: Lesson, moment: Moment): void {
  if (moment.rules.offlineShare || permit.epoch !== account.epoch) return;
  if (lesson.isEcho) return lowerAgain(account);
  const isAgain = account.pause.incidents > 0;
  const { nowMs } = moment;
  const beyond = mayBeFull(lesson, isAgain).filter(
    (name) => permit.grantedAtMs >= (account[name].beyondSinceMs ?? Infinity),
  );
  // A window that frees the next call at once is as good as none: calls came too fast.
  const isRush = callsLately(account, nowMs) >= MIN_CALLS;
  const isBriefRush = isRush && lesson.retryAfterMs <= BRIEF_MS && lesson.retryAfterMs > 0;
  for (const name of beyond) endBeyond(account, name, isBriefRush, moment);
  if (isAgain || (beyond.length > 0 && !isBriefRush)) return;
  if (isExplained(account, lesson, moment)) return;

  const suspect = suspectOf(lesson);
  if (isNear(account, suspect, lesson, moment) && !isBriefRush) {
    lower(account[suspect], new WindowAt(account, suspect, moment), LOWERED_MS, nowMs);
  } else if (isRush) account.pace = { perSecond: callsLately(account, nowMs) / 2, sinceMs: nowMs };
}

/** Returns the windows that may be full: after a short Retry-After no day is, unless the next call is refused too. */
function mayBeFull({ retryAfterMs, told }: Lesson, isAgain: boolean): readonly WindowName[] {
  if (told?.remaining === 0) return [told.name];
  return retryAfterMs > 0 && retryAfterMs <= FAR_MS && !isAgain ? ['minute'] : WINDOW_NAMES;
}

/** Calls that went beyond the count found its end: the reset freed a part only, or the limit is what they found. */
function endBeyond(account: Account, name: WindowName, isBriefRush: boolean, moment: Moment): void {
  const window = account[name];
  const at = new WindowAt(account, name, moment);
  if (at.hasReset) endDoubt(window, moment.nowMs);
  else if (isBriefRush) return;
  else lower(window, at, FOUND_MS, moment.nowMs);
  window.beyondSinceMs = undefined;
}

function isExplained(account: Account, { told }: Lesson, moment: Moment): boolean {
  const isOver = (name: WindowName) => {
    const { foreign, limit, own } = new WindowAt(account, name, moment);
    return account[name].beyondSinceMs === undefined && own + foreign > limit;
  };
  if (WINDOW_NAMES.some(isOver)) return true;
  return told?.remaining === 0 && account[told.name].foreign !== undefined;
}

/** Returns the window that may have caused it: a day's Retry-After is long. */
function suspectOf({ retryAfterMs, told }: Lesson): WindowName {
  if (told?.remaining === 0) return told.name;
  return retryAfterMs > FAR_MS ? 'day' : 'minute';
}

/**
 * Whether so much of the window is used that it may be the cause. A minute whose limit nobody has said may be any; where a header
 * seems to say it, with calls left, it has said another window's.
 */
function isNear(account: Account, name: WindowName, { retryAfterMs, told }: Lesson, moment: Moment): boolean {
  const { foreign, isKnown, limit, own } = new WindowAt(account, name, moment);
  if (2 * (own + foreign) >= limit) return true;
  const mayBeAny = name === 'minute' && (!isKnown || (told?.name === name && !isOneWindows(limit)));
  return mayBeAny && own >= MIN_LIMIT && retryAfterMs > BRIEF_MS;
}

/** The call was refused, so the limit is below what is counted. */
function lower(window: WindowCount, { foreign, limit, own }: WindowAt, lastsMs: number, nowMs: number): void {
  const counted = window.beyondSinceMs === undefined ? Math.min(limit, own + foreign) : own + foreign;
  window.lowered = { to: Math.max(1, counted - 1), sinceMs: nowMs, untilMs: nowMs + lastsMs };
}

/** Another call of the same incident was refused too. */
function lowerAgain(account: Account): void {
  for (const name of WINDOW_NAMES) {
    const { lowered } = account[name];
    if (lowered && lowered.sinceMs === account.pause.incidentAtMs) lowered.to = Math.max(1, lowered.to - 1);
  }
}

/** Returns how many calls went in a second lately, which may have just begun: with so many, the cause may be below the minute. */
function callsLately({ minute }: Account, nowMs: number): number {
  const [lastSecond, lastTwo] = [1, 2].map((ago) => countAfter(minute, slotFor('minute', nowMs - ago * SECOND_MS)));
  return Math.max(lastSecond ?? 0, (lastTwo ?? 0) / 2);
}

/** A call is made: the pace has not grown in the time without calls before it. */
export function keepPace(account: Account, nowMs: number): void {
  if (account.pace) account.pace.sinceMs += idleMs(account, nowMs);
}

function idleMs({ lastGrantAtMs, pace }: Account, nowMs: number): number {
  return Math.max(0, nowMs - Math.max(lastGrantAtMs, pace?.sinceMs ?? 0) - MAX_IDLE_MS);
}

/** Returns the time between two calls; 0 where no pace is kept. */
export function paceIntervalMs(account: Account, nowMs: number): number {
  const { pace } = account;
  if (!pace) return 0;
  const grownMs = Math.max(0, nowMs - idleMs(account, nowMs) - pace.sinceMs);
  const perSecond = pace.perSecond * 2 ** (grownMs / PACE_DOUBLES_MS);
  return perSecond < MAX_PACE ? SECOND_MS / perSecond : 0;
}

/** Returns how long the next call waits for the pace. */
export function paceWaitMs(account: Account, nowMs: number): number {
  const intervalMs = paceIntervalMs(account, nowMs);
  return intervalMs === 0 ? 0 : Math.max(0, account.lastGrantAtMs + intervalMs - nowMs);
}

/** Returns how many calls the pace allows now. */
export function paceLeft(account: Account, nowMs: number): number {
  if (paceIntervalMs(account, nowMs) === 0) return Infinity;
  return paceWaitMs(account, nowMs) === 0 ? 1 : 0;
}
