import type { Log } from '../log.ts';
import type { NameOf } from '../store/names.ts';
import type { Replicas } from '../store/replicas.ts';
import type { Store } from '../store/store.ts';
import type { AccountRules } from './account/limits.ts';
import type { Taken } from './account/account.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Permit } from './account/format.ts';
import type { QuotaState } from './account/quota-state.ts';
import type { Wait } from './account/wait.ts';

/** What the accounts are made of. */
export interface AccountsOptions {
  readonly store: Store;
  readonly rules: AccountRules;
  readonly nameOf: NameOf;
  readonly log: Log;
  /** The processes that share the store; undefined where this is the only one. */
  readonly replicas: Replicas | undefined;
}

/** The accounts of all keys: `MemoryAccounts` for one process, `DurableAccounts` in a file or in Redis. */
export interface Accounts {
  /** Grants up to `wanted` permits, also while the store is unavailable. */
  take(apiKey: string, wanted: number): Taken | Promise<Taken>;
  /**
   * Settles a permit by the end of its call. Never rejects: the store gets later what it does not take now. Returns undefined
   * where it is settled at once.
   */
  settle(apiKey: string, permit: Permit, end: CallEnd): Promise<void> | undefined;
  /** Returns the key's quota as this process saw it last; undefined before the first call. */
  quotaState(apiKey: string): QuotaState | undefined;
  /** Returns the quota from the store. Reading the quota of an unused key stores nothing, since clients can invent keys. */
  readQuotaState(apiKey: string): Promise<QuotaState>;
  /** Returns the minimum wait of a call with `ahead` others before it. */
  waitOf(apiKey: string, ahead: number): Wait;
  /** Whether this process knows that the upstream has accepted the key. */
  isProven(apiKey: string): boolean;
  /** Returns how many calls may go before the next success proves more, as far as this process knows; Infinity with full trust. */
  trialsLeft(apiKey: string): number;
  /** Whether another replica may have changed the account since this process saw it, and reading it from Redis is fast. */
  isViewOld(apiKey: string): boolean;
  /** Returns how many of the keys that this process has used are paused after a 429. */
  pausedKeys(): number;
  /** Writes to the store what was used without it. Never rejects: what the store does not take is kept. */
  endOffline(): Promise<void>;
}
