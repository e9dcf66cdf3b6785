import { SECOND_MS } from '../../common/plan.ts';
import type { RateLimited } from './call-response.ts';
import { endDoubt } from './doubt.ts';
import type { Account, Lesson, Permit } from './format.ts';
import { isOneWindows } from './limits.ts';
import type { NamedWindow } from './named-window.ts';
import { WINDOWS, WINDOW_NAMES, countAfter, slotFor } from './slots.ts';
import type { WindowName } from './slots.ts';
import { beginTrust } from './trust.ts';
import { WindowAt, inFlight, isActive, isLapsed, ownCount } from './window.ts';
import type { Moment } from './window.ts';
import { BRIEF_MS, FAR_MS, FIRST_LESSON_MS, LESSON_REMEMBERED_MS, MAX_LESSON_MS } from './times.ts';

/** 429s at counts that differ by so much are one lesson. */
const ALIKE_SHARE = 0.1;
const ALIKE_CALLS = 2;
/** A 429 while its header leaves so much of the window is of another cause, the first time. */
const SHOWN_SHARE = 0.1;
/** No plan allows fewer calls a minute. */
const MIN_LIMIT = 10;

/** Of calls at once, so many have worked at least: evenly spaced, they find the rest. */
const PACE_SHARE = 0.75;
/** Fewer calls a second meet no limit below the minute. */
const MIN_CALLS = 4;
const SECONDS_A_MINUTE = 60;

interface RefusedCall extends Pick<RateLimited, 'retryAfterMs'> {
  /** What its headers say of a window. */
  readonly told: NamedWindow | undefined;
  /** Whether the call was granted before the last incident. */
  readonly isEcho: boolean;
}

/** What a 429 is, beside its headers: whether calls had come fast, and whether its own header leaves calls of the suspect. */
interface Signs {
  readonly suspect: WindowName;
  /** Calls in a second lately. */
  readonly lately: number;
  readonly isRush: boolean;
  /** Whether they came too fast: a window that frees the next call at once is as good as none. */
  readonly isBriefRush: boolean;
  readonly isShown: boolean;
}

/**
 * Learns from a 429 where petql's count had room: the limit of the window whose count is near, else the pace. Where a call went beyond
 * the count or a lesson, that ends; where a header shows the calls of others or a smaller limit, no limit is to learn.
 */
export function learn(account: Account, permit: Permit, refused: RefusedCall, moment: Moment): void {
  if (moment.rules.offlineShare || permit.epoch !== account.epoch || refused.isEcho) return;
  const isAgain = account.pause.incidents > 0;
  const { nowMs } = moment;
  const signs = signsOf(account, refused, nowMs);
  const { isBriefRush, isRush, isShown, suspect } = signs;

  // 1. What went beyond a lesson or the count has found its end.
  const isTooFast = permit.grantedAtMs >= (account.fasterSinceMs ?? Infinity);
  if (account.paceLesson && isTooFast) account.paceLesson = confirmed(account.paceLesson, nowMs);
  account.fasterSinceMs = undefined;
  const beyond = mayBeFull(refused, isAgain).filter(
    (name) => permit.grantedAtMs >= (account[name].beyondSinceMs ?? Infinity),
  );
  if (!(isBriefRush && isShown)) for (const name of beyond) endBeyond(account, name, isBriefRush, moment);
  if (isAgain || isTooFast || (beyond.length > 0 && !isBriefRush)) return;

  // 2. Others have used what there was.
  if (isExplained(account, refused, moment)) return foresee(account, refused, nowMs);

  // 3. One 429 teaches one thing, the count before the pace.
  if (!isBriefRush && isNear(account, suspect, refused, moment)) learnCount(account, signs, moment);
  else if (isRush) learnPace(account, signs, moment);
}

function signsOf(account: Account, refused: RefusedCall, nowMs: number): Signs {
  const suspect = suspectOf(refused);
  const { retryAfterMs, told } = refused;
  const isShown = told?.name === suspect && told.isSure && told.remaining >= SHOWN_SHARE * told.limit;
  const lately = callsLately(account, nowMs);
  const isRush = lately >= Math.min(MIN_CALLS, activePace(account, nowMs));
  const isBriefRush = isRush && retryAfterMs <= BRIEF_MS && (retryAfterMs > 0 || isShown);
  return { suspect, lately, isRush, isBriefRush, isShown };
}

