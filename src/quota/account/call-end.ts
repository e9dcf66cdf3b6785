import type { CallAnswer } from '../../common/call-answer.ts';
import { fail, lose, pauseKey, refund, reject, succeed } from './account.ts';
import type { CallResponse, RateLimited } from './call-response.ts';
import type { Account, Permit } from './format.ts';
import { headerLimits } from './header-limits.ts';
import { inFlight, ownCount } from './window.ts';
import type { Moment } from './window.ts';

export type CallEnd =
  /** The call was not sent. */
  | { readonly kind: 'unused' }
  /** It was sent, without a response. */
  | { readonly kind: 'lost' }
  /** A 401 or 403: only its headers matter. */
  | ({ readonly kind: 'rejected'; readonly isUnauthenticated: boolean } & CallResponse)
  /** A 5xx, or a response that is not the upstream's own. */
  | ({ readonly kind: 'failed' } & CallResponse)
  /** Any other status; `isProof`: the upstream accepts the key. */
  | ({ readonly kind: 'succeeded'; readonly isProof: boolean } & CallResponse)
  | ({ readonly kind: 'rate-limited' } & RateLimited);

interface SettledCall {
  readonly tookMs: number;
  readonly nowMs: number;
  /** Whether a 401 or 403 to it is about the key: it is a list, or no list can tell. */
  readonly isDecisive: boolean;
}

/** Returns how the call of a permit ended, from its response. */
export function callEndOf(
  permit: Permit,
  { isOwn, meaning, rateLimit, sent }: CallAnswer,
  { tookMs, nowMs, isDecisive }: SettledCall,
): CallEnd {
  if (!sent) return { kind: 'unused' };
  if (!rateLimit) return { kind: 'lost' };

  const isUnauthenticated = meaning === 'unauthenticated';
  // The headers for an unknown key describe no plan.
  const headers = isUnauthenticated ? undefined : headerLimits(rateLimit, nowMs);
  const response = { headers, tookMs };

  const isRejected = isUnauthenticated || meaning === 'forbidden';
  const mayBeBanned = isRejected && permit.isProbe && isDecisive;
  if (meaning === 'rate-limited' || mayBeBanned) {
    return { kind: 'rate-limited', ...response, retryAfterMs: rateLimit.retryAfterMs ?? 0, mayBeBanned };
  }
  if (isRejected) return { kind: 'rejected', isUnauthenticated, ...response };
  if (meaning === 'failed' || !isOwn) return { kind: 'failed', ...response };
  return { kind: 'succeeded', isProof: meaning === 'accepted', ...response };
}

/** Whether the store has to keep the account: made-up keys must not fill it. */
export function isWorthKeeping(account: Account, end: CallEnd | undefined, nowMs: number): boolean {
  if (account.isProven || nowMs < account.pause.untilMs) return true;
  const isMadeUp = end?.kind === 'rejected' && end.isUnauthenticated;
  return isMadeUp ? inFlight(account, nowMs) > 0 : ownCount(account.day) > 0;
}

/** Settles a permit by the end of its call. */
export function applyEnd(account: Account, permit: Permit, end: CallEnd, moment: Moment): void {
  if (end.kind === 'succeeded') account.isProven ||= end.isProof;

  if (end.kind === 'unused') refund(account, permit);
  else if (end.kind === 'lost') lose(account, permit, moment);
  else if (end.kind === 'rejected') reject(account, permit, end, moment);
  else if (end.kind === 'failed') fail(account, permit, end, moment);
  else if (end.kind === 'succeeded') succeed(account, permit, end, moment);
  else pauseKey(account, permit, end, moment);
}
