import type { Standing, WindowStanding } from '../throttle/ledger.ts';

/** Whether so many calls fit what is left of the plan. */
export interface BudgetFit {
  /** How long until the last of them can be sent, as far as is known; 0 where all of them fit now. */
  readonly waitMs: number;
  /** What makes them wait longest. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
}

const LENGTH_MS = { MINUTE: 60_000, DAY: 86_400_000 } as const;

/** @param calls those that wait already among them. */
export function budgetFit({ minute, day, pausedForMs }: Standing, calls: number): BudgetFit {
  if (calls === 0) return { waitMs: 0, window: undefined };
  const waits = [
    { waitMs: pausedForMs, window: 'MINUTE' },
    { waitMs: waitOf(minute, LENGTH_MS.MINUTE, calls), window: 'MINUTE' },
    { waitMs: waitOf(day, LENGTH_MS.DAY, calls), window: 'DAY' },
  ] as const;
  const longest = waits.reduce((one, other) => (other.waitMs > one.waitMs ? other : one));
  return longest.waitMs > 0 ? longest : { waitMs: 0, window: undefined };
}

/** This window serves what is left of it, each later one a whole limit. One that is not known may be whole yet. */
function waitOf({ mode, limit, remaining, resetInMs }: WindowStanding, lengthMs: number, calls: number): number {
  if (calls <= remaining) return 0;
  const laterWindows = Math.floor((calls - remaining - 1) / Math.max(1, limit));
  const resetMs = mode === 'unknown' || resetInMs === 0 ? lengthMs : resetInMs;
  return resetMs + laterWindows * lengthMs;
}
