import type { Arrival } from './history.ts';

/** How much of what the windows of a span allow was used. */
export interface Usage {
  readonly sent: number;
  readonly allowed: number;
}

export interface Span {
  /** By the upstream's clock. */
  readonly fromMs: number;
  /** Whole windows. */
  readonly minutes: number;
}

const MINUTE_MS = 60_000;

/**
 * Of windows that begin with the clock's minutes: the calls that were served in the span, and as many times the limit as
 * it has windows. The span has to begin with a minute.
 */
export function usageOfFixed(arrivals: readonly Arrival[], perMinute: number, { fromMs, minutes }: Span): Usage {
  const untilMs = fromMs + minutes * MINUTE_MS;
  const sent = arrivals.filter(({ atMs, status }) => served(status) && atMs >= fromMs && atMs < untilMs).length;
  return { sent, allowed: perMinute * minutes };
}

/**
 * Of a window that looks back from each moment: how full it was, on average over the span. Each call lies in it for a
 * minute, so it counts for the part of its minute that lies in the span. Counting whole calls instead would make the
 * figure depend on whether the span's ends fall before or after a burst.
 */
export function usageOfSliding(arrivals: readonly Arrival[], perMinute: number, { fromMs, minutes }: Span): Usage {
  const untilMs = fromMs + minutes * MINUTE_MS;
  let filledMs = 0;
  for (const { atMs, status } of arrivals) {
    if (served(status)) filledMs += Math.max(0, Math.min(atMs + MINUTE_MS, untilMs) - Math.max(atMs, fromMs));
  }
  return { sent: Math.round(filledMs / MINUTE_MS), allowed: perMinute * minutes };
}

export function shareOf({ sent, allowed }: Usage): number {
  return sent / allowed;
}

function served(status: number): boolean {
  return status >= 200 && status < 300;
}
