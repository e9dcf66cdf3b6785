import type { Rejection } from '../closed/closed-for-key.ts';
import type { KeyQuota } from '../quota/key-quota.ts';
import type { LineAnswer, LineCall, LineClaim } from './line-call.ts';

/** The record of one call that has its permit, a read or a write: what it uses, and what its end closes or opens. */
export class SentCall {
  readonly #quota: KeyQuota;
  readonly #call: LineCall;
  readonly #payer: LineClaim;
  readonly #sentAtMs: number;
  /** Whether it is the try of a closed API. */
  readonly #isTry: boolean;

  constructor(quota: KeyQuota, call: LineCall, payer: LineClaim, sentAtMs: number) {
    this.#quota = quota;
    this.#call = call;
    this.#payer = payer;
    this.#sentAtMs = sentAtMs;
    quota.charge(payer.request.visitor, sentAtMs);
    this.#isTry = quota.closed.begin(call.operation, { key: quota, isList: call.isList });
  }

  /** Records what its response shows, and refunds a call that was not sent after all. Returns what it does to the key. */
  end(answer: LineAnswer): Rejection {
    const { evidence, failure = {}, meaning, sent, status } = answer;
    const { isList, isRetry, operation, shownInput } = this.#call;
    const quota = this.#quota;
    const { name, isProven } = quota;
    const details = { status, ...failure };
    const call = {
      operation,
      isList,
      isRetry,
      shownInput,
      sentAtMs: this.#sentAtMs,
      evidence,
      meaning,
      key: { name, isProven },
      details,
    };

    quota.closed.end(call, this.#isTry);
    if (!sent) {
      quota.refund(this.#payer.request.visitor, this.#sentAtMs);
      return 'none';
    }

    if (!isRetry && isProven) quota.retryBudget.recordCall();
    if (meaning === 'accepted') quota.recordAcceptance();
    // Right after a 429 it may be a ban, which the account finds out.
    if (quota.isAfter429) return 'none';
    if (meaning === 'forbidden' && isList) quota.recordForbiddenList();
    return meaning === 'unauthenticated' ? quota.recordUnauthenticated(call) : 'none';
  }

  /** Ends a call that petql itself could not make. */
  skip(): void {
    const { isList, operation } = this.#call;
    this.#quota.closed.skip(operation, { isList, isTry: this.#isTry });
  }
}
