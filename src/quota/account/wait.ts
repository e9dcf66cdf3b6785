import type { PlanWindow } from '../../common/plan.ts';
import type { Account } from './format.ts';
import { paceIntervalMs, paceWaitMs } from './lessons.ts';
import { LAP_MS } from './slots.ts';
import { WindowAt } from './window.ts';
import type { Moment } from './window.ts';

/** The minimum wait of a call. */
export interface Wait {
  readonly waitMs: number;
  /** The window that causes the longest wait. */
  readonly window: PlanWindow | undefined;
  /** Why the call waits for Redis: only its offline share counts meanwhile, or Redis was not reached since the start. */
  readonly cause?: 'no-contact' | 'offline-share' | undefined;
}

/** Returns the wait for both windows. */
export function longerWait({ minuteMs, dayMs }: { readonly minuteMs: number; readonly dayMs: number }): Wait {
  return dayMs > minuteMs ? { waitMs: dayMs, window: 'DAY' } : { waitMs: minuteMs, window: 'MINUTE' };
}

/** Returns the minimum wait of a call with `ahead` others before it. Those that go by trust wait for nothing but responses. */
export function waitOf(account: Account, ahead: number, moment: Moment): Wait {
  const { nowMs } = moment;
  const minute = new WindowAt(account, 'minute', moment);
  const day = new WindowAt(account, 'day', moment);
  const pausedMs = Math.max(0, account.pause.untilMs - nowMs);
  const dayMs = day.waitOfCall(ahead);
  const minuteMs = Math.max(minute.waitOfCall(ahead), paceWaitMs(account, nowMs));

  // A pause and an exhausted day end in one moment: from then on each minute has room for as many calls as any other.
  const opensInMs = Math.max(pausedMs, dayMs);
  const perMinute = Math.max(1, minute.ownLimit);
  const lapsMs = opensInMs === 0 ? 0 : LAP_MS.minute * Math.floor(ahead / perMinute);
  const spreadMs = Math.max(lapsMs, ahead * paceIntervalMs(account, nowMs));

  const waitMs = Math.max(opensInMs, minuteMs - spreadMs) + spreadMs;
  if (waitMs === 0) return { waitMs, window: undefined };
  const isDay = dayMs > Math.max(pausedMs, minuteMs) || (day.left <= 0 && day.beyond === 0);
  return { waitMs, window: isDay ? 'DAY' : 'MINUTE' };
}
