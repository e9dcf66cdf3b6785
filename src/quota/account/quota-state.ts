import { planName } from '../../common/plan.ts';
import { newAccount } from './account.ts';
import type { Account, Lesson } from './format.ts';
import { knownPlanName } from './limits.ts';
import type { AccountRules } from './limits.ts';
import { passTime } from './pass-time.ts';
import type { WindowName } from './slots.ts';
import { trialsLeft } from './trust.ts';
import { WindowAt } from './window.ts';
import type { Moment } from './window.ts';

interface WindowState {
  /** How many calls of petql's share of the plan other clients have used. */
  readonly takenByOthers: number;
  /** Whether anybody has said the limit: a header, or the configuration. */
  readonly isKnown: boolean;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Until the known reset, else until a call is free again; 0 where no call is used. */
  readonly resetInMs: number;
}

/** What petql counts by since a 429 that it had not foreseen. */
export interface Learned {
  readonly minuteLimit?: number;
  readonly dayLimit?: number;
  readonly callsPerSecond?: number;
}

/** The quota of a key, as this process saw it last. Durations are from now; a window is computed when it is read. */
export class QuotaState {
  /** How long the key is paused after a 429; 0 too where an offline share only waits for its first minute. */
  readonly pausedForMs: number;
  /** Whether the pause is for a probable ban. */
  readonly mayBeBanned: boolean;
  /** 429s in a row, with probable bans and with probes after them that failed. */
  readonly incidents: number;
  /** Whether the probe after a 429 is in flight. */
  readonly isProbingAfter429: boolean;
  /** What the last 429 has taught; undefined where the count had foreseen it. */
  readonly learned: Learned | undefined;
  readonly #account: Account;
  readonly #moment: Moment;

  constructor(account: Account, nowMs: number, rules: AccountRules) {
    this.#account = account;
    this.#moment = { nowMs, rules };

    const { incidents, isBan, untilMs } = account.pause;
    this.incidents = incidents;
    this.pausedForMs = incidents > 0 ? Math.max(0, untilMs - nowMs) : 0;
    this.isProbingAfter429 = incidents > 0 && nowMs >= untilMs && trialsLeft(account, nowMs) === 0;
    this.mayBeBanned = isBan;
    this.learned = learnedFrom(account);
  }

  /** The plan's name; undefined while the plan is a guess. */
  get plan(): string | undefined {
    return knownPlanName(this.#account, this.#moment.rules.plan);
  }

  /** The configured plan, where headers tell of more; undefined where they do not. */
  get outgrownPlan(): string | undefined {
    const { configured, day, minute } = this.#account;
    if (!configured) return undefined;
    const isMore = (minute.limit ?? 0) > configured.perMinute || (day.limit ?? 0) > configured.perDay;
    return isMore ? planName(configured) : undefined;
  }

  get minute(): WindowState {
    return this.#windowState('minute');
  }

  get day(): WindowState {
    return this.#windowState('day');
  }

  /** Returns how many calls of a window are left, as visitors and background work count them; below 0 where its limit went down. */
  leftToShare(name: WindowName): number {
    return this.#windowAt(name).leftToShare;
  }

  /** Returns the minimum time until more than `needed` are. */
  leftToShareInMs(name: WindowName, needed: number): number {
    return this.#windowAt(name).leftToShareIn(needed + 1);
  }

  #windowAt(name: WindowName): WindowAt {
    return new WindowAt(this.#account, name, this.#moment);
  }

  #windowState(name: WindowName): WindowState {
    const { ownLimit, resetInMs, shownLimit, takenByOthers, used } = this.#windowAt(name);
    const limit = shownLimit ?? ownLimit;
    const isKnown = shownLimit !== undefined;
    return { isKnown, limit, used, remaining: limit - used, resetInMs, takenByOthers };
  }
}

function learnedFrom({ minute, day, paceLesson, pause }: Account): Learned | undefined {
  const isNew = (lesson: Lesson | undefined) =>
    lesson !== undefined && lesson.lastsMs > 0 && lesson.sinceMs === pause.incidentAtMs;
  if (isNew(minute.lesson)) return { minuteLimit: Math.floor(minute.lesson?.to ?? 0) };
  if (isNew(day.lesson)) return { dayLimit: Math.floor(day.lesson?.to ?? 0) };
  return isNew(paceLesson) ? { callsPerSecond: paceLesson?.to ?? 0 } : undefined;
}

/** Returns the quota of a key that this process has not used. */
export function quotaOfUnused(nowMs: number, rules: AccountRules): QuotaState {
  const account = newAccount('');
  passTime(account, { nowMs, rules });
  return new QuotaState(account, nowMs, rules);
}

/** Whether a key is paused after a 429. */
export function isPaused(account: Account | undefined, nowMs: number): boolean {
  return account !== undefined && account.pause.incidents > 0 && nowMs < account.pause.untilMs;
}
