import { tightestWindow } from '../../caller/quota.ts';
import type { QuotaView, QuotaWindow } from '../../caller/quota.ts';

/**
 * Shows a quota as the upstream does (pet-api.md, "Rate-limit headers"), which is the tightest window alone, and both windows as
 * draft-ietf-httpapi-ratelimit-headers-11 does.
 */
export function quotaHeaders(quota: QuotaView | undefined, nowMs: number): Record<string, string> {
  const tightest = quota && tightestWindow(quota);
  if (!tightest) return {};
  const { limit, remaining, resetAt } = tightest;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    ...(resetAt && { 'x-ratelimit-reset': String(Math.ceil(resetAt.getTime() / 1000)) }),
    ratelimit: quota.windows.map((window) => quotaItem(window, nowMs)).join(', '),
    'ratelimit-policy': quota.windows.map(policyItem).join(', '),
  };
}

const WINDOW_SECONDS = { MINUTE: 60, DAY: 86_400 };

function policyItem({ window, limit }: QuotaWindow): string {
  return `"${window.toLowerCase()}";q=${limit};w=${WINDOW_SECONDS[window]}`;
}

/** A slot of time may end after its window, which no client expects. */
function quotaItem({ window, remaining, resetAt }: QuotaWindow, nowMs: number): string {
  const seconds = Math.ceil(((resetAt?.getTime() ?? 0) - nowMs) / 1000);
  const reset = resetAt ? `;t=${Math.max(0, Math.min(seconds, WINDOW_SECONDS[window]))}` : '';
  return `"${window.toLowerCase()}";r=${remaining}${reset}`;
}