/** The limit is that of the calls which have surely worked, and half of all at least. */
function learnCount(account: Account, { isShown, suspect }: Signs, moment: Moment): void {
  const { nowMs } = moment;
  const window = account[suspect];
  const { foreign, own } = new WindowAt(account, suspect, moment);
  const worked = Math.max(own + foreign - inFlight(account, nowMs) - 1, (own + foreign) / 2);
  window.lesson = taught(window.lesson, worked, { nowMs, isSure: !isShown, windowMs: WINDOWS[suspect].lengthMs });
}

function learnPace(account: Account, { isBriefRush, isShown, lately }: Signs, moment: Moment): void {
  const { nowMs } = moment;
  const worked = Math.max(lately - inFlight(account, nowMs) - 1, PACE_SHARE * lately);
  // A plan that allows more, evenly spread over its minute, has hardly such a limit.
  const isLikely = worked * SECONDS_A_MINUTE >= new WindowAt(account, 'minute', moment).limit;
  const isSure = isBriefRush && (isLikely || !isShown);
  account.paceLesson = taught(account.paceLesson, worked, { nowMs, isSure, windowMs: SECOND_MS });
}

interface LessonEvidence {
  readonly nowMs: number;
  /** Whether one 429 is enough; else a second one at the same count, in another window, has to confirm it. */
  readonly isSure: boolean;
  readonly windowMs: number;
}

/** Returns what is known after a 429 at this count or pace. */
function taught(before: Lesson | undefined, at: number, { nowMs, isSure, windowMs }: LessonEvidence): Lesson {
  const to = Math.max(1, at);
  const known = before && nowMs < before.sinceMs + before.lastsMs + LESSON_REMEMBERED_MS ? before : undefined;
  if (known && isActive(known, nowMs)) return { ...known, to: Math.min(to, known.to), sinceMs: nowMs };
  const isAlike = known && Math.abs(to - known.to) <= Math.max(ALIKE_CALLS, ALIKE_SHARE * Math.max(to, known.to));
  if (!isAlike) return { to, sinceMs: nowMs, lastsMs: isSure ? FIRST_LESSON_MS : 0 };
  if (nowMs < known.sinceMs + windowMs) return known;
  return confirmed({ ...known, to: Math.min(to, known.to) }, nowMs);
}

function confirmed({ to, lastsMs }: Lesson, nowMs: number): Lesson {
  return { to, sinceMs: nowMs, lastsMs: lastsMs === 0 ? FIRST_LESSON_MS : Math.min(2 * lastsMs, MAX_LESSON_MS) };
}

/** A call has succeeded: it ends the lessons that calls went beyond. */
export function unlearn(account: Account, { nowMs }: Moment): void {
  const flying = inFlight(account, nowMs);
  for (const name of WINDOW_NAMES) {
    const { foreign, lesson, total } = account[name];
    if (lesson && total - flying + (foreign?.calls ?? 0) > lesson.to) account[name].lesson = ended(lesson, nowMs);
  }
  const { paceLesson } = account;
  if (paceLesson && callsLately(account, nowMs) - flying > paceLesson.to) account.paceLesson = ended(paceLesson, nowMs);
}

function ended(lesson: Lesson, nowMs: number): Lesson {
  return isLapsed(lesson, nowMs) ? { ...lesson, isOver: true } : lesson;
}

/** Returns the windows that may be full: after a short Retry-After no day is, unless the next call is refused too. */
function mayBeFull({ retryAfterMs, told }: RefusedCall, isAgain: boolean): readonly WindowName[] {
  if (told?.remaining === 0) return [told.name];
  return retryAfterMs > 0 && retryAfterMs <= FAR_MS && !isAgain ? ['minute'] : WINDOW_NAMES;
}

