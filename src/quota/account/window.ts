import { ownLimitOf } from '../../common/plan.ts';
import type { Account, Lesson, WindowCount } from './format.ts';
import { assumedLimit, knownWindows, limitsOf } from './limits.ts';
import type { AccountRules } from './limits.ts';
import { LAP_MS, countAfter, freeInMs, slotFor } from './slots.ts';
import type { WindowName } from './slots.ts';
import { MAX_TOLD_MS } from './times.ts';

/** The time of a change, and the rules for it. */
export interface Moment {
  readonly nowMs: number;
  readonly rules: AccountRules;
}

/** One window of an account at one moment, after `passTime`: the one place that says how much is left, and when there is more. */
export class WindowAt {
  readonly name: WindowName;
  /** Calls that the window allows, own and foreign ones together. */
  readonly limit: number;
  /** How many of them petql's own calls may use: its plan share, and what a lesson leaves. */
  readonly ownLimit: number;
  /** Whether the limit is known rather than assumed. */
  readonly isKnown: boolean;
  /** Calls that petql has counted, with those in flight. */
  readonly own: number;
  /** Calls of other clients, by the headers. */
  readonly foreign: number;
  /** Calls that are left by the count; below 0 where the limit went down. */
  readonly left: number;
  readonly #toldLimit: number;
  readonly #planShare: number;
  readonly #account: Account;
  readonly #window: WindowCount;
  readonly #nowMs: number;
  readonly #isShared: boolean;

  constructor(account: Account, name: WindowName, { nowMs, rules }: Moment) {
    const { offlineShare, plan, planShare = 100 } = rules;
    const isShared = offlineShare !== undefined || planShare < 100;
    const window = account[name];
    this.name = name;
    this.isKnown = knownWindows(account)[name];
    this.#toldLimit = limitsOf(account, plan)[name];
    // A limit that may be another window's counts as far as the assumed one; beyond that calls prove it.
    const limit = this.isKnown ? this.#toldLimit : Math.min(this.#toldLimit, assumedLimit(account, name, plan));
    this.limit =
      offlineShare?.limits[name] ?? countedLimit(window.lesson, { limit, isKnown: this.isKnown, isShared }, nowMs);
    this.own = ownCount(window);
    this.foreign = window.foreign?.calls ?? 0;
    this.#planShare = planShare;
    // A lesson counts the calls of others too: a share of it would be one of a share.
    this.ownLimit = Math.min(
      this.limit,
      foreseenLimit(window.foreignLesson, nowMs),
      ownLimitOf(offlineShare ? this.limit : Math.max(this.limit, limit), planShare),
    );
    this.left = Math.min(this.ownLimit, this.limit - this.foreign) - this.own;
    this.#account = account;
    this.#window = window;
    this.#nowMs = nowMs;
    this.#isShared = isShared;
  }

