import type { Standing, WindowStanding } from './ledger.ts';

/** How a caller stands now that stood like this a while ago, if nothing happened since. */
export function agedStanding(standing: Standing, ageMs: number): Standing {
  return {
    ...standing,
    minute: agedWindow(standing.minute, ageMs),
    day: agedWindow(standing.day, ageMs),
    dayFreeInMs: Math.max(0, standing.dayFreeInMs - ageMs),
    waitMs: Math.max(0, standing.waitMs - ageMs),
    pausedForMs: Math.max(0, standing.pausedForMs - ageMs),
  };
}

function agedWindow(window: WindowStanding, ageMs: number): WindowStanding {
  const resetInMs = Math.max(0, window.resetInMs - ageMs);
  // Its reset is over: what the next one holds is not known before a probe.
  if (window.mode === 'told' && resetInMs === 0)
    return { ...window, mode: 'unknown', used: 0, remaining: window.limit, resetInMs };
  return { ...window, resetInMs };
}
