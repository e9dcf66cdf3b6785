import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import type { PetqlError } from '../errors.ts';
import type { NameOf } from '../store/names.ts';
import type { ReplicaView } from '../store/replicas.ts';
import type { QuotaState } from './account/quota-state.ts';
import { KeyAccount } from './key-account.ts';
import type { AccountParts } from './key-account.ts';
import { KeyOutage } from './outage.ts';
import type { Outage } from './outage.ts';
import { RefreshBudget } from './refresh-budget.ts';
import type { RejectedKeys } from './rejected-keys.ts';
import type { RetryBudget } from './retry-budget.ts';
import { Visitors } from './visitors.ts';
import type { Visitor } from './visitors.ts';

/** What the quotas and lines of all API keys share. */
export interface ThrottleParts extends AccountParts {
  readonly rejectedKeys: RejectedKeys;
  readonly retryBudget: RetryBudget;
  /** The breaker of the pet API. */
  readonly outage: Outage;
  readonly nameOf: NameOf;
  readonly clock: Clock;
  readonly events: Events | undefined;
}

/** What one API key may use: its account, the shares of its visitors and its refresh budget. */
export class KeyQuota {
  readonly apiKey: string;
  /** The hash of the key: its name where it is shown and stored. */
  readonly name: string;
  readonly account: KeyAccount;
  readonly visitors: Visitors;
  readonly outage: KeyOutage;
  readonly #rejectedKeys: RejectedKeys;
  readonly #replicas: ReplicaView;
  readonly #refreshBudget: RefreshBudget;

  constructor(apiKey: string, parts: ThrottleParts) {
    const { clock, nameOf, outage, rejectedKeys, replicas } = parts;
    this.apiKey = apiKey;
    this.name = nameOf(apiKey);
    this.account = new KeyAccount(this.name, parts);
    this.visitors = new Visitors(clock, replicas);
    this.outage = new KeyOutage(apiKey, outage, clock);
    this.#rejectedKeys = rejectedKeys;
    this.#replicas = replicas;
    this.#refreshBudget = new RefreshBudget(clock);
  }

  /** Whether this process knows that the upstream has accepted the key. */
  get isProven(): boolean {
    return this.account.isProven;
  }

  /** Whether a 401 or 403 may be a ban now: the last response was a 429, or such a rejection after one. */
  get isAfter429(): boolean {
    return (this.account.state?.incidents ?? 0) > 0;
  }

  /** Returns how many calls the refresh budget allows. */
  refreshTokens(state: QuotaState | undefined): number {
    return this.#refreshBudget.tokens(state?.day, this.#replicas.count);
  }

  /** Charges the visitor and the refresh budget for a call that is sent: the next decision goes by it. */
  charge(visitor: Visitor, atMs: number): void {
    this.visitors.charge(visitor, atMs);
    this.#refreshBudget.recordCall(this.account.state?.day, this.#replicas.count);
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
