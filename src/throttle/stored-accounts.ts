import { randomUUID } from 'node:crypto';
import { entriesFor } from '../memory.ts';
import { createDocumentReader } from '../store/read-document.ts';
import type { ReadDocument } from '../store/read-document.ts';
import type { Changed } from '../store/store.ts';
import { UnprovenDocuments } from '../store/unproven-documents.ts';
import { newAccount } from './account/account.ts';
import { isWorthKeeping } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import { ACCOUNT } from './account/format.ts';
import type { Account } from './account/format.ts';
import type { AccountRules } from './account/limits.ts';
import { hasLost, restore } from './account/merge.ts';
import { passTime } from './account/pass-time.ts';
import type { AccountsOptions } from './accounts.ts';
import { ProvenFirst } from './proven-first.ts';
import type { AccountChange } from './settlement.ts';

/** An account as this process saw it last. */
interface SeenAccount {
  readonly account: Account;
  /** Its text in the store; undefined if the store does not keep it. */
  readonly text: string | undefined;
  /** By the store's clock. */
  readonly atMs: number;
}

/** Memory of an account and its text. */
export const ACCOUNT_BYTES = 2_500;
/** The version in a document's name is raised with its format. */
const NAME = 'account:4';
/** All permits of an account are free again after this. */
export const ACCOUNT_TTL_MS = 93_600_000;
/** Another replica may have got permits back since. */
const OLD_VIEW_MS = 1_000;

/**
 * The accounts of all keys in the store, one document each, changed by compare-and-set. It remembers each account as this process
 * saw it last: to read the quota without the store, and to restore what Redis has lost.
 */
export class StoredAccounts {
  readonly #options: AccountsOptions;
  readonly #parse: ReadDocument<Account>;
  readonly #seen = new ProvenFirst<SeenAccount>({
    maxProven: entriesFor('accounts', ACCOUNT_BYTES),
    maxUnproven: entriesFor('unprovenAccounts', ACCOUNT_BYTES),
    isProven: (_apiKey, { account }) => account.isProven,
  });
  readonly #unproven = new UnprovenDocuments();

  constructor(options: AccountsOptions) {
    this.#options = options;
    this.#parse = createDocumentReader('account', ACCOUNT, options.store, options.log);
  }

  /** Returns the account as this process saw it last; undefined if it never did. */
  seen(apiKey: string): Account | undefined {
    return this.#seen.get(apiKey)?.account;
  }

  /** Whether this process saw the account so long ago that another replica may have changed it since. */
  isViewOld(apiKey: string): boolean {
    const seen = this.#seen.get(apiKey);
    return seen !== undefined && this.#options.store.nowMs() - seen.atMs > OLD_VIEW_MS;
  }

  /** Returns how many of the seen accounts meet the condition. */
  count(isCounted: (account: Account) => boolean): number {
    return this.#seen.entries().filter(([, { account }]) => isCounted(account)).length;
  }

  /**
   * Changes the account in the store.
   *
   * @param end of the call that the change settles.
   * @throws StoreUnavailableError when it may be changed or not.
   */
  async update<Result>(apiKey: string, change: AccountChange<Result>, end?: CallEnd): Promise<Result> {
    const { store, rules } = this.#options;
    const { result, seen } = await store.update(
      this.#documentOf(apiKey),
      (found, nowMs): Changed<{ result: Result; seen: SeenAccount }> => {
        const account = this.#open(apiKey, found, nowMs);
        const changed = change(account, nowMs, rules);

        const ttlMs = ttlOf(account, nowMs, rules);
        const isKept = isWorthKeeping(account, end, nowMs);
        // Without room for it this process alone counts the call.
        const hasRoom = this.#count(apiKey, isKept && !account.isProven, nowMs, ttlMs);
        let text: string | undefined;
        if (isKept) text = hasRoom ? JSON.stringify(account) : found;
        return { text, ttlMs, result: { result: changed, seen: { account, text, atMs: nowMs } } };
      },
    );
    if (seen.account.granted > 0) this.#seen.set(apiKey, seen);
    return result;
  }

  /**
   * Reads the account, and stores nothing.
   *
   * @throws StoreUnavailableError
   */
  async read(apiKey: string): Promise<void> {
    const seen = await this.#options.store.update(this.#documentOf(apiKey), (text, nowMs) => {
      const account = text === undefined ? undefined : this.#open(apiKey, text, nowMs);
      return { text, ttlMs: 0, result: account && { account, text, atMs: nowMs } };
    });
    if (seen) this.#seen.set(apiKey, seen);
  }

  /**
   * Restores all seen accounts after Redis lost its data, so that other replicas see them; the last used key first.
   *
   * @throws StoreUnavailableError
   */
  async restore(): Promise<void> {
    const { store, rules } = this.#options;
    for (const [apiKey, { account }] of this.#seen.entries()) {
      const nowMs = store.nowMs();
      passTime(account, { nowMs, rules });
      // Opening the document restores it.
      if (account.day.total > 0 || account.pause.untilMs > nowMs) await this.update(apiKey, () => {});
    }
  }

  #documentOf(apiKey: string): string {
    return `${NAME}:${this.#options.nameOf(apiKey)}`;
  }

  /** Counts a document of a key that is not proven, or no longer counts it. Returns false where there is no room for it. */
  #count(apiKey: string, isUnproven: boolean, nowMs: number, ttlMs: number): boolean {
    if (isUnproven) return this.#unproven.add(apiKey, nowMs + ttlMs, nowMs);
    this.#unproven.delete(apiKey);
    return true;
  }

  /** Returns the account in a document, with what this process saw of it if Redis has lost some. */
  #open(apiKey: string, found: string | undefined, nowMs: number): Account {
    const seen = this.#seen.get(apiKey);
    const isOwnText = found !== undefined && found === seen?.text;
    const stored = isOwnText ? (JSON.parse(found) as Account) : this.#parse(found);
    // An offline account continues from it if the change cannot be written.
    if (stored && !seen) {
      this.#seen.set(apiKey, { account: structuredClone(stored), text: JSON.stringify(stored), atMs: nowMs });
    }

    const account = stored ?? newAccount(randomUUID());
    if (seen && hasLost(account, seen.account)) restore(account, seen.account);
    return account;
  }
}

/** Clients can make up keys: an account that is not proven lives until its pause and the lease of its last call are over. */
function ttlOf({ isProven, pause }: Account, nowMs: number, { leaseMs }: AccountRules): number {
  return isProven ? ACCOUNT_TTL_MS : Math.max(0, pause.untilMs - nowMs) + leaseMs;
}
