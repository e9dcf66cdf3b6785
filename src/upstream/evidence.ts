import type { CallAnswer, KeyMeaning, RateLimitHeaders, UpstreamHealth } from '../call-answer.ts';
import type { UpstreamOutcome } from './outcome.ts';

interface EndedCall {
  /** Whether the upstream may have received it. */
  readonly sent: boolean;
  /** Undefined without a response. */
  readonly status: number | undefined;
  readonly headers: RateLimitHeaders | undefined;
}

/** Returns what the end of a call says of its key, of the upstream and of the windows: judged here once, whatever the call was for. */
export function evidenceOf(outcome: UpstreamOutcome<unknown>, { sent, status, headers }: EndedCall): CallAnswer {
  const meaning = meaningOf(outcome, status);
  return { sent, meaning, health: HEALTH[outcome.kind], rateLimit: headers && ownLimits(outcome, headers) };
}

function meaningOf({ kind }: UpstreamOutcome<unknown>, status = 0): KeyMeaning {
  if (kind === 'unauthenticated' || kind === 'forbidden' || kind === 'rate-limited') return kind;
  if (status >= 500) return 'failed';
  return kind === 'ok' && status !== 204 ? 'accepted' : 'other';
}

/** What each outcome shows of the upstream; nothing where it is about the key or about a route. */
const HEALTH: { readonly [Kind in UpstreamOutcome<unknown>['kind']]: UpstreamHealth } = {
  // What only an upstream that works answers.
  ok: 'works',
  invalid: 'works',
  'not-found': 'works',
  failed: 'fails',
  'no-answer': 'fails',
  unreadable: 'fails',
  'wrong-base-path': 'fails',
  forbidden: 'rejects',
  'rate-limited': 'unknown',
  'route-gone': 'unknown',
  unauthenticated: 'unknown',
};

/** A proxy before the upstream may have limits of its own: those of a response that is not the upstream's own do not count. */
function ownLimits(outcome: UpstreamOutcome<unknown>, headers: RateLimitHeaders): RateLimitHeaders {
  return isOwn(outcome) ? headers : { ...headers, limit: undefined, remaining: undefined, reset: undefined };
}

/** Whether a response is JSON as the contract has it, or a 429, whose body no document shows. */
function isOwn(outcome: UpstreamOutcome<unknown>): boolean {
  if (outcome.kind === 'unreadable') return !outcome.isForeign;
  if (outcome.kind === 'failed') return outcome.error !== undefined;
  return ['ok', 'invalid', 'not-found', 'rate-limited'].includes(outcome.kind);
}
