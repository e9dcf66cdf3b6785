import { PetqlError } from '../errors.ts';
import { MAY_BE_BANNED } from '../upstream/upstream-errors.ts';
import type { QuotaState } from './account/quota-state.ts';
import type { Wait } from './account/wait.ts';

/** A call that the throttle does not let through. */
export interface Refusal {
  readonly kind: 'refused';
  /**
   * `plan`: the plan allows no call before the deadline; `visitor-share`: the visitor has used as much as it leaves; `crowded`: the
   * queue is full; `late`: the deadline passed.
   */
  readonly reason: 'aborted' | 'banned' | 'crowded' | 'late' | 'plan' | 'stopping' | 'visitor-share';
  readonly window: 'DAY' | 'MINUTE';
  /** Returns the client's error, which says when to retry. A request with no-cache has one more way out. */
  readonly error: (hasNoCache?: boolean) => PetqlError;
}

/** The reasons that the throttle gives: of `plan`, `createRefusal` makes `banned` where the key may be. */
export type GivenReason = Exclude<Refusal['reason'], 'banned'>;

const MIN_RETRY_AFTER_MS = 1_000;

const WHY_REFUSED = {
  aborted: 'The request was aborted before its call was sent',
  banned: MAY_BE_BANNED,
  crowded: 'The queue of this API key is full, and nothing was sent',
  late: 'The request timed out in the queue, and nothing was sent',
  stopping: 'petql is stopping, and nothing was sent',
  'visitor-share': 'Your share of the quota is used, and the rest is for other visitors',
} as const;

/**
 * Makes a refusal from the expected wait.
 *
 * @param quotaState the key's quota; undefined before the first call.
 */
export function createRefusal(
  given: GivenReason,
  { waitMs, window = 'MINUTE', cause }: Wait,
  quotaState: QuotaState | undefined,
  nowMs: number,
): Refusal {
  const mayBeBanned = given === 'plan' && quotaState?.mayBeBanned === true && quotaState.pausedForMs > 0;
  const reason = mayBeBanned ? 'banned' : given;

  return {
    kind: 'refused',
    reason,
    window,
    // Built on demand, since most refusals end in cached data.
    error(hasNoCache = false) {
      const retryAfterMs =
        cause === 'no-contact' ? MIN_RETRY_AFTER_MS : Math.ceil(Math.max(MIN_RETRY_AFTER_MS, waitMs));
      const retryAt = new Date(nowMs + retryAfterMs).toISOString();
      const details = { retryAfterMs, retryAt, window };

      const why = reason === 'plan' ? whyExhausted(window, quotaState, cause) : WHY_REFUSED[reason];
      const retry = retryAfterMs < 120_000 ? `retry in ${Math.ceil(retryAfterMs / 1000)} s` : `retry at ${retryAt}`;
      const isQuota = reason === 'plan' || reason === 'visitor-share';
      const orElse = isQuota && hasNoCache ? ', or drop no-cache to allow cached data' : '';

      return new PetqlError(mayBeBanned ? 'FORBIDDEN' : 'RATE_LIMITED', `${why}; ${retry}${orElse}.`, { details });
    },
  };
}

function whyExhausted(window: Refusal['window'], quotaState: QuotaState | undefined, cause: Wait['cause']): string {
  if (cause === 'no-contact') return 'petql has no contact with Redis yet, and nothing was sent';
  if (!quotaState) return 'The rate plan of this API key allows no call before the deadline of the request';
  if (quotaState.pausedForMs > 0) return 'The pet API answered 429, so petql makes no call with this API key for now';
  if (cause === 'offline-share') return "Redis is unavailable, and this replica's share of the quota is used";
  const { plan, day, minute } = quotaState;
  const { limit } = window === 'DAY' ? day : minute;
  return `${plan === undefined ? '' : `${plan} plan: `}the quota of ${limit} calls per ${window.toLowerCase()} is exhausted`;
}
