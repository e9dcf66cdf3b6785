import { randomUUID } from 'node:crypto';
import { entriesFor } from '../common/memory.ts';
import { createDocumentReader } from '../store/read-document.ts';
import type { ReadDocument } from '../store/read-document.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { Changed, Store, Urgency } from '../store/store.ts';
import { UnprovenDocuments } from '../store/unproven-documents.ts';
import type { Log } from '../common/log.ts';
import { newAccount } from './account/account.ts';
import { isWorthKeeping } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import { ACCOUNT } from './account/format.ts';
import type { Account } from './account/format.ts';
import type { AccountRules } from './account/limits.ts';
import type { Moment } from './account/window.ts';
import { ProvenFirst } from './proven-first.ts';
import { ACCOUNT_LIVES_MS } from '../common/call-times.ts';
import { SWEEP_EVERY_MS } from '../common/times.ts';

/** Changes an account in place. Over Redis it runs again where another replica wrote first. */
export type AccountChange<Result> = (account: Account, moment: Moment) => Result;

export interface UpdateOptions {
  /** The end of the call that the change settles. */
  readonly end?: CallEnd | undefined;
  /** When Redis gets it. Default `soon`. */
  readonly urgency?: Urgency | undefined;
}

/** The accounts of all API keys, by the hashes of the keys: in this process, or in Redis. */
export interface AccountStore {
  readonly rules: AccountRules;
  /** Returns an account that is in this process. */
  find(id: string): Account | undefined;
  /**
   * Changes an account, or a new one, in one atomic step; at once where no store keeps it.
   *
   * @throws StoreUnavailableError when Redis may have taken the change or not.
   */
  update<Result>(id: string, change: AccountChange<Result>, options?: UpdateOptions): Promise<Result> | Result;
  /**
   * Returns an account, and stores nothing.
   *
   * @throws StoreUnavailableError
   */
  read(id: string): Promise<Account | undefined>;
  nowMs(): number;
}

/** Memory of an account. */
const ACCOUNT_BYTES = 2_500;
/** The name ends in the hash of the format, which a test computes: no format changes under a name. */
const ACCOUNT_NAME = 'account:83d49071';

/** The accounts of a process that no other one shares them with. What a file keeps outlives it. */
export class LocalAccounts implements AccountStore {
  readonly rules: AccountRules;
  readonly #store: Store;
  readonly #file: StoredAccounts | undefined;
  readonly #accounts: ProvenFirst<Account>;
  #sweepAtMs = 0;
  /** Whether the file may be behind, as it could not be written. */
  #isBehind = false;

  /** @param file reads the accounts that are not here. Without it each proven one stays, as to evict it would exceed its plan. */
  constructor(store: Store, rules: AccountRules, file?: StoredAccounts) {
    this.rules = rules;
    this.#store = store;
    this.#file = file;
    const sizes = {
      maxProven: file ? entriesFor('accounts', ACCOUNT_BYTES) : Number.MAX_SAFE_INTEGER,
      maxUnproven: entriesFor('unprovenAccounts', ACCOUNT_BYTES),
      isProven: ({ isProven }: Account) => isProven,
    };
    const perf = { now: () => store.nowMs() };
    this.#accounts = new ProvenFirst(sizes, { ttl: ACCOUNT_LIVES_MS, ttlResolution: 0, perf });
  }

  find(id: string): Account | undefined {
    return this.#accounts.get(id);
  }

  update<Result>(id: string, change: AccountChange<Result>, { end }: UpdateOptions = {}): Promise<Result> | Result {
    return this.#file ? this.#changeKept(this.#file, id, change, end) : this.#change(id, change).result;
  }

