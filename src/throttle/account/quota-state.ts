import { newAccount } from './account.ts';
import type { Account } from './format.ts';
import { dayBeginsInMs, freeBySlotInMs, freeInMs, hasReset, inFlight, leftOf, passTime, resetInMs } from './windows.ts';
import type { WindowName } from './format.ts';
import { knownPlanName, knownWindows, limitsOf } from './limits.ts';
import type { AccountRules } from './limits.ts';

interface WindowState {
  /** Whether the limit is known rather than assumed. */
  readonly isKnown: boolean;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Until the known reset, else until a call is free again; 0 where no call is used. */
  readonly resetInMs: number;
}

/** The quota of a key, as this process saw it last. Durations are from now; a window is computed when it is read. */
export class QuotaState {
  /** How long the key is paused after a 429; 0 where it is not, as where an offline share ends for a while. */
  readonly pausedForMs: number;
  /** Whether the pause is for a probable ban. */
  readonly mayBeBanned: boolean;
  /** 429s in a row, with probable bans and with probes after them that failed. */
  readonly incidents: number;
  /** Whether the probe after a 429 is in flight. */
  readonly isProbingAfter429: boolean;
  readonly #account: Account;
  readonly #nowMs: number;
  readonly #rules: AccountRules;

  constructor(account: Account, nowMs: number, rules: AccountRules) {
    this.#account = account;
    this.#nowMs = nowMs;
    this.#rules = rules;

    const { incidents, isBan, isHalfOpen, probeUntilMs, untilMs } = account.pause;
    this.incidents = incidents;
    this.pausedForMs = incidents > 0 ? Math.max(0, untilMs - nowMs) : 0;
    this.isProbingAfter429 = incidents > 0 && isHalfOpen && nowMs < probeUntilMs;
    this.mayBeBanned = isBan;
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

  /** Returns how many calls of a window are left by the count alone: a reset that no response has confirmed frees none. */
  countedLeft(name: WindowName): number {
    return leftOf(this.#account, this.#rules)[name];
  }

  /** Returns the minimum time until more than `needed` calls of a window are left by the count alone. */
  countedWaitMs(name: WindowName, needed: number): number {
    const [account, nowMs] = [this.#account, this.#nowMs];
    const left = this.countedLeft(name);
    if (left > needed) return 0;
    const bySlotMs = freeBySlotInMs(account[name], name, nowMs, needed - left);
    const isLeftNextDay = name === 'day' && needed < left + account.day.total;
    return isLeftNextDay ? Math.min(bySlotMs, dayBeginsInMs(account, nowMs)) : bySlotMs;
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

/** Returns the quota of a key that this process has not used. */
export function quotaOfUnused(nowMs: number, rules: AccountRules): QuotaState {
  const account = newAccount('', true);
  passTime(account, nowMs, rules);
  return new QuotaState(account, nowMs, rules);
}

/** Whether a key is paused after a 429. */
export function isPaused(account: Account | undefined, nowMs: number): boolean {
  return account !== undefined && account.pause.incidents > 0 && nowMs < account.pause.untilMs;
}

/** Whether a probe is in flight. */
export function isProbing(account: Account | undefined, nowMs: number): boolean {
  return account !== undefined && account.pause.isHalfOpen && nowMs < account.pause.probeUntilMs;
}
