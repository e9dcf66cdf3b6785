import type { CallAnswer, Evidence, KeyMeaning, RateLimitHeaders } from '../common/call-answer.ts';
import { isRepeatable } from './outcome.ts';
import type { UpstreamOutcome } from './outcome.ts';

interface CallFacts {
  /** Whether the upstream may have received it. */
  readonly sent: boolean;
  /** Undefined without a response. */
  readonly status: number | undefined;
  readonly headers: RateLimitHeaders | undefined;
  /** Whether it was a list, which has no input that a client chose. */
  readonly isList: boolean;
  /** Whether a cache before the upstream responded. */
  readonly isCached: boolean;
}

/** Returns what the end of a call says of its key, of the upstream and of the windows: the one place that judges a response. */
export function evidenceOf(outcome: UpstreamOutcome<unknown>, call: CallFacts): CallAnswer {
  const { sent, status, headers, isList, isCached } = call;
  // A cache before the upstream is no witness, of anything.
  if (isCached) {
    return { sent, meaning: 'other', evidence: 'none', isOwn: false, rateLimit: headers && withoutLimits(headers) };
  }

  const isOwn = isOwnOf(outcome);
  return {
    sent,
    meaning: meaningOf(outcome, status),
    evidence: judge(outcome, status, isList),
    isOwn,
    // A proxy before the upstream may have limits of its own.
    rateLimit: headers && (isOwn ? headers : withoutLimits(headers)),
  };
}

function meaningOf({ kind }: UpstreamOutcome<unknown>, status = 0): KeyMeaning {
  if (kind === 'unauthenticated' || kind === 'rate-limited') return kind;
  if (status === 403) return 'forbidden';
  if (status >= 500) return 'failed';
  return kind === 'ok' && status !== 204 ? 'accepted' : 'other';
}

/**
 * A list has no input that a client chose, so whatever is no list is a failure of the upstream. Elsewhere a 4xx says that the
 * request is at fault (RFC 9110, section 15.5), unless its status asks for the same request again.
 */
function judge(outcome: UpstreamOutcome<unknown>, status: number | undefined, isList: boolean): Evidence {
  if (outcome.kind === 'ok') return 'works';
  if (status !== undefined && [401, 403, 429].includes(status)) return 'none';
  if (isList) return 'fails';

  switch (outcome.kind) {
    case 'not-found':
      return 'works';
    case 'route-gone':
      return 'no-route';
    case 'invalid':
    case 'wrong-base-path':
      return 'answers';
    case 'failed':
      return outcome.status >= 400 && outcome.status < 500 && !isRepeatable(outcome.status) ? 'answers' : 'fails';
    default:
      return 'fails';
  }
}

function withoutLimits(headers: RateLimitHeaders): RateLimitHeaders {
  return { ...headers, limit: undefined, remaining: undefined, reset: undefined };
}

/** Whether a response is JSON as the contract has it, or a 429, whose body no document shows. */
function isOwnOf(outcome: UpstreamOutcome<unknown>): boolean {
  if (outcome.kind === 'unreadable') return !outcome.isForeign;
  if (outcome.kind === 'failed') return outcome.error !== undefined;
  return ['forbidden', 'invalid', 'not-found', 'ok', 'rate-limited'].includes(outcome.kind);
}