  async read(id: string): Promise<Account | undefined> {
    const known = this.find(id);
    if (known || !this.#file) return known;
    const kept = await this.#file.read(id).catch(ignoreUnavailable);
    // Another read may have found it meanwhile.
    if (kept && !this.find(id)) this.#accounts.set(id, kept);
    return this.find(id);
  }

  nowMs(): number {
    return this.#store.nowMs();
  }

  /** Writes what the file has not taken. */
  async flush(): Promise<void> {
    if (!this.#file || !this.#isBehind) return;
    for (const [id, account] of this.#accounts.entries()) await this.#file.write(id, account).catch(ignoreUnavailable);
  }

  #change<Result>(id: string, change: AccountChange<Result>): { account: Account; result: Result } {
    const nowMs = this.nowMs();
    this.#sweep(nowMs);
    const account = this.find(id) ?? newAccount(randomUUID());
    const result = change(account, { nowMs, rules: this.rules });
    // It may be proven now.
    this.#accounts.set(id, account);
    return { account, result };
  }

  /** Resolves once the change is in the file, or could not be written: then it is with the next one of the key. */
  async #changeKept<Result>(
    file: StoredAccounts,
    id: string,
    change: AccountChange<Result>,
    end: CallEnd | undefined,
  ): Promise<Result> {
    await this.read(id);
    const { account, result } = this.#change(id, change);
    try {
      await file.write(id, account, end);
    } catch (error) {
      ignoreUnavailable(error);
      this.#isBehind = true;
    }
    return result;
  }

  /** Drops the accounts whose permits are all free again. */
  #sweep(nowMs: number): void {
    if (nowMs < this.#sweepAtMs) return;
    this.#sweepAtMs = nowMs + SWEEP_EVERY_MS;
    this.#accounts.purgeStale();
  }
}

/** When an account is written, over which text, and after which end of a call. */
interface Written {
  readonly end: CallEnd | undefined;
  readonly found: string | undefined;
  readonly nowMs: number;
}

/** The accounts in a file or in Redis: one document each, which Redis changes by compare-and-set. */
export class StoredAccounts implements AccountStore {
  readonly rules: AccountRules;
  readonly #store: Store;
  readonly #parse: ReadDocument<Account>;
  readonly #unproven = new UnprovenDocuments();

  constructor(store: Store, rules: AccountRules, log: Log) {
    this.rules = rules;
    this.#store = store;
    this.#parse = createDocumentReader('account', ACCOUNT, store, log);
  }

  find(): undefined {
    return undefined;
  }

  update<Result>(id: string, change: AccountChange<Result>, options: UpdateOptions = {}): Promise<Result> {
    const { end, urgency } = options;
    const changeText = (found: string | undefined, nowMs: number): Changed<Result> => {
      const account = this.#parse(found) ?? newAccount(randomUUID());
      const result = change(account, { nowMs, rules: this.rules });
      return { ...this.#documentOf(id, account, { end, found, nowMs }), result };
    };
    return this.#store.update(nameOf(id), changeText, urgency);
  }

  read(id: string): Promise<Account | undefined> {
    return this.#store.update(nameOf(id), (text) => ({ text, ttlMs: 0, result: this.#parse(text) }));
  }

  /**
   * Replaces the account in the store.
   *
   * @throws StoreUnavailableError
   */
  write(id: string, account: Account, end?: CallEnd): Promise<void> {
    return this.#store.update(nameOf(id), (found, nowMs) => ({
      ...this.#documentOf(id, account, { end, found, nowMs }),
      result: undefined,
    }));
  }

  nowMs(): number {
    return this.#store.nowMs();
  }

  /** Clients can make up keys: an account that is not proven lives until its pause and the lease of its last call are over. */
  #documentOf(id: string, account: Account, { end, found, nowMs }: Written): Pick<Changed<unknown>, 'text' | 'ttlMs'> {
    const { isProven, pause } = account;
    const ttlMs = isProven ? ACCOUNT_LIVES_MS : Math.max(0, pause.untilMs - nowMs) + this.rules.leaseMs;
    const isKept = isWorthKeeping(account, end, nowMs);
    if (isProven || !isKept) this.#unproven.delete(id);
    if (!isKept) return { text: undefined, ttlMs };
    // Without room for it this process alone counts the call.
    const hasRoom = isProven || this.#unproven.add(id, nowMs + ttlMs, nowMs);
    return { text: hasRoom ? JSON.stringify(account) : found, ttlMs };
  }
}

function nameOf(id: string): string {
  return `${ACCOUNT_NAME}:${id}`;
}

/** @throws any other error. */
function ignoreUnavailable(error: unknown): undefined {
  if (!(error instanceof StoreUnavailableError)) throw error;
}
