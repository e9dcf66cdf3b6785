import type { PlanWindow } from '../common/plan.ts';

/**
 * What is left of a quota, as everybody sees it: headers, `rateLimit`, logs, metrics and reports. Plain JSON, with times of this
 * process's clock in ISO 8601, and numbers that GraphQL can hold.
 */
export interface QuotaView {
  /** "Free", or the figures of a plan without a name: "500/20000"; null while it is not known. */
  readonly plan: string | null;
  /** The windows whose limit is known: of all replicas, as this process saw them last. */
  readonly windows: readonly QuotaWindow[];
  /** The end of the pause after a 429; null while the key is not paused. */
  readonly pausedUntil: string | null;
}

export interface QuotaWindow {
  readonly window: PlanWindow;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Null while nothing was called in the window. */
  readonly resetAt: string | null;
}

/** Returns the window with the fewest calls left. */
export function tightestWindow({ windows }: QuotaView): QuotaWindow | undefined {
  const [first, second] = windows;
  return first && second && second.remaining < first.remaining ? second : first;
}
