import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import type { PetqlError } from '../errors.ts';
import type { ReplicaCount } from '../store/replicas.ts';
import type { Taken } from './account/account.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Permit } from './account/format.ts';
import type { QuotaState } from './account/quota-state.ts';
import type { Wait } from './account/wait.ts';
import type { Accounts } from './accounts.ts';
import { KeyOutage } from './outage.ts';
import type { Outage } from './outage.ts';
import { RefreshBudget } from './refresh-budget.ts';
import type { RejectedKeys } from './rejected-keys.ts';
import type { RetryBudget } from './retry-budget.ts';
import { Visitors } from './visitors.ts';
import type { Visitor } from './visitors.ts';

/** What the quotas and lines of all API keys share. */
export interface ThrottleParts {
  readonly accounts: Accounts;
  readonly rejectedKeys: RejectedKeys;
  readonly retryBudget: RetryBudget;
  /** The breaker of the pet API. */
  readonly outage: Outage;
  /** The processes that share the plans. */
  readonly replicas: ReplicaCount;
  readonly clock: Clock;
  readonly events: Events | undefined;
}

/** What one API key may use: its account, the shares of its visitors and its refresh budget. */
export class KeyQuota {
  readonly apiKey: string;
  readonly visitors: Visitors;
  readonly outage: KeyOutage;
  readonly #accounts: Accounts;
  readonly #rejectedKeys: RejectedKeys;
  readonly #replicas: ReplicaCount;
  readonly #refreshBudget: RefreshBudget;

  constructor(apiKey: string, { accounts, clock, outage, rejectedKeys, replicas }: ThrottleParts) {
    this.apiKey = apiKey;
    this.visitors = new Visitors(clock, replicas);
    this.outage = new KeyOutage(apiKey, outage, clock);
    this.#accounts = accounts;
    this.#rejectedKeys = rejectedKeys;
    this.#replicas = replicas;
    this.#refreshBudget = new RefreshBudget(clock);
  }

  /** The quota as this process saw it last; undefined before the first call. */
  get state(): QuotaState | undefined {
    return this.#accounts.quotaState(this.apiKey);
  }

  /** Returns the quota from the store, with what other replicas have used. */
  read(): Promise<QuotaState> {
    return this.#accounts.readQuotaState(this.apiKey);
  }

  /** Whether this process knows that the upstream has accepted the key. */
  get isProven(): boolean {
    return this.#accounts.isProven(this.apiKey);
  }

  /** Whether a 401 or 403 may be a ban now: the last response was a 429, or such a rejection after one. */
  get isAfter429(): boolean {
    return (this.state?.incidents ?? 0) > 0;
  }

  /** How many calls may go before the next success proves more, as far as this process knows; Infinity with full trust. */
  get trialsLeft(): number {
    return this.#accounts.trialsLeft(this.apiKey);
  }

  /** Whether another replica may have changed the account since this process saw it, and reading it from Redis is fast. */
  get isViewOld(): boolean {
    return this.#accounts.isViewOld(this.apiKey);
  }

  /** Returns the minimum wait of a call with `ahead` others before it. */
  waitOf(ahead: number): Wait {
    return this.#accounts.waitOf(this.apiKey, ahead);
  }

  /** Returns how many calls the refresh budget allows. */
  refreshTokens(state: QuotaState | undefined): number {
    return this.#refreshBudget.tokens(state?.day, this.#replicas.count);
  }

  /** Grants up to `wanted` permits, also while the store is unavailable. */
  take(wanted: number): Taken | Promise<Taken> {
    return this.#accounts.take(this.apiKey, wanted);
  }

  /** Settles a permit by the end of its call. Never rejects; undefined where it is settled at once. */
  settle(permit: Permit, end: CallEnd): Promise<void> | undefined {
    return this.#accounts.settle(this.apiKey, permit, end);
  }

  /** Charges the visitor and the refresh budget for a call that is sent: the next decision goes by it. */
  charge(visitor: Visitor, atMs: number): void {
    this.visitors.charge(visitor, atMs);
    this.#refreshBudget.recordCall(this.state?.day, this.#replicas.count);
  }

  /** Takes back what was charged at this time for a call that was not sent after all. */
  refund(visitor: Visitor, atMs: number): void {
    this.visitors.refund(visitor, atMs);
    this.#refreshBudget.refund();
  }

  /** The error of every call while the upstream rejects the key; undefined when it may be tried. */
  get rejection(): PetqlError | undefined {
    return this.#rejectedKeys.error(this.apiKey);
  }

  /** Records that the upstream has accepted the key. */
  accept(): void {
    this.#rejectedKeys.accept(this.apiKey);
  }

  /** Records that the upstream has rejected the key with 401, and not because of a ban. */
  reject(): void {
    this.#rejectedKeys.reject(this.apiKey);
  }
}
