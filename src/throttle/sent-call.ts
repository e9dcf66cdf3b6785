import type { CallAnswer } from '../call-answer.ts';
import type { KeyQuota } from './key-quota.ts';
import type { LineCall, LineClaim } from './line-call.ts';
import type { RetryBudget } from './retry-budget.ts';

/** The record of one call that has its permit, a read or a write: what it uses, and what its response says of the key. */
export class SentCall {
  readonly #quota: KeyQuota;
  readonly #call: LineCall;
  readonly #payer: LineClaim;
  readonly #sentAtMs: number;

  constructor(quota: KeyQuota, call: LineCall, payer: LineClaim, sentAtMs: number) {
    this.#quota = quota;
    this.#call = call;
    this.#payer = payer;
    this.#sentAtMs = sentAtMs;
    quota.charge(payer.request.visitor, sentAtMs);
    quota.outage.begin();
  }

  /**
   * Refunds a call that was not sent after all; of any other it feeds the retry budget, and judges the key and the upstream.
   *
   * @param isPaused whether the call has paused the key.
   * @returns whether the upstream rejects the key.
   */
  end(answer: CallAnswer, retryBudget: RetryBudget, isPaused: boolean): boolean {
    const { meaning, sent } = answer;
    const quota = this.#quota;
    quota.outage.end(this.#call.outageKind, answer, { sentAtMs: this.#sentAtMs, isPaused, isProven: quota.isProven });
    if (!sent) {
      quota.refund(this.#payer.request.visitor, this.#sentAtMs);
      return false;
    }

    if (!this.#call.isRetry) retryBudget.recordCall();
    if (meaning === 'accepted') quota.accept();
    // Right after a 429 a 401 may be a ban, which pauses the key instead.
    const isRejected = meaning === 'unauthenticated' && !quota.isAfter429;
    if (isRejected) quota.reject();
    return isRejected;
  }
}
