import { tightestWindow } from '../../caller/quota.ts';
import type { QuotaView, QuotaWindow } from '../../caller/quota.ts';
import type { CheckedOptions } from '../../settings.ts';
import { createCors } from './cors.ts';
import type { HttpRequest, HttpResponse } from './http-message.ts';

/** On every response that does not say otherwise: no browser guesses a type, runs or frames it. */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/** Returns a function that adds the headers that every response has. */
export function createCommonHeaders(settings: CheckedOptions) {
  const corsOf = createCors(settings);
  // Caches keep the responses for each origin apart.
  const origin = settings.corsOrigins.length > 0 && !settings.corsOrigins.includes('*') ? 'Origin' : undefined;
  return (request: HttpRequest, { status, headers, body }: HttpResponse, id: string): HttpResponse => {
    const isPrivate = headers['cache-control'] === undefined;
    const vary = [isPrivate && 'Authorization', headers['vary'], origin].filter(Boolean).join(', ');
    const common: Record<string, string> = { ...SECURITY_HEADERS, ...headers, ...corsOf(request), 'x-request-id': id };
    // A response with an age may be stored by its client, and must be revalidated.
    if (isPrivate) common['cache-control'] = headers['age'] === undefined ? 'private, no-store' : 'private, no-cache';
    if (vary) common['vary'] = vary;
    return { status, headers: common, body };
  };
}

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

function quotaItem({ window, remaining, resetAt }: QuotaWindow, nowMs: number): string {
  const reset = resetAt ? `;t=${Math.max(0, Math.ceil((resetAt.getTime() - nowMs) / 1000))}` : '';
  return `"${window.toLowerCase()}";r=${remaining}${reset}`;
}
