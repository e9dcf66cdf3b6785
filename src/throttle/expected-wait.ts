import type { Standing } from './ledger.ts';

const MINUTE_MS = 60_000;

/** How long a waiter will wait for its turn, and for what. */
export interface ExpectedWait {
  readonly waitMs: number;
  /** What makes it wait longest; undefined when nothing is known to. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
}

/**
 * The wait of whoever has `ahead` waiters before it. A lower bound: what is not known counts as free, so nobody is
 * refused who might have been served.
 */
export function expectedWait({ minute, day, pausedForMs }: Standing, ahead: number): ExpectedWait {
  let wait: ExpectedWait = { waitMs: pausedForMs, window: pausedForMs > 0 ? 'MINUTE' : undefined };
  const longer = (waitMs: number, window: 'DAY' | 'MINUTE') => {
    if (waitMs > wait.waitMs) wait = { waitMs, window };
  };
  if (minute.mode !== 'unknown' && ahead >= minute.remaining) {
    // This window serves `remaining`, each later one a whole limit.
    const laterWindows = Math.floor((ahead - minute.remaining) / Math.max(1, minute.limit));
    longer(minute.resetInMs + laterWindows * MINUTE_MS, 'MINUTE');
  }
  // A day that is used up allows no probe either.
  if ((day.mode !== 'unknown' || day.remaining <= 0) && ahead >= day.remaining) longer(day.resetInMs, 'DAY');
  return wait;
}
