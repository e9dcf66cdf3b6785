import { MAY_BE_BANNED, PetqlError, retryIn } from '../common/errors.ts';
import type { PlanWindow } from '../common/plan.ts';
import { SOON_MS } from '../common/time-limit.ts';
import type { QuotaState } from '../quota/account/quota-state.ts';
import type { Wait } from '../quota/account/wait.ts';

/** A call that petql does not send. */
export interface Refusal {
  /**
   * `quota`: the quota allows no call before the deadline, `background`: nor what is left to others; `banned`: and the key may be.
   * `visitor-share`: the visitor has used as much as it leaves; `crowded`: too many wait; `late`: petql itself was late;
   * `in-flight`: too many calls are in flight; `outage`: the upstream fails; `stopping`, `aborted`: petql stops, the client left.
   */
  readonly reason:
    | 'aborted'
    | 'background'
    | 'banned'
    | 'crowded'
    | 'in-flight'
    | 'late'
    | 'outage'
    | 'quota'
    | 'stopping'
    | 'visitor-share';
  readonly window: PlanWindow;
  /** Returns the client's error, which says when to retry. */
  readonly error: () => PetqlError;
}

/** Why a call is refused: of `quota`, `createRefusal` makes `banned` where the key may be. */
export type GivenReason = Exclude<Refusal['reason'], 'banned'>;

const WHY_REFUSED = {
  background: 'Background operations leave half of each minute and a fifth of the day to others',
  aborted: 'The request was aborted before its call was sent',
  banned: MAY_BE_BANNED,
  crowded: 'Too many calls of this API key wait, and nothing was sent',
  'in-flight': 'As many calls of this API key are in flight as petql allows, and nothing was sent',
  late: 'The request timed out before its call could start, and nothing was sent',
  outage: 'The pet API fails, and petql makes one call at a time until it works again; nothing was sent',
  stopping: 'petql is stopping, and nothing was sent',
  'visitor-share': 'Your share of the quota is used, and the rest is for other visitors',
} as const;

/** What a refusal is made of. */
export interface Refused {
  readonly reason: GivenReason;
  /** Why it would wait. */
  readonly wait: Wait;
  /** When the client is told to return. */
  readonly retryAfterMs: number;
  /** The key's quota; undefined before the first call. */
  readonly quotaState: QuotaState | undefined;
  /** By the wall clock. */
  readonly nowMs: number;
}

export function createRefusal({ reason: given, wait, quotaState, nowMs, ...refused }: Refused): Refusal {
  const { window = 'MINUTE', cause } = wait;
  const mayBeBanned = given === 'quota' && quotaState?.mayBeBanned === true && quotaState.pausedForMs > 0;
  const reason = mayBeBanned ? 'banned' : given;

  return {
    reason,
    window,
    // Built on demand, since most refusals end in cached data.
    error() {
      const retryAfterMs = cause === 'no-contact' ? SOON_MS : Math.ceil(refused.retryAfterMs);
      const again = retryIn(retryAfterMs, nowMs);

      const isBesideProbe = reason === 'in-flight' && quotaState?.isProbingAfter429 === true;
      const isByQuota = reason === 'quota' || isBesideProbe;
      const why = isByQuota ? whyExhausted(window, quotaState, cause) : WHY_REFUSED[reason];
      const retry =
        retryAfterMs < 120_000 ? `retry in ${Math.ceil(retryAfterMs / 1000)} s` : `retry at ${again.retryAt}`;

      const message = `${why}; ${retry}.`;
      if (reason === 'outage') {
        return new PetqlError('DOWNSTREAM_SERVICE_ERROR', message, { details: { ...again, upstream: {} } });
      }
      return new PetqlError(mayBeBanned ? 'FORBIDDEN' : 'RATE_LIMITED', message, { details: { ...again, window } });
    },
  };
}

function whyExhausted(window: Refusal['window'], quotaState: QuotaState | undefined, cause: Wait['cause']): string {
  if (cause === 'no-contact') return 'petql has no contact with Redis yet, and nothing was sent';
  if (!quotaState) return 'The rate plan of this API key allows no call before the deadline of the request';
  if (quotaState.pausedForMs > 0) return 'The pet API answered 429, so petql makes no call with this API key for now';
  if (quotaState.isProbingAfter429) return 'The pet API answered 429, and one call finds out whether it answers again';
  if (cause === 'offline-share') return 'Redis is unavailable, and this replica may make no call yet';
  const { plan, day, minute } = quotaState;
  const { limit } = window === 'DAY' ? day : minute;
  return `${plan === undefined ? '' : `${plan} plan: `}the quota of ${limit} calls per ${window.toLowerCase()} is exhausted`;
}
