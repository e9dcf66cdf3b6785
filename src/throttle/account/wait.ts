import type { PlanWindow } from '../../plan.ts';
import type { Moment } from './account.ts';
import type { Account, WindowName } from './format.ts';
import { knownWindows } from './limits.ts';
import type { AccountRules } from './limits.ts';
import { WINDOWS, freeBySlotInMs, hasReset, expectedLeftOf, resetInMs } from './windows.ts';

/** The minimum wait of a call. */
export interface Wait {
  readonly waitMs: number;
  /** The window that causes the longest wait. */
  readonly window: PlanWindow | undefined;
  /** Why the call waits for Redis: only its offline share counts meanwhile, or Redis was not reached since the start. */
  readonly cause?: 'no-contact' | 'offline-share' | undefined;
}

/** A call is free again a whole window and some after it is made, and it is made up to a second later than it may be. */
const LAP_MS = {
  minute: WINDOWS.minute.lengthMs + WINDOWS.minute.slotMs + 1_500,
  day: WINDOWS.day.lengthMs + WINDOWS.day.slotMs,
};

/** Returns the wait for both windows. */
export function longerWait({ minuteMs, dayMs }: { readonly minuteMs: number; readonly dayMs: number }): Wait {
  return dayMs > minuteMs ? { waitMs: dayMs, window: 'DAY' } : { waitMs: minuteMs, window: 'MINUTE' };
}

/** Returns the minimum wait of a call with `ahead` others before it; calls of a limit that is not known yet wait for nothing. */
export function waitOf(account: Account, ahead: number, nowMs: number, rules: AccountRules): Wait {
  const pausedMs = Math.max(0, account.pause.untilMs - nowMs);
  const left = expectedLeftOf(account, rules);
  const dayMs = windowWaitMs(account, 'day', ahead, { nowMs, rules });
  const minuteMs = windowWaitMs(account, 'minute', ahead, { nowMs, rules });

  // A pause and an exhausted day end in one moment: from then on each minute has room for as many calls as any other.
  const opensInMs = Math.max(pausedMs, dayMs);
  const perMinute = Math.max(1, left.minute + account.minute.total);
  const spreadMs = opensInMs === 0 ? 0 : LAP_MS.minute * Math.floor(ahead / perMinute);

  const waitMs = Math.max(opensInMs + spreadMs, minuteMs);
  if (waitMs === 0) return { waitMs, window: undefined };
  const isDay = dayMs > Math.max(pausedMs, minuteMs) || left.day <= 0;
  return { waitMs, window: isDay ? 'DAY' : 'MINUTE' };
}

/** Returns the minimum wait of a call with `ahead` others before it for one window. */
function windowWaitMs(account: Account, name: WindowName, ahead: number, { nowMs, rules }: Moment): number {
  // The first response may show a larger plan than the assumed one.
  const isUntried = !knownWindows(account)[name] && account.successes.count === 0;
  const left = expectedLeftOf(account, rules)[name];
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
  const window = account[name];
  const needed = (ahead % limit) + window.total - limit;
  const bySlotMs = needed < 0 ? 0 : freeBySlotInMs(window, name, nowMs, needed);
  const slotsMs = bySlotMs + LAP_MS[name] * Math.floor(ahead / limit);

  const resetMs = resetInMs(account, name, nowMs);
  if (resetMs === 0) return slotsMs;
  const behindReset = ahead + window.total - limit;
  return Math.min(slotsMs, resetMs + LAP_MS[name] * Math.floor(Math.max(0, behindReset) / limit));
}
