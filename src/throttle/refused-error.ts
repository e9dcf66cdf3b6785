import { PetqlError } from '../errors.ts';
import { MAY_BE_BANNED } from '../upstream/upstream-errors.ts';
import type { Refused } from './passage.ts';
import type { Standing } from './standing.ts';

export interface RefusedContext {
  readonly nowMs: number;
  /** The key's quota; undefined before the first call. */
  readonly standing?: Standing | undefined;
  /** Whether the request rules out cached data. */
  readonly saysNoCache?: boolean;
}

/** The error of a call that the throttle did not let through. */
export function refusedError(
  { reason, window, ...refused }: Omit<Refused, 'kind'>,
  context: RefusedContext,
): PetqlError {
  const retryAfterMs = Math.ceil(refused.retryAfterMs);
  const retryAt = new Date(context.nowMs + retryAfterMs).toISOString();
  const details = { retryAfterMs, retryAt, window };
  const retry = retryAfterMs < 120_000 ? `retry in ${Math.ceil(retryAfterMs / 1000)} s` : `retry at ${retryAt}`;
  if (reason === 'banned') return new PetqlError('FORBIDDEN', `${MAY_BE_BANNED}; ${retry}.`, { details });
  const why = reason === 'plan' ? whyExhausted(window, context.standing) : WHY_REFUSED[reason];
  const unless = reason === 'plan' && context.saysNoCache ? ', or drop no-cache to allow cached data' : '';
  return new PetqlError('RATE_LIMITED', `${why}; ${retry}${unless}.`, { details });
}

function whyExhausted(window: Refused['window'], standing: Standing | undefined): string {
  if (!standing) return 'The rate plan of this API key allows no call before the deadline of the request';
  if (standing.pausedForMs > 0) return 'The pet API answered 429, so petql makes no call with this API key for now';
  const { plan, day, minute } = standing;
  const { limit } = window === 'DAY' ? day : minute;
  return `${plan === undefined ? '' : `${plan} plan: `}${limit} calls per ${window.toLowerCase()} are used up`;
}

const WHY_REFUSED = {
  aborted: 'The request was aborted before its call was sent',
  crowded: 'The queue of this API key is full, and nothing was sent',
  late: 'The request timed out in the queue, and nothing was sent',
  stopping: 'petql is stopping, and nothing was sent',
} as const;
