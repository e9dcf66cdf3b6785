import type { CallAnswer } from './account/call-end.ts';
import type { KeyQuota } from './line-view.ts';
import type { LineCall, LineClaim } from './line-call.ts';
import type { RejectedKey } from './rejected-key.ts';
import type { RetryBudget } from './retry-budget.ts';

/** What a call of one key changes beside its account. */
export interface KeyLedger extends KeyQuota {
  /** Shared by all callers. */
  readonly retryBudget: RetryBudget;
  readonly rejectedKey: RejectedKey;
}

/** The record of one call that has its permit, a read or a write: what it uses, and what its response says of the key. */
export class SentCall {
  readonly #ledger: KeyLedger;
  readonly #call: LineCall;
  readonly #payer: LineClaim;
  readonly #sentAtMs: number;

  /** Charges the visitor and the refresh budget: the next decision goes by it. */
  constructor(ledger: KeyLedger, call: LineCall, payer: LineClaim, sentAtMs: number) {
    this.#ledger = ledger;
    this.#call = call;
    this.#payer = payer;
    this.#sentAtMs = sentAtMs;

    const { accounts, apiKey, refreshBudget, replicas, visitors } = ledger;
    visitors.charge(payer.visitor, sentAtMs);
    refreshBudget.recordCall(accounts.quotaState(apiKey)?.day, replicas());
  }

  /** Returns what was charged for a call that was not sent after all; else feeds the retry budget, and judges the key. */
  end({ meaning, sent }: CallAnswer): void {
    const { accounts, apiKey, refreshBudget, rejectedKey, retryBudget, visitors } = this.#ledger;
    if (!sent) {
      visitors.refund(this.#payer.visitor, this.#sentAtMs);
      refreshBudget.refund();
      return;
    }

    if (!this.#call.isRetry) retryBudget.recordCall();
    // Right after a 429 a 401 may be a ban, which pauses the key instead.
    const mayBeBanned = (accounts.quotaState(apiKey)?.incidents ?? 0) > 0;
    if (meaning === 'accepted') rejectedKey.accept();
    else if (meaning === 'unauthenticated' && !mayBeBanned) rejectedKey.reject();
  }
}
