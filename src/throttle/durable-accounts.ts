import { DAY_MS } from '../plan.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { SOON_MS } from '../time-limit.ts';
import { take } from './account/account.ts';
import type { Taken } from './account/account.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Permit } from './account/format.ts';
import { QuotaState, isPaused, quotaOfUnused } from './account/quota-state.ts';
import { trialsLeft } from './account/trust.ts';
import { waitOf } from './account/wait.ts';
import type { Wait } from './account/wait.ts';
import { passTime } from './account/pass-time.ts';
import type { Accounts, AccountsOptions } from './accounts.ts';
import { OfflineAccounts } from './offline-accounts.ts';
import { logCorrection, settlementOf } from './settlement.ts';
import type { AccountChange } from './settlement.ts';
import { StoredAccounts } from './stored-accounts.ts';

/** Longer than any request may wait. */
const NO_CONTACT: Wait = { waitMs: DAY_MS, window: undefined, cause: 'no-contact' };

/** The accounts of all keys in a file or in Redis, and while it is unavailable those of this process. */
export class DurableAccounts implements Accounts {
  readonly #options: AccountsOptions;
  readonly #stored: StoredAccounts;
  readonly #offline: OfflineAccounts;

  constructor(options: AccountsOptions) {
    this.#options = options;
    this.#stored = new StoredAccounts(options);
    this.#offline = new OfflineAccounts(this.#stored, options);
    options.replicas?.onBeat((hasLostBeats) => {
      void this.endOffline();
      // It may have lost accounts too.
      if (hasLostBeats) this.#stored.restore().catch(() => {});
    });
  }

  async take(apiKey: string, wanted: number): Promise<Taken> {
    const change: AccountChange<Taken> = (account, nowMs, rules) => take(account, wanted, { nowMs, rules });
    const taken = await this.#whileAvailable(async () => {
      await this.#offline.end(apiKey);
      return this.#stored.update(apiKey, change);
    });
    if (taken) return taken;
    if (this.#hasNoContact()) return { permits: [], wait: { by: 'no-contact', waitMs: SOON_MS } };
    return this.#offline.update(apiKey, change);
  }

  async settle(apiKey: string, permit: Permit, end: CallEnd): Promise<void> {
    const correction = await this.#settle(apiKey, permit, end, settlementOf(permit, end, this.#options));
    if (correction) logCorrection(apiKey, correction, this.#options);
  }

  quotaState(apiKey: string): QuotaState | undefined {
    const { store, rules } = this.#options;
    const nowMs = store.nowMs();
    const combined = this.#offline.combined(apiKey);
    if (combined) return new QuotaState(combined, nowMs, rules);

    const seen = this.#stored.seen(apiKey);
    if (!seen) return undefined;
    passTime(seen, { nowMs, rules });
    return new QuotaState(seen, nowMs, rules);
  }

  async readQuotaState(apiKey: string): Promise<QuotaState> {
    await this.#whileAvailable(async () => {
      await this.#offline.end(apiKey);
      await this.#stored.read(apiKey);
    });
    const { store, rules } = this.#options;
    return this.quotaState(apiKey) ?? quotaOfUnused(store.nowMs(), rules);
  }

  isProven(apiKey: string): boolean {
    const [own, seen] = [this.#offline.get(apiKey)?.account, this.#stored.seen(apiKey)];
    return own?.isProven === true || seen?.isProven === true;
  }

  pausedKeys(): number {
    const nowMs = this.#options.store.nowMs();
    const isStoredPaused = (apiKey: string) => isPaused(this.#stored.seen(apiKey), nowMs);
    const ofOffline = this.#offline.count((own, apiKey) => isPaused(own, nowMs) && !isStoredPaused(apiKey));
    return this.#stored.count((account) => isPaused(account, nowMs)) + ofOffline;
  }

  waitOf(apiKey: string, ahead: number): Wait {
    if (this.#hasNoContact()) return NO_CONTACT;
    const own = this.#offline.get(apiKey);
    const account = own?.account ?? this.#stored.seen(apiKey);
    if (!account) return { waitMs: 0, window: undefined };

    const { store, replicas } = this.#options;
    const nowMs = store.nowMs();
    const rules = own?.rules ?? this.#options.rules;
    passTime(account, { nowMs, rules });
    const wait = waitOf(account, ahead, { nowMs, rules });
    if (!own) return wait;
    return { ...wait, waitMs: Math.min(wait.waitMs, SOON_MS), cause: replicas && 'offline-share' };
  }

  trialsLeft(apiKey: string): number {
    const account = this.#offline.get(apiKey)?.account ?? this.#stored.seen(apiKey);
    return account ? trialsLeft(account, this.#options.store.nowMs()) : Infinity;
  }

  isViewOld(apiKey: string): boolean {
    if (!this.#options.replicas?.isRedisFast || this.#offline.get(apiKey)) return false;
    return this.#stored.isViewOld(apiKey);
  }

  endOffline(): Promise<void> {
    return this.#offline.endAll();
  }

  /** Runs `work` on the store; resolves to undefined while it is unavailable. */
  async #whileAvailable<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    const { replicas } = this.#options;
    if (replicas?.isRedisWorking === false) return undefined;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      replicas?.noteFailure(error);
      return undefined;
    }
  }

  /** Whether Redis failed before this replica has reached it: it knows neither the account nor the other replicas. */
  #hasNoContact(): boolean {
    const { replicas } = this.#options;
    return replicas !== undefined && !replicas.isRedisWorking && replicas.startedAtMs === undefined;
  }

  /** Applies a settlement where the permit was granted. */
  async #settle<Result>(
    apiKey: string,
    permit: Permit,
    end: CallEnd,
    change: AccountChange<Result>,
  ): Promise<Result | undefined> {
    const isOffline = this.#offline.get(apiKey)?.account.epoch === permit.epoch;
    if (!isOffline) {
      try {
        return await this.#stored.update(apiKey, change, end);
      } catch {
        // Redis may have applied it, and a refund counts each time: so the lease runs out instead.
        if (end.kind === 'unused') return undefined;
        this.#offline.addUnwritten(apiKey, change);
      }
    }
    return this.#offline.update(apiKey, change);
  }
}
