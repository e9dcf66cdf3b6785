import type { Account } from './format.ts';
import { WINDOWS, WINDOW_NAMES, freeInMs, hasReset, inFlight, leftOf, resetInMs } from './windows.ts';
import type { WindowName } from './format.ts';
import { knownPlanName, knownWindows, limitsOf } from './limits.ts';
import type { AccountRules } from './limits.ts';

export type QuotaState = ReturnType<typeof quotaStateOf>;

export interface MinWait {
  readonly waitMs: number;
  /** The window that causes the longest wait. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
  /** Why Redis makes it wait: only this replica's share counts meanwhile, or it was not reached since the start. */
  readonly cause?: 'no-contact' | 'share' | undefined;
}

/** The quota of a key, as this process saw it last. Durations are milliseconds from now. */
export function quotaStateOf(account: Account, nowMs: number, rules: AccountRules) {
  const { pause } = account;
  const windowState = (name: WindowName) => {
    const limit = limitsOf(account, rules.plan)[name];
    const total = hasReset(account, name, nowMs) ? inFlight(account, nowMs) : account[name].total;
    const used = Math.min(limit, total);
    // Until the known reset, else until a call is free again; 0 where no call is used.
    const resetMs = resetInMs(account, name, nowMs) || (used > 0 ? freeInMs(account, name, nowMs, 0) : 0);
    return { isKnown: knownWindows(account)[name], limit, used, remaining: limit - used, resetInMs: resetMs };
  };
  // Most callers read one of these.
  return {
    /** The plan's name; undefined while the plan is a guess. */
    get plan() {
      return knownPlanName(account, rules.plan);
    },
    get minute() {
      return windowState('minute');
    },
    get day() {
      return windowState('day');
    },
    /** How long the key is paused after a 429; 0 where it is not, as where a share ends for a while. */
    pausedForMs: pause.incidents > 0 ? Math.max(0, pause.untilMs - nowMs) : 0,
    /** Whether the pause is for a probable ban. */
    banned: pause.isBan,
    /** Refusals in a row. */
    incidents: pause.incidents,
    /** Whether the last response was a refusal: a 401 or 403 now may be a ban. */
    refusedLately: pause.incidents > 0,
  };
}

/** Returns the minimum wait of a call with `ahead` others before it: what is not known counts as free. */
export function minWait(account: Account, ahead: number, nowMs: number, rules: AccountRules): MinWait {
  const pausedMs = Math.max(0, account.pause.untilMs - nowMs);
  const limits = rules.limits ?? limitsOf(account, rules.plan);
  const left = leftOf(account, rules);
  let wait: MinWait = { waitMs: pausedMs, window: pausedMs === 0 ? undefined : left.day > 0 ? 'MINUTE' : 'DAY' };
  const known = knownWindows(account);
  for (const name of WINDOW_NAMES) {
    // The first response may show a larger plan than the assumed one.
    const isUntried = !known[name] && account.successes.count === 0;
    if (ahead < left[name] || isUntried || hasReset(account, name, nowMs)) continue;
    const waitMs = windowWait(account, name, nowMs, { ahead, limit: Math.max(1, limits[name]) });
    if (waitMs > wait.waitMs) wait = { waitMs, window: name === 'minute' ? 'MINUTE' : 'DAY' };
  }
  return wait;
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
