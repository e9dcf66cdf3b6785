import type { ExecutionResult } from 'graphql';
import { tightestWindow } from '../caller/budget.ts';
import type { BudgetView } from '../caller/budget.ts';
import type { Usage } from '../caller/usage.ts';

/** The HTTP headers that tell of the caller's plan and the answer's age, beside what the body says of them. */
export function answerHeaders(
  result: ExecutionResult,
  budget: BudgetView | undefined,
  { oldestAgeMs }: Usage,
): Record<string, string> {
  const headers: Record<string, string> = {};
  addRateLimit(headers, budget);
  addRetryAfter(headers, result);
  // Whole seconds (RFC 9111, section 5.1).
  if (oldestAgeMs !== undefined) headers['age'] = String(Math.floor(oldestAgeMs / 1000));
  return headers;
}

/** What has an age may be kept by whoever asked, and must be asked for again before it is used again. */
export function storageHeaders(hasAge: boolean): Record<'cache-control' | 'vary', string> {
  return { 'cache-control': hasAge ? 'private, no-cache' : 'private, no-store', vary: 'Authorization' };
}

/** 504 where the request takes stored answers alone, and nothing of it could be answered (RFC 9111, section 5.2.1.7). */
export function answerStatus({ data, errors = [] }: ExecutionResult): number | undefined {
  const nothing = errors.length > 0 && !Object.values(data ?? {}).some((value) => value !== null);
  return nothing && errors.every(({ extensions }) => extensions['code'] === 'NOT_CACHED') ? 504 : undefined;
}

/** Of the tightest window, under the upstream's own names (pet-api.md, "Rate-limit headers"). */
function addRateLimit(headers: Record<string, string>, budget: BudgetView | undefined): void {
  const window = budget && tightestWindow(budget);
  if (!window) return;
  const { limit, remaining, resetAt } = window;
  headers['x-ratelimit-limit'] = String(limit);
  headers['x-ratelimit-remaining'] = String(remaining);
  if (resetAt) headers['x-ratelimit-reset'] = String(Math.ceil(resetAt.getTime() / 1000));
}

/** Where nothing could be answered but "come back later". */
function addRetryAfter(headers: Record<string, string>, { data, errors = [] }: ExecutionResult): void {
  if (errors.length === 0 || Object.values(data ?? {}).some((value) => value !== null)) return;
  const waits = errors.map(({ extensions }) => extensions['retryAfterMs']);
  if (waits.every((wait) => typeof wait === 'number'))
    headers['retry-after'] = String(Math.ceil(Math.max(...waits) / 1000));
}
