import type { Moment } from './account.ts';
import type { Account } from './format.ts';
import { WINDOWS, WINDOW_NAMES, freeInMs, hasReset, inFlight, leftOf, resetInMs } from './windows.ts';
import type { WindowName } from './format.ts';
import { knownPlanName, knownWindows, limitsOf } from './limits.ts';
import type { AccountRules } from './limits.ts';

export interface MinWait {
  readonly waitMs: number;
  /** The window that causes the longest wait. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
  /** Why Redis makes it wait: only this replica's share counts meanwhile, or it was not reached since the start. */
  readonly cause?: 'no-contact' | 'share' | undefined;
}

interface WindowState {
  /** Whether the limit is known rather than assumed. */
  readonly isKnown: boolean;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Until the known reset, else until a call is free again; 0 where no call is used. */
  readonly resetInMs: number;
}

/** The quota of a key, as this process saw it last. Durations are milliseconds from now; windows are computed when they are read. */
export class QuotaState {
  /** How long the key is paused after a 429; 0 where it is not, as where a share ends for a while. */
  readonly pausedForMs: number;
  /** Whether the pause is for a probable ban. */
  readonly banned: boolean;
  /** Refusals in a row. */
  readonly incidents: number;
  /** Whether the last response was a refusal: a 401 or 403 now may be a ban. */
  readonly refusedLately: boolean;
  readonly #account: Account;
  readonly #nowMs: number;
  readonly #rules: AccountRules;

  constructor(account: Account, nowMs: number, rules: AccountRules) {
    this.#account = account;
    this.#nowMs = nowMs;
    this.#rules = rules;
    const { incidents, isBan, untilMs } = account.pause;
    this.incidents = incidents;
    this.pausedForMs = incidents > 0 ? Math.max(0, untilMs - nowMs) : 0;
    this.banned = isBan;
    this.refusedLately = incidents > 0;
  }

  /** The plan's name; undefined while the plan is a guess. */
  get plan(): string | undefined {
    return knownPlanName(this.#account, this.#rules.plan);
  }

  get minute(): WindowState {
    return this.#windowState('minute');
  }

  get day(): WindowState {
    return this.#windowState('day');
  }

  /** Returns the minimum time until more than `needed` calls of a window are left. */
  minWaitMs(name: WindowName, needed: number): number {
    return minWindowWaitMs(this.#account, name, needed, { nowMs: this.#nowMs, rules: this.#rules });
  }

  #windowState(name: WindowName): WindowState {
    const [account, nowMs] = [this.#account, this.#nowMs];
    const limit = limitsOf(account, this.#rules.plan)[name];
    const total = hasReset(account, name, nowMs) ? inFlight(account, nowMs) : account[name].total;
    const used = Math.min(limit, total);
    const resetMs = resetInMs(account, name, nowMs) || (used > 0 ? freeInMs(account, name, nowMs, 0) : 0);
    return { isKnown: knownWindows(account)[name], limit, used, remaining: limit - used, resetInMs: resetMs };
  }
}

/** Returns the minimum wait of a call with `ahead` others before it: what is not known counts as free. */
export function minWait(account: Account, ahead: number, nowMs: number, rules: AccountRules): MinWait {
  const pausedMs = Math.max(0, account.pause.untilMs - nowMs);
  const left = leftOf(account, rules);
  let wait: MinWait = { waitMs: pausedMs, window: pausedMs === 0 ? undefined : left.day > 0 ? 'MINUTE' : 'DAY' };
  for (const name of WINDOW_NAMES) {
    const waitMs = minWindowWaitMs(account, name, ahead, { nowMs, rules });
    if (waitMs > wait.waitMs) wait = { waitMs, window: name === 'minute' ? 'MINUTE' : 'DAY' };
  }
  return wait;
}

/** Returns the minimum wait of a call with `ahead` others before it for one window. */
export function minWindowWaitMs(account: Account, name: WindowName, ahead: number, { nowMs, rules }: Moment): number {
  // The first response may show a larger plan than the assumed one.
  const isUntried = !knownWindows(account)[name] && account.successes.count === 0;
  const left = leftOf(account, rules)[name];
  if (ahead < left || isUntried || hasReset(account, name, nowMs)) return 0;
  return windowWait(account, name, nowMs, { ahead, limit: Math.max(1, left + account[name].total) });
}

/** Returns the time until enough permits are free again, or the known reset; each later window frees a whole limit. */
function windowWait(
  account: Account,
  name: WindowName,
  nowMs: number,
  { ahead, limit }: { readonly ahead: number; readonly limit: number },
): number {
  const { lengthMs } = WINDOWS[name];
  const total = account[name].total;
  const needed = ahead - (limit - total);
  const firstMs = total === 0 ? 0 : freeInMs(account, name, nowMs, Math.max(0, total - limit));
  const freeMs =
    needed < total
      ? freeInMs(account, name, nowMs, needed)
      : firstMs + lengthMs * (1 + Math.floor((needed - total) / limit));
  const resetMs = resetInMs(account, name, nowMs);
  return resetMs > 0 ? Math.min(freeMs, resetMs + lengthMs * Math.floor(ahead / limit)) : freeMs;
}
