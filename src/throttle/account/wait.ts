import type { Moment } from './account.ts';
import type { Account, WindowName } from './format.ts';
import { knownWindows } from './limits.ts';
import type { AccountRules } from './limits.ts';
import { WINDOWS, WINDOW_NAMES, freeInMs, hasReset, leftOf, resetInMs } from './windows.ts';

/** The minimum wait of a call. */
export interface Wait {
  readonly waitMs: number;
  /** The window that causes the longest wait. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
  /** Why the call waits for Redis: only its offline share counts meanwhile, or Redis was not reached since the start. */
  readonly cause?: 'no-contact' | 'offline-share' | undefined;
}

/** Returns the minimum wait of a call with `ahead` others before it; calls of a limit that is not known yet wait for nothing. */
export function waitOf(account: Account, ahead: number, nowMs: number, rules: AccountRules): Wait {
  const pausedMs = Math.max(0, account.pause.untilMs - nowMs);
  const left = leftOf(account, rules);
  const pausedWindow = left.day > 0 ? 'MINUTE' : 'DAY';
  let wait: Wait = { waitMs: pausedMs, window: pausedMs === 0 ? undefined : pausedWindow };

  for (const name of WINDOW_NAMES) {
    const waitMs = windowWaitMs(account, name, ahead, { nowMs, rules });
    if (waitMs > wait.waitMs) wait = { waitMs, window: name === 'minute' ? 'MINUTE' : 'DAY' };
  }

  return wait;
}

/** Returns the minimum wait of a call with `ahead` others before it for one window. */
function windowWaitMs(account: Account, name: WindowName, ahead: number, { nowMs, rules }: Moment): number {
  // The first response may show a larger plan than the assumed one.
  const isUntried = !knownWindows(account)[name] && account.successes.count === 0;
  const left = leftOf(account, rules)[name];
  if (ahead < left || isUntried || hasReset(account, name, nowMs)) return 0;
  return freeAgainInMs(account, name, nowMs, { ahead, limit: Math.max(1, left + account[name].total) });
}

/** Returns the time until enough permits are free again, or the known reset; each later window frees a whole limit. */
function freeAgainInMs(
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