/** Calls that went beyond the count found its end: the reset freed a part only, or the limit is what they found. */
function endBeyond(account: Account, name: WindowName, isBriefRush: boolean, moment: Moment): void {
  const window = account[name];
  const at = new WindowAt(account, name, moment);
  if (window.doubted) endDoubt(window, moment.nowMs);
  else if (isBriefRush) return;
  else if (window.lesson && isLapsed(window.lesson, moment.nowMs))
    window.lesson = confirmed(window.lesson, moment.nowMs);
  else window.lesson = { to: Math.max(1, at.own + at.foreign - 1), sinceMs: moment.nowMs, lastsMs: MAX_LESSON_MS };
  window.beyondSinceMs = undefined;
}

function isExplained(account: Account, { told }: RefusedCall, moment: Moment): boolean {
  const isOver = (name: WindowName) => {
    const { foreign, limit, own } = new WindowAt(account, name, moment);
    return account[name].beyondSinceMs === undefined && own + foreign > limit;
  };
  if (WINDOW_NAMES.some(isOver)) return true;
  return told?.remaining === 0 && account[told.name].foreign !== undefined;
}

/** Others have used the minute up, and may do so again: they leave the calls that have surely worked, and half of all at least. */
function foresee(account: Account, { told }: RefusedCall, nowMs: number): void {
  if (told?.name !== 'minute' || told.remaining > 0) return;
  const { minute } = account;
  const own = ownCount(minute);
  const worked = Math.max(own - inFlight(account, nowMs) - 1, own / 2);
  const windowMs = WINDOWS.minute.lengthMs;
  minute.foreignLesson = taught(minute.foreignLesson, worked, { nowMs, isSure: false, windowMs });
}

/** Returns the window that may have caused it: a day's Retry-After is long. */
function suspectOf({ retryAfterMs, told }: RefusedCall): WindowName {
  if (told?.remaining === 0) return told.name;
  return retryAfterMs > FAR_MS ? 'day' : 'minute';
}

/**
 * Whether so much of the window is used that it may be the cause. A minute whose limit nobody has said may be any; where a header
 * seems to say it, with calls left, it has said another window's.
 */
function isNear(account: Account, name: WindowName, { retryAfterMs, told }: RefusedCall, moment: Moment): boolean {
  const { foreign, isKnown, limit, own } = new WindowAt(account, name, moment);
  if (2 * (own + foreign) >= limit) return true;
  const mayBeAny = name === 'minute' && (!isKnown || (told?.name === name && !isOneWindows(limit)));
  return mayBeAny && own >= MIN_LIMIT && retryAfterMs > BRIEF_MS;
}

/** Returns how many calls went in a second lately, which may have just begun: with so many, the cause may be below the minute. */
function callsLately({ minute }: Account, nowMs: number): number {
  const [lastSecond, lastTwo] = [1, 2].map((ago) => countAfter(minute, slotFor('minute', nowMs - ago * SECOND_MS)));
  return Math.max(lastSecond ?? 0, (lastTwo ?? 0) / 2);
}

/** Returns how many calls the pace allows now. Once its time is over, calls go faster by trust. */
export function paceLeft(account: Account, nowMs: number): number {
  const { paceLesson } = account;
  if (paceIntervalMs(account, nowMs) > 0) return paceWaitMs(account, nowMs) === 0 ? 1 : 0;
  if (!paceLesson || !isLapsed(paceLesson, nowMs)) return Infinity;

  const left = Math.floor(paceLesson.to - countAfter(account.minute, slotFor('minute', nowMs - 2 * SECOND_MS)));
  if (left > 0) return left;
  if (account.fasterSinceMs === undefined && account.pause.incidents === 0) beginTrust(account, nowMs);
  account.fasterSinceMs ??= nowMs;
  return Infinity;
}

/** Returns the time between two calls; 0 where no pace is kept. */
export function paceIntervalMs(account: Account, nowMs: number): number {
  return SECOND_MS / activePace(account, nowMs);
}

/** Returns how many calls a second are made; Infinity where no pace is kept. */
function activePace({ paceLesson }: Account, nowMs: number): number {
  return paceLesson && isActive(paceLesson, nowMs) ? paceLesson.to : Infinity;
}

/** Returns how long the next call waits for the pace. */
export function paceWaitMs(account: Account, nowMs: number): number {
  const intervalMs = paceIntervalMs(account, nowMs);
  return intervalMs === 0 ? 0 : Math.max(0, account.lastGrantAtMs + intervalMs - nowMs);
}
