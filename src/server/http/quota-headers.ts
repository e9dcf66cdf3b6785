import { tightestWindow } from '../../caller/quota.ts';
import type { QuotaView, QuotaWindow } from '../../caller/quota.ts';

/**
 * Shows a quota as the upstream does (pet-api.md, "Rate-limit headers"), which is the tightest window alone, and both windows as
 * draft-ietf-httpapi-ratelimit-headers-11 does.
 */
export function addQuota(headers: Record<string, string>, quota: QuotaView | undefined, nowMs: number): void {
  const tightest = quota && tightestWindow(quota);
  if (!tightest) return;
  const { limit, remaining, resetAt } = tightest;
  headers['x-ratelimit-limit'] = String(limit);
  headers['x-ratelimit-remaining'] = String(remaining);
  if (resetAt) headers['x-ratelimit-reset'] = String(Math.ceil(resetAt.getTime() / 1000));
  headers['ratelimit'] = quota.windows.map((window) => quotaItem(window, nowMs)).join(', ');
  headers['ratelimit-policy'] = quota.windows.map(policyItem).join(', ');
}

const NAMES = { MINUTE: 'minute', DAY: 'day' };
const WINDOW_SECONDS = { MINUTE: 60, DAY: 86_400 };

function policyItem({ window, limit }: QuotaWindow): string {
  return `"${NAMES[window]}";q=${limit};w=${WINDOW_SECONDS[window]}`;
}

/** A slot of time may end after its window, which no client expects. */
function quotaItem({ window, remaining, resetAt }: QuotaWindow, nowMs: number): string {
  const seconds = Math.ceil(((resetAt?.getTime() ?? 0) - nowMs) / 1000);
  const reset = resetAt ? `;t=${Math.max(0, Math.min(seconds, WINDOW_SECONDS[window]))}` : '';
  return `"${NAMES[window]}";r=${remaining}${reset}`;
}
