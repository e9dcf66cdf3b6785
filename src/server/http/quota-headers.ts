import { tightestWindow } from '../../caller/quota.ts';
import type { QuotaView, QuotaWindow } from '../../caller/quota.ts';
import { DAY_MS, MINUTE_MS } from '../../common/plan.ts';

type QuotaHeaders = Readonly<Record<string, string>>;

/** Returns what makes the headers of a quota. It keeps the latest, which many hits share while their quota stays the same. */
export function createQuotaHeaders(): (quota: QuotaView, nowMs: number) => QuotaHeaders {
  let latest: { readonly quota: QuotaView; readonly headers: QuotaHeaders } | undefined;
  return (quota, nowMs) => {
    if (latest?.quota !== quota) latest = { quota, headers: quotaHeaders(quota, nowMs) };
    return latest.headers;
  };
}

/**
 * Shows a quota as the upstream does (pet-api.md, "Rate-limit headers"), which is the tightest window alone, and both windows as
 * draft-ietf-httpapi-ratelimit-headers-11 does.
 */
function quotaHeaders(quota: QuotaView, nowMs: number): QuotaHeaders {
  const tightest = tightestWindow(quota);
  if (!tightest) return {};
  const { limit, remaining, resetAt } = tightest;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    ...(resetAt && { 'x-ratelimit-reset': String(Math.ceil(Date.parse(resetAt) / 1000)) }),
    ratelimit: quota.windows.map((window) => quotaItem(window, nowMs)).join(', '),
    'ratelimit-policy': quota.windows.map(policyItem).join(', '),
  };
}

const WINDOW_SECONDS = { MINUTE: MINUTE_MS / 1_000, DAY: DAY_MS / 1_000 };

function policyItem({ window, limit }: QuotaWindow): string {
  return `"${window.toLowerCase()}";q=${limit};w=${WINDOW_SECONDS[window]}`;
}

/** A slot of time may end after its window, which no client expects. */
function quotaItem({ window, remaining, resetAt }: QuotaWindow, nowMs: number): string {
  const seconds = resetAt === null ? undefined : Math.ceil((Date.parse(resetAt) - nowMs) / 1000);
  const reset = seconds === undefined ? '' : `;t=${Math.max(0, Math.min(seconds, WINDOW_SECONDS[window]))}`;
  return `"${window.toLowerCase()}";r=${remaining}${reset}`;
}
