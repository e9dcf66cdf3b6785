import { quotaViewOf, tightestWindow } from '../../caller/quota.ts';
import type { QuotaWindow, ShownQuota } from '../../caller/quota.ts';
import { DAY_MS, MINUTE_MS } from '../../plan.ts';

type QuotaHeaders = Readonly<Record<string, string>>;

/** Returns what makes the headers of a quota. It keeps the latest, which many hits share while their quota stays the same. */
export function createQuotaHeaders(): (quota: ShownQuota, nowMs: number) => QuotaHeaders {
  let latest: { readonly quota: ShownQuota; readonly headers: QuotaHeaders } | undefined;
  return (quota, nowMs) => {
    if (latest?.quota !== quota) latest = { quota, headers: quotaHeaders(quota, nowMs) };
    return latest.headers;
  };
}

/**
 * Shows a quota as the upstream does (pet-api.md, "Rate-limit headers"), which is the tightest window alone, and both windows as
 * draft-ietf-httpapi-ratelimit-headers-11 does.
 */
function quotaHeaders(quota: ShownQuota, nowMs: number): QuotaHeaders {
  const view = quotaViewOf(quota, undefined, nowMs);
  const tightest = tightestWindow(view);
  if (!tightest) return {};
  const { limit, remaining, resetAt } = tightest;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    ...(resetAt && { 'x-ratelimit-reset': String(Math.ceil(resetAt.getTime() / 1000)) }),
    ratelimit: view.windows.map((window) => quotaItem(window, nowMs)).join(', '),
    'ratelimit-policy': view.windows.map(policyItem).join(', '),
  };
}

const WINDOW_SECONDS = { MINUTE: MINUTE_MS / 1_000, DAY: DAY_MS / 1_000 };

function policyItem({ window, limit }: QuotaWindow): string {
  return `"${window.toLowerCase()}";q=${limit};w=${WINDOW_SECONDS[window]}`;
}

/** A slot of time may end after its window, which no client expects. */
function quotaItem({ window, remaining, resetAt }: QuotaWindow, nowMs: number): string {
  const seconds = Math.ceil(((resetAt?.getTime() ?? 0) - nowMs) / 1000);
  const reset = resetAt ? `;t=${Math.max(0, Math.min(seconds, WINDOW_SECONDS[window]))}` : '';
  return `"${window.toLowerCase()}";r=${remaining}${reset}`;
}
