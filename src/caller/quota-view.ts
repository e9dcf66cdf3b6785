import type { PlanWindow } from '../common/plan.ts';
import type { QuotaState } from '../quota/account/quota-state.ts';
import type { QuotaView, QuotaWindow } from './quota.ts';

/** GraphQL's Int holds no more, and the headers of an unlimited plan may. */
const MAX_SHOWN = 2 ** 31 - 1;

/** Returns the quota of a key or of a visitor. Its durations are from `nowMs`, which is the wall clock's. */
export function quotaView(
  { plan, minute, day, pausedForMs }: Pick<QuotaState, 'day' | 'minute' | 'pausedForMs' | 'plan'>,
  nowMs: number,
): QuotaView {
  const windows: QuotaWindow[] = [];
  if (minute.isKnown) windows.push(windowView('MINUTE', minute, nowMs));
  if (day.isKnown) windows.push(windowView('DAY', day, nowMs));
  return { plan: plan ?? null, windows, pausedUntil: timeIn(pausedForMs, nowMs) };
}

function windowView(
  window: PlanWindow,
  { limit, used, remaining, resetInMs }: QuotaState['day'],
  nowMs: number,
): QuotaWindow {
  return {
    window,
    limit: shown(limit),
    used: shown(used),
    remaining: shown(remaining),
    resetAt: timeIn(resetInMs, nowMs),
  };
}

function timeIn(ms: number, nowMs: number): string | null {
  return ms > 0 ? new Date(nowMs + ms).toISOString() : null;
}

function shown(calls: number): number {
  return Math.min(calls, MAX_SHOWN);
}
