import type { QuotaView, QuotaWindow } from '../caller/quota.ts';
import { PLANS, planName, ownLimitOf } from '../common/plan.ts';

interface WindowTotals {
  limit: number;
  remaining: number;
  /** Used share of the fullest window, from 0 to 1. */
  maxShare: number;
}

/** Sums over the keys of one plan. */
export interface PlanTotals {
  keys: number;
  readonly windows: Map<QuotaWindow['window'], WindowTotals>;
}

const PLAN_NAMES: ReadonlySet<string> = new Set(Object.values(PLANS).map(planName));
const PUBLISHED_LIMITS = Object.values(PLANS).flatMap(({ perMinute, perDay }) => [perMinute, perDay]);

/**
 * Adds the quota of one key to the totals of its plan.
 *
 * @param planShare the percentage of each limit that the quota shows.
 */
export function addQuota({ plan: name, windows }: QuotaView, plans: Map<string, PlanTotals>, planShare: number): void {
  const label = labelOf(name, windows, planShare);
  const totals = plans.get(label) ?? { keys: 0, windows: new Map() };
  plans.set(label, totals);

  totals.keys += 1;
  for (const { window, limit, remaining, used } of windows) {
    const sums = totals.windows.get(window) ?? { limit: 0, remaining: 0, maxShare: 0 };
    totals.windows.set(window, sums);
    sums.limit += limit;
    sums.remaining += remaining;
    sums.maxShare = Math.max(sums.maxShare, Math.min(1, used / Math.max(1, limit)));
  }
}

/** Returns the label of a plan. A plan without a name is custom where one of its limits is in no published plan. */
function labelOf(plan: string | null, windows: QuotaView['windows'], planShare: number): string {
  if (plan !== null) return PLAN_NAMES.has(plan) ? plan : 'custom';
  const published = new Set(PUBLISHED_LIMITS.map((limit) => ownLimitOf(limit, planShare)));
  return windows.every(({ limit }) => published.has(limit)) ? 'unknown' : 'custom';
}
