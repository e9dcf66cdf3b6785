import { randomUUID } from 'node:crypto';
import { entriesFor } from '../memory.ts';
import { newAccount } from './account/account.ts';
import type { Account } from './account/format.ts';
import type { AccountRules } from './account/limits.ts';
import { absorb } from './account/merge.ts';
import { openOfflineShare } from './account/offline-share.ts';
import type { OfflineAccount } from './account/offline-share.ts';
import type { AccountsOptions } from './accounts.ts';
import { ProvenFirst } from './proven-first.ts';
import type { AccountChange } from './settlement.ts';
import { ACCOUNT_BYTES } from './stored-accounts.ts';
import type { StoredAccounts } from './stored-accounts.ts';

interface Offline extends OfflineAccount {
  /** Settlements that the store has not taken, in order. */
  readonly unwritten: AccountChange<unknown>[];
  /** While the store absorbs it. */
  absorbing?: Promise<void> | undefined;
}

/**
 * The accounts that this process keeps while the store is unavailable. With Redis each is an offline share of the plan, since
 * other replicas use the rest. No other process uses a state file, so the account goes on as it was. The stored account absorbs it
 * afterwards.
 */
export class OfflineAccounts {
  readonly #options: AccountsOptions;
  readonly #stored: StoredAccounts;
  readonly #accounts = new ProvenFirst<Offline>({
    maxProven: entriesFor('offlineAccounts', ACCOUNT_BYTES),
    maxUnproven: entriesFor('unprovenOfflineAccounts', ACCOUNT_BYTES),
    isProven: (_apiKey, { account }) => account.isProven,
  });

  constructor(stored: StoredAccounts, options: AccountsOptions) {
    this.#options = options;
    this.#stored = stored;
  }

  /** Returns the key's offline account; undefined while the stored one is used. */
  get(apiKey: string): OfflineAccount | undefined {
    return this.#accounts.get(apiKey);
  }

  /** Returns the account as this process saw it last, with what was used offline; undefined without an offline account. */
  combined(apiKey: string): Account | undefined {
    const own = this.#accounts.get(apiKey)?.account;
    if (!own) return undefined;
    const account = structuredClone(this.#stored.seen(apiKey) ?? newAccount(''));
    this.#absorb(account, own);
    return { ...account, pause: own.pause };
  }

  /** Returns how many offline accounts meet the condition. */
  count(isCounted: (account: Account, apiKey: string) => boolean): number {
    return this.#accounts.entries().filter(([apiKey, { account }]) => isCounted(account, apiKey)).length;
  }

  /** Changes the key's offline account, or opens one. */
  update<Result>(apiKey: string, change: AccountChange<Result>): Result {
    const own = this.#open(apiKey);
    const result = change(own.account, this.#options.store.nowMs(), own.rules);
    // It may be proven now.
    this.#accounts.set(apiKey, own);
    return result;
  }

  /** Keeps a settlement that the store has not taken, until it is available. */
  addUnwritten(apiKey: string, change: AccountChange<unknown>): void {
    this.#open(apiKey).unwritten.push(change);
  }

  /**
   * Lets the stored account absorb the offline one, which ends; one write of a key at a time.
   *
   * @throws StoreUnavailableError and keeps it.
   */
  async end(apiKey: string): Promise<void> {
    const own = this.#accounts.get(apiKey);
    if (own) await (own.absorbing ??= this.#end(apiKey, own).finally(() => (own.absorbing = undefined)));
  }

  /** Ends all offline accounts, except those that the store does not take. */
  async endAll(): Promise<void> {
    await Promise.allSettled(this.#accounts.entries().map(([apiKey]) => this.end(apiKey)));
  }

  #open(apiKey: string): Offline {
    const opened = this.#accounts.get(apiKey);
    if (opened) return opened;

    const { store, rules, replicas } = this.#options;
    const seen = this.#stored.seen(apiKey);
    const own = replicas ? openOfflineShare(seen, store.nowMs(), rules, replicas.shareDivisor) : openWhole(seen, rules);
    const offline = { ...own, unwritten: [] };
    this.#accounts.set(apiKey, offline);
    return offline;
  }

  async #end(apiKey: string, { account: own, unwritten }: Offline): Promise<void> {
    const changes = [...unwritten];
    if (own.granted > 0 || changes.length > 0) {
      const used = structuredClone(own);
      await this.#stored.update(apiKey, (account, nowMs, rules) => {
        for (const change of changes) change(account, nowMs, rules);
        this.#absorb(account, used);
      });
    }
    this.#accounts.delete(apiKey);
  }

  #absorb(account: Account, own: Account): void {
    if (this.#options.replicas) absorb(account, own);
    else Object.assign(account, structuredClone(own));
  }
}

/** Continues from what this process saw last, since no other process uses the plan. */
function openWhole(seen: Account | undefined, rules: AccountRules): OfflineAccount {
  return { account: seen ? structuredClone(seen) : newAccount(randomUUID()), rules };
}
