import type { Account, Permit, Lesson, WindowCount } from '../../../src/quota/account/format.ts';
import { WINDOWS } from '../../../src/quota/account/slots.ts';
import type { WindowName } from '../../../src/quota/account/slots.ts';
import { endOfPause } from '../../support/plan-rules.ts';
import type { Pause } from '../../support/plan-rules.ts';
import type { Call, KeyOptions, KeyState } from './key-state.ts';
import { DAY_MS, MAX_STRAY_MS } from './upstream.ts';

/**
 * Returns the state as text with all times from now, so that states which differ in their date alone are one. What depends on the
 * clock stays: the rest of a slot of time, and where the upstream's windows are fixed, the rest of the day.
 */
export function keyOf(state: KeyState, { windows }: KeyOptions): string {
  const { account, arrivals, behindMs, calls, emptyUntilMs, faults, nowMs, pause, refusals, refusesUntilMs, tries } =
    state;
  const ourNowMs = nowMs - behindMs;
  const rest = windows === 'fixed' ? nowMs % DAY_MS : ourNowMs % WINDOWS.day.slotMs;
  return JSON.stringify([
    rest,
    behindMs,
    accountFrom(account, ourNowMs),
    calls.map((call) => JSON.stringify(callFrom(call, account, nowMs, ourNowMs))).toSorted(),
    arrivals.filter((atMs) => atMs > nowMs - DAY_MS - 60_000).map((atMs) => atMs - nowMs),
    Object.values(faults),
    pauseText(pause, ourNowMs),
    tries,
    Math.max(0, refusesUntilMs - nowMs),
    Math.max(0, (emptyUntilMs ?? 0) - nowMs),
    [refusals.count, Math.max(-DAY_MS, refusals.atMs - ourNowMs), Math.max(0, refusals.pausesUntilMs - ourNowMs)],
  ]);
}

/** Returns when a pause is over: no call under way is older than a stray one. */
export function pauseText(pause: Pause | undefined, nowMs: number): number | undefined {
  return pause && Math.max(-MAX_STRAY_MS, endOfPause(pause) - nowMs);
}

/** Returns what an account says, with all times from now. */
export function accountFrom(account: Account, nowMs: number) {
  const { day, isProven, lastGrantAtMs, minute, paceLesson, pause, trust } = account;
  const sinceNow = (ms: number) => Math.max(-DAY_MS, ms - nowMs);
  return [
    isProven,
    sinceNow(lastGrantAtMs),
    windowFrom(minute, 'minute', nowMs),
    windowFrom(day, 'day', nowMs),
    trust && [sinceNow(trust.sinceMs), trust.calls, trust.successes, trust.lost, Math.max(0, trust.againAtMs - nowMs)],
    lessonFrom(paceLesson, nowMs),
    sinceNow(account.fasterSinceMs ?? nowMs),
    Math.max(0, pause.untilMs - nowMs),
    pause.incidents,
    sinceNow(pause.incidentAtMs),
    pause.isBan,
  ];
}

function windowFrom(window: WindowCount, name: WindowName, nowMs: number) {
  const { beyondSinceMs, counts, doubted, foreign, isSure, lesson, limit, reset, slidesUntilMs, slots, toldAtMs } =
    window;
  const { slotMs } = WINDOWS[name];
  const sinceNow = (ms: number | undefined) => ms && Math.max(-DAY_MS, ms - nowMs);
  return [
    [limit, isSure, sinceNow(toldAtMs)],
    counts,
    slots.map((slot) => slot * slotMs - nowMs),
    // A reset that is over may free what was granted before it, until another one is known.
    reset && [reset.fromMs - nowMs, reset.byMs - nowMs, reset.id - Math.floor(nowMs / 1_000), reset.isGuess],
    doubted && [
      doubted.counts,
      doubted.slots.map((slot) => slot * slotMs - nowMs),
      doubted.fromMs - nowMs,
      doubted.id - Math.floor(nowMs / 1_000),
    ],
    foreign && [foreign.calls, foreign.untilMs - nowMs],
    lessonFrom(lesson, nowMs),
    [Math.max(0, (slidesUntilMs ?? 0) - nowMs), sinceNow(beyondSinceMs)],
  ];
}

function lessonFrom(lesson: Lesson | undefined, nowMs: number) {
  return lesson && [lesson.to, Math.max(-2 * DAY_MS, lesson.sinceMs - nowMs), lesson.lastsMs, lesson.isOver];
}

function callFrom({ permit, phase, response, sentAtMs }: Call, account: Account, nowMs: number, ourNowMs: number) {
  const reset = response?.headers.reset;
  return [
    phase,
    permitFrom(permit, account, ourNowMs),
    sentAtMs - nowMs,
    response?.status,
    response?.headers.limit,
    response?.headers.remaining,
    reset === undefined ? undefined : reset - Math.floor(nowMs / 1_000),
    response?.headers.retryAfterMs,
  ];
}

function permitFrom(permit: Permit, { epoch, granted }: Account, nowMs: number) {
  return [
    permit.epoch === epoch,
    permit.grantedAtMs - nowMs,
    permit.settledBefore - granted,
    permit.minuteSlot * WINDOWS.minute.slotMs - nowMs,
    permit.daySlot * WINDOWS.day.slotMs - nowMs,
    permit.isTrial,
    permit.isProbe,
  ];
}
