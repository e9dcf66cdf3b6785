import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { entriesFor, maxEntries } from '../memory.ts';
import { newAccount, take } from './account/account.ts';
import type { Taken } from './account/account.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Account, Permit } from './account/format.ts';
import { QuotaState, isPaused, quotaOfUnused } from './account/quota-state.ts';
import { trialsLeft } from './account/trust.ts';
import { waitOf } from './account/wait.ts';
import type { Wait } from './account/wait.ts';
import { passTime } from './account/pass-time.ts';
import type { Accounts, AccountsOptions } from './accounts.ts';
import { logCorrection, settlementOf } from './settlement.ts';
import { ACCOUNT_BYTES, ACCOUNT_TTL_MS } from './stored-accounts.ts';

const SWEEP_INTERVAL_MS = 60_000;

/** The accounts of all keys of one process without a store. They end with it. */
export class MemoryAccounts implements Accounts {
  readonly #options: AccountsOptions;
  /** As many as there are real keys: to evict one would exceed its plan. */
  readonly #proven = new Map<string, Account>();
  /** Clients can invent keys: these evict each other, the least recently used first. */
  readonly #unproven = new LRUCache<string, Account>(maxEntries(entriesFor('unprovenAccounts', ACCOUNT_BYTES)));
  #sweepAtMs = 0;
  /** The last view of an account, until it changes or the next millisecond: thousands of hits may look at it. */
  #viewed: { readonly account: Account; readonly nowMs: number; readonly state: QuotaState } | undefined;

  constructor(options: AccountsOptions) {
    this.#options = options;
  }

  take(apiKey: string, wanted: number): Taken {
    const { rules } = this.#options;
    const nowMs = this.#options.store.nowMs();
    this.#sweep(nowMs);
    this.#viewed = undefined;

    let account = this.#find(apiKey);
    if (!account) this.#unproven.set(apiKey, (account = newAccount(randomUUID())));
    return take(account, wanted, { nowMs, rules });
  }

  settle(apiKey: string, permit: Permit, end: CallEnd): undefined {
    this.#viewed = undefined;
    // An evicted account is a new one: its epoch tells that it has not granted the permit.
    const account = this.#find(apiKey) ?? newAccount(randomUUID());
    const correction = settlementOf(permit, end, this.#options)(
      account,
      this.#options.store.nowMs(),
      this.#options.rules,
    );
    if (correction) logCorrection(apiKey, correction, this.#options);

    if (!account.isProven) return void this.#unproven.set(apiKey, account);
    this.#unproven.delete(apiKey);
    this.#proven.set(apiKey, account);
  }

  quotaState(apiKey: string): QuotaState | undefined {
    const { rules } = this.#options;
    const account = this.#find(apiKey);
    if (!account) return undefined;
    const nowMs = this.#options.store.nowMs();
    if (this.#viewed?.account === account && this.#viewed.nowMs === nowMs) return this.#viewed.state;

    passTime(account, { nowMs, rules });
    const state = new QuotaState(account, nowMs, rules);
    this.#viewed = { account, nowMs, state };
    return state;
  }

  async readQuotaState(apiKey: string): Promise<QuotaState> {
    return this.quotaState(apiKey) ?? quotaOfUnused(this.#options.store.nowMs(), this.#options.rules);
  }

  waitOf(apiKey: string, ahead: number): Wait {
    const { rules } = this.#options;
    const account = this.#find(apiKey);
    if (!account) return { waitMs: 0, window: undefined };
    const nowMs = this.#options.store.nowMs();
    passTime(account, { nowMs, rules });
    return waitOf(account, ahead, { nowMs, rules });
  }

  isProven(apiKey: string): boolean {
    return this.#proven.has(apiKey);
  }

  trialsLeft(apiKey: string): number {
    const account = this.#find(apiKey);
    return account ? trialsLeft(account, this.#options.store.nowMs()) : Infinity;
  }

  isViewOld(): boolean {
    return false;
  }

  pausedKeys(): number {
    const nowMs = this.#options.store.nowMs();
    const accounts = [...this.#proven.values(), ...this.#unproven.values()];
    return accounts.filter((account) => isPaused(account, nowMs)).length;
  }

  async endOffline(): Promise<void> {}

  #find(apiKey: string): Account | undefined {
    return this.#proven.get(apiKey) ?? this.#unproven.get(apiKey);
  }

  /** Drops the accounts whose permits are all free again. */
  #sweep(nowMs: number): void {
    if (nowMs < this.#sweepAtMs) return;
    this.#sweepAtMs = nowMs + SWEEP_INTERVAL_MS;
    for (const [apiKey, { lastGrantAtMs, pause }] of this.#proven) {
      if (Math.max(lastGrantAtMs, pause.untilMs) + ACCOUNT_TTL_MS < nowMs) this.#proven.delete(apiKey);
    }
  }
}
