import type { ExecutionResult } from 'graphql';
import { tightestWindow } from '../caller/budget.ts';
import type { BudgetView } from '../caller/budget.ts';
import type { Usage } from '../caller/usage.ts';

/** Takes one header of an answer. */
export type SetHeader = (name: string, value: string) => void;

/** Sets the HTTP headers that tell of the caller's plan and the answer's age, beside what the body says of them. */
export function setAnswerHeaders(
  set: SetHeader,
  result: ExecutionResult,
  { budget, usage: { oldestAgeMs } }: { readonly budget: BudgetView | undefined; readonly usage: Usage },
): void {
  setRateLimit(set, budget);
  setRetryAfter(set, result);
  // Whole seconds (RFC 9111, section 5.1).
  if (oldestAgeMs !== undefined) set('age', String(Math.floor(oldestAgeMs / 1000)));
}

/** What has an age may be kept by whoever asked, and must be asked for again before it is used again. */
export function storageHeaders(hasAge: boolean): StorageHeaders {
  return hasAge ? KEPT : NOT_KEPT;
}

type StorageHeaders = Readonly<Record<'cache-control' | 'vary', string>>;

const KEPT: StorageHeaders = { 'cache-control': 'private, no-cache', vary: 'Authorization' };
const NOT_KEPT: StorageHeaders = { 'cache-control': 'private, no-store', vary: 'Authorization' };

/** 504 where the request takes stored answers alone, and nothing of it could be answered (RFC 9111, section 5.2.1.7). */
export function answerStatus({ data, errors = [] }: ExecutionResult): number | undefined {
  const nothing = errors.length > 0 && !Object.values(data ?? {}).some((value) => value !== null);
  return nothing && errors.every(({ extensions }) => extensions['code'] === 'NOT_CACHED') ? 504 : undefined;
}

/** Of the tightest window, under the upstream's own names (pet-api.md, "Rate-limit headers"). */
function setRateLimit(set: SetHeader, budget: BudgetView | undefined): void {
  const window = budget && tightestWindow(budget);
  if (!window) return;
  const { limit, remaining, resetAt } = window;
  set('x-ratelimit-limit', String(limit));
  set('x-ratelimit-remaining', String(remaining));
  if (resetAt) set('x-ratelimit-reset', String(Math.ceil(resetAt.getTime() / 1000)));
}

/** Where nothing could be answered but "come back later". */
function setRetryAfter(set: SetHeader, { data, errors = [] }: ExecutionResult): void {
  if (errors.length === 0 || Object.values(data ?? {}).some((value) => value !== null)) return;
  const waits = errors.map(({ extensions }) => extensions['retryAfterMs']);
  if (waits.every((wait) => typeof wait === 'number')) set('retry-after', String(Math.ceil(Math.max(...waits) / 1000)));
}
