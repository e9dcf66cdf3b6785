import type { Clock } from '../common/clock.ts';
import type { Events } from '../common/events.ts';
import type { PetqlError } from '../common/errors.ts';
import type { NameOf } from '../store/names.ts';
import type { QuotaState } from './account/quota-state.ts';
import { KeyAccount } from './key-account.ts';
import type { AccountParts } from './key-account.ts';
import type { ClosedApi, JudgedCall, Turn } from '../closed/closed-api.ts';
import { ClosedForKey } from '../closed/closed-for-key.ts';
import type { Rejection } from '../closed/closed-for-key.ts';
import type { ClosedOperations } from '../closed/closed-operations.ts';
import { RefreshBudget } from './refresh-budget.ts';
import type { RejectedKeys } from '../closed/rejected-keys.ts';
import { RetryBudget } from '../closed/retry-budget.ts';
import type { ServerKeyState } from '../closed/server-key-state.ts';
import { Visitors } from './visitors.ts';
import type { Visitor } from './visitors.ts';
import { FIRST_REJECTION_MS, NEW_REJECTION_MS } from '../common/call-times.ts';

/** What the quotas and lines of all API keys share. */
export interface QuotaParts extends AccountParts {
  readonly rejectedKeys: RejectedKeys;
  readonly serverKey: ServerKeyState;
  readonly closedApi: ClosedApi;
  readonly closedOperations: ClosedOperations;
  readonly nameOf: NameOf;
  readonly clock: Clock;
  readonly events: Events | undefined;
}

/** What one API key may use: its account, what is closed for it, the shares of its visitors, its budgets of refreshes and retries. */
export class KeyQuota {
  readonly apiKey: string;
  /** The hash of the key: its name where it is shown and stored. */
  readonly name: string;
  readonly account: KeyAccount;
  readonly visitors: Visitors;
  readonly retryBudget = new RetryBudget();
  readonly #parts: QuotaParts;
  readonly #refreshBudget: RefreshBudget;
  /** Undefined before the first read or write. */
  #closed: ClosedForKey | undefined;

  constructor(apiKey: string, parts: QuotaParts) {
    const { clock, nameOf, replicas } = parts;
    this.apiKey = apiKey;
    this.name = nameOf(apiKey);
    this.account = new KeyAccount(this.name, parts);
    this.visitors = new Visitors(clock, replicas);
    this.#parts = parts;
    this.#refreshBudget = new RefreshBudget(clock);
  }

  get closed(): ClosedForKey {
    const { clock, closedApi, closedOperations } = this.#parts;
    return (this.#closed ??= new ClosedForKey(closedApi, clock, closedOperations));
  }

  /** Whether this process knows that the upstream has accepted the key. */
  get isProven(): boolean {
    return this.account.isProven;
  }

  /** Whether a 401 or 403 may be a ban now: the last response was a 429, or such a rejection after one. */
  get isAfter429(): boolean {
    return (this.account.state?.incidents ?? 0) > 0;
  }

  /** The pause of the key for a probable ban; undefined where there is none. */
  get ban(): { readonly retryAfterMs: number; readonly nowMs: number } | undefined {
    const { mayBeBanned = false, pausedForMs = 0 } = this.account.state ?? {};
    return mayBeBanned && pausedForMs > 0 ? { retryAfterMs: pausedForMs, nowMs: this.#parts.clock.now() } : undefined;
  }

  /** Which calls may be sent now, whatever the quota. */
  get turn(): Turn {
    return this.closed.turnOf(this, this.isAfter429);
  }

  /** Whether a list has to be called for, though perhaps none is wanted. */
  get isListDue(): boolean {
    return this.closed.isListDue(this, this.isAfter429);
  }

  /** Returns how many calls the refresh budget allows. */
  refreshTokens(state: QuotaState | undefined): number {
    return this.#refreshBudget.tokens(state?.day, this.#parts.replicas.count);
  }

  /** Returns the minimum time until it allows so many calls. */
  refreshTokenWaitMs(state: QuotaState | undefined, needed: number): number {
    return this.#refreshBudget.waitMs(state?.day, this.#parts.replicas.count, needed);
  }

  /** Charges the visitor and the refresh budget for a call that is sent: the next decision goes by it. */
  charge(visitor: Visitor, atMs: number): void {
    this.visitors.charge(visitor, atMs);
    this.#refreshBudget.recordCall(this.account.state?.day, this.#parts.replicas.count);
  }

  /** Takes back what was charged at this time for a call that was not sent after all. */
  refund(visitor: Visitor, atMs: number): void {
    this.visitors.refund(visitor, atMs);
    this.#refreshBudget.refund();
  }

  /** The error of every call while the upstream rejects the key; undefined when it may be tried. */
  get rejection(): PetqlError | undefined {
    return this.#parts.rejectedKeys.error(this.apiKey);
  }

  /** Records that the upstream has accepted the key. */
  recordAcceptance(): void {
    if (this.closed.isWithheld) return;
    this.#parts.rejectedKeys.accept(this.apiKey);
    this.#parts.serverKey.accept(this.apiKey);
  }

  /** Records a 401 that is no ban. A key that is not proven is rejected at once. */
  recordUnauthenticated(call: JudgedCall): Rejection {
    if (this.isProven) return this.#reject(this.closed.recordUnauthenticated(call));
    return this.#reject('drop', NEW_REJECTION_MS);
  }

  /** Records a list that is forbidden, and no ban. */
  recordForbiddenList(): void {
    this.#parts.serverKey.forbid(this.apiKey);
  }

  /** Ends the doubt about the key that no list has ended in time. */
  endDoubt(): Rejection {
    return this.#reject(this.closed.endDoubt());
  }

  #reject(rejection: Rejection, firstMs = FIRST_REJECTION_MS): Rejection {
    if (rejection !== 'reject' && rejection !== 'drop') return rejection;
    this.#parts.rejectedKeys.reject(this.apiKey, firstMs);
    this.#parts.serverKey.reject(this.apiKey);
    return rejection;
  }
}