  /** Calls that may go where none is left by the count, as far as trust goes. */
  get beyond(): number {
    // No 429 ends calls beyond a share of the minute, whose own calls are soon free again.
    const isBound = this.#planShare < 100 && this.name === 'minute';
    const byReset = this.#window.doubted && !this.#isResetUsed && !isBound ? this.#remaining : 0;
    return Math.max(byReset, this.#beyondLimit, this.#beyondLesson);
  }

  /** Calls beyond a lesson whose time is over. */
  get #beyondLesson(): number {
    const { lesson } = this.#window;
    if (!lesson || !isLapsed(lesson, this.#nowMs) || this.#isShared) return 0;
    return this.isKnown ? Math.max(0, this.#toldLimit - this.own - this.foreign) : Infinity;
  }

  /** Whether calls by the count may have used what the reset freed: of a day, the responses to them tell. */
  get #isResetUsed(): boolean {
    const { beyondSinceMs, doubted } = this.#window;
    if (!doubted || beyondSinceMs !== undefined || this.#account.lastGrantAtMs < doubted.fromMs) return false;
    return this.name === 'minute' || inFlight(this.#account, this.#nowMs) > 0;
  }

  /** Calls beyond a limit that is not known: of a day nobody has said it, or a header has that may mean another window. */
  get #beyondLimit(): number {
    const { lesson, toldAtMs } = this.#window;
    if (this.isKnown || this.#isShared || (lesson && isActive(lesson, this.#nowMs))) return 0;
    if (toldAtMs === undefined) return this.name === 'day' ? Infinity : 0;
    if (this.#nowMs >= toldAtMs + MAX_TOLD_MS) return Infinity;
    return Math.max(0, this.#toldLimit - this.own - this.foreign);
  }

  /** Whether no response has shown how much the window allows. */
  get #isUntried(): boolean {
    return !this.isKnown && this.#window.toldAtMs === undefined && this.#account.trust?.successes === 0;
  }

  /** Calls that are left if a reset that is over has freed all that was counted before it. */
  get #remaining(): number {
    return this.left + (this.#window.doubted?.total ?? 0);
  }

  /** Calls that are left, as visitors and background work count them: of a day with those that a reset may have freed. */
  get leftToShare(): number {
    return this.name === 'day' ? this.#remaining : this.left;
  }

  /** The limit as clients see it: that of a header, also where calls still prove it; undefined where none is known. */
  get shownLimit(): number | undefined {
    const isLowered = this.limit < this.#toldLimit && this.#window.lesson !== undefined;
    if (this.isKnown || isLowered) return this.ownLimit;
    return this.#window.limit === undefined ? undefined : ownLimitOf(this.#window.limit, this.#planShare);
  }

  /** Used calls, as clients see them. */
  get used(): number {
    if (this.isKnown || this.#isShared) return Math.max(0, this.ownLimit - Math.max(0, this.#remaining));
    // Calls still prove a limit that is not known: what may go beyond the assumed one is left, too.
    const limit = this.shownLimit ?? this.ownLimit;
    return Math.max(0, limit - Math.max(0, this.#remaining, Math.min(this.#beyondLimit, limit - this.own)));
  }

  /** How many calls of petql's share other clients have used. */
  get takenByOthers(): number {
    return this.#planShare === 100 ? 0 : Math.max(0, this.foreign - (this.limit - this.ownLimit));
  }

  /** Until the told reset, else until a call is free again; 0 where no call is used. */
  get resetInMs(): number {
    const resetMs = this.#resetInMs();
    if (resetMs > 0 || this.used === 0) return resetMs;
    return this.waitFor(Math.max(1, this.left + 1));
  }

  /** Returns the minimum time until so many calls are left by the count. */
  waitFor(calls: number): number {
    return calls <= this.left ? 0 : Math.min(this.#countedWaitMs(calls), this.#resetMs());
  }

  /** Returns the minimum time until so many calls are left for what one client of many may use. */
  leftToShareIn(calls: number): number {
    if (calls <= this.leftToShare) return 0;
    return this.name === 'day' ? this.waitFor(calls) : this.#countedWaitMs(calls);
  }

  /** Returns the minimum wait of a call with `ahead` others before it: each later window frees a whole limit. */
  waitOfCall(ahead: number): number {
    const left = Math.max(this.left, this.beyond);
    if (ahead < left || this.#isUntried) return 0;
    // Calls of others are void in later windows.
    const limit = Math.max(1, this.ownLimit);
    const lapMs = LAP_MS[this.name];
    const slotsMs = this.waitFor((ahead % limit) + 1) + lapMs * Math.floor(ahead / limit);
    return Math.min(slotsMs, this.#resetMs() + lapMs * Math.floor(Math.max(0, ahead - left) / limit));
  }

  #countedWaitMs(calls: number): number {
    return Math.max(1, Math.min(this.#freeBySlotMs(calls - this.left), this.#withoutForeignMs(calls)));
  }

  #freeBySlotMs(missing: number): number {
    const { doubted } = this.#window;
    if (!doubted) return freeInMs(this.#window, this.name, this.#nowMs, missing - 1);
    if (missing <= doubted.total) return freeInMs(doubted, this.name, this.#nowMs, missing - 1);
    return freeInMs(this.#window, this.name, this.#nowMs, missing - doubted.total - 1);
  }

  /** Returns when the foreign calls are void, and enough of the own ones are free. */
  #withoutForeignMs(calls: number): number {
    const { foreign } = this.#window;
    if (!foreign) return Infinity;
    const missing = calls - (this.ownLimit - this.own);
    return Math.max(foreign.untilMs - this.#nowMs, missing > 0 ? this.#freeBySlotMs(missing) : 0);
  }

  /** Returns the time until a reset frees all that is used; Infinity where none is known. */
  #resetMs(): number {
    const isSliding = (this.#window.slidesUntilMs ?? 0) > this.#nowMs;
    return (isSliding ? 0 : this.#resetInMs()) || Infinity;
  }

  #resetInMs(): number {
    const { reset } = this.#window;
    return reset && !reset.isGuess ? Math.max(0, reset.byMs - this.#nowMs) : 0;
  }
}

/** Returns how many own permits count, doubted ones too. */
export function ownCount({ doubted, total }: WindowCount): number {
  return total + (doubted?.total ?? 0);
}

/** Returns how many permits have no response yet: their slots are later than any settled permit's. */
export function inFlight({ minute }: Account, nowMs: number): number {
  return countAfter(minute, slotFor('minute', nowMs));
}

/** Whether a lesson is counted by. */
export function isActive({ isOver = false, lastsMs, sinceMs }: Lesson, nowMs: number): boolean {
  return !isOver && nowMs < sinceMs + lastsMs;
}

/** Whether the time of a lesson is over, and no call beyond it has succeeded. */
export function isLapsed({ isOver = false, lastsMs, sinceMs }: Lesson, nowMs: number): boolean {
  return lastsMs > 0 && !isOver && nowMs >= sinceMs + lastsMs;
}

function foreseenLimit(lesson: Lesson | undefined, nowMs: number): number {
  return lesson && isActive(lesson, nowMs) ? Math.floor(lesson.to) : Infinity;
}

/** Returns the limit to count by, which a lesson lowers. Once its time is over, calls go beyond it by trust; of a share, at once. */
function countedLimit(
  lesson: Lesson | undefined,
  { limit, isKnown, isShared }: { readonly limit: number; readonly isKnown: boolean; readonly isShared: boolean },
  nowMs: number,
): number {
  const isCounted = lesson && (isActive(lesson, nowMs) || (isLapsed(lesson, nowMs) && !isShared));
  if (!isCounted) return limit;
  const to = Math.floor(lesson.to);
  // Of a limit that nobody has said, calls beyond the assumed one have found out more.
  return isKnown ? Math.min(limit, to) : to;
}
