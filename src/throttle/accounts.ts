import type { Replicas } from '../store/replicas.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { newAccount, take } from './account/account.ts';
import type { Taken } from './account/account.ts';
import { applyEnd } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Account, Permit } from './account/format.ts';
import { QuotaState } from './account/quota-state.ts';
import { waitOf } from './account/wait.ts';
import type { Wait } from './account/wait.ts';
import { passTime } from './account/windows.ts';
import { OfflineAccounts } from './offline-accounts.ts';
import { StoredAccounts } from './stored-accounts.ts';
import type { AccountChange, StoredAccountsOptions } from './stored-accounts.ts';

interface AccountsOptions extends StoredAccountsOptions {
  /** The processes that share the store; undefined where this is the only one. */
  readonly replicas: Replicas | undefined;
}

/** Redis may be available again at any time, so petql expects no longer wait without it. */
const SOON_MS = 1_000;
/** Longer than any request may wait. */
const NO_CONTACT: Wait = { waitMs: 86_400_000, window: undefined, cause: 'no-contact' };

/** The counts of an account before and after a settlement. */
interface Correction {
  readonly before: ReturnType<typeof countsOf>;
  readonly after: ReturnType<typeof countsOf>;
}

/** The accounts of all keys. It uses the stored ones, and while the store is unavailable those of this process. */
export class Accounts {
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

  /** Grants up to `wanted` permits, also while the store is unavailable. */
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

  /** Settles a permit by the end of its call. Never rejects: the store gets later what it does not take now. */
  async settle(apiKey: string, permit: Permit, end: CallEnd): Promise<void> {
    const { log } = this.#options;
    const correction = await this.#settle(apiKey, permit, end, (account, nowMs, rules) => {
      if (!log.debug) {
        applyEnd(account, permit, end, { nowMs, rules });
        return undefined;
      }

      passTime(account, nowMs, rules);
      const before = countsOf(account);
      applyEnd(account, permit, end, { nowMs, rules });
      return { before, after: countsOf(account) };
    });
    if (correction) this.#logCorrection(apiKey, end, correction);
  }

  /** Returns the key's quota as this process saw it last; undefined before the first call. */
  quotaState(apiKey: string): QuotaState | undefined {
    const { store, rules } = this.#options;
    const nowMs = store.nowMs();
    const combined = this.#offline.combined(apiKey);
    if (combined) return new QuotaState(combined, nowMs, rules);

    const seen = this.#stored.seen(apiKey);
    if (!seen) return undefined;
    passTime(seen, nowMs, rules);
    return new QuotaState(seen, nowMs, rules);
  }

  /** Returns the quota from the store. Reading the quota of an unused key stores nothing, since clients can invent keys. */
  async readQuotaState(apiKey: string): Promise<QuotaState> {
    await this.#whileAvailable(async () => {
      await this.#offline.end(apiKey);
      await this.#stored.read(apiKey);
    });
    return this.quotaState(apiKey) ?? this.#quotaOfUnused();
  }

  /** Whether this process knows that the upstream has accepted the key. */
  isProven(apiKey: string): boolean {
    const [own, seen] = [this.#offline.get(apiKey)?.account, this.#stored.seen(apiKey)];
    return own?.isProven === true || seen?.isProven === true;
  }

  /** Returns how many of the keys that this process has used are paused after a 429. */
  pausedKeys(): number {
    const nowMs = this.#options.store.nowMs();
    const isPaused = (account: Account | undefined) =>
      account !== undefined && account.pause.incidents > 0 && nowMs < account.pause.untilMs;
    const ofOffline = this.#offline.count((own, apiKey) => isPaused(own) && !isPaused(this.#stored.seen(apiKey)));
    return this.#stored.count(isPaused) + ofOffline;
  }

  /** Returns the minimum wait of a call with `ahead` others before it. */
  waitOf(apiKey: string, ahead: number): Wait {
    if (this.#hasNoContact()) return NO_CONTACT;
    const own = this.#offline.get(apiKey);
    const account = own?.account ?? this.#stored.seen(apiKey);
    if (!account) return { waitMs: 0, window: undefined };

    const { store, replicas } = this.#options;
    const nowMs = store.nowMs();
    const rules = own?.rules ?? this.#options.rules;
    passTime(account, nowMs, rules);
    const wait = waitOf(account, ahead, nowMs, rules);
    if (!own) return wait;
    return { ...wait, waitMs: Math.min(wait.waitMs, SOON_MS), cause: replicas && 'offline-share' };
  }

  /** Whether this process knows of a probe in flight: no other call is sent before its response. */
  isProbing(apiKey: string): boolean {
    const account = this.#offline.get(apiKey)?.account ?? this.#stored.seen(apiKey);
    return (
      account !== undefined && account.pause.isHalfOpen && this.#options.store.nowMs() < account.pause.probeUntilMs
    );
  }

  /** Whether another replica may have changed the account since this process saw it, and reading it from Redis is fast. */
  isViewOld(apiKey: string): boolean {
    if (!this.#options.replicas?.isRedisFast || this.#offline.get(apiKey)) return false;
    return this.#stored.isViewOld(apiKey);
  }

  /** Writes to the store what was used without it. Never rejects: what the store does not take is kept. */
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

  /** Logs that headers have lowered or raised a count, or named a limit. */
  #logCorrection(apiKey: string, end: CallEnd, { before, after }: Correction): void {
    if (end.kind === 'unused' || end.kind === 'lost') return;
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    const { log, nameOf } = this.#options;
    log.debug?.({ key: nameOf(apiKey), headers: end.headers, before, after }, 'count corrected');
  }

  #quotaOfUnused(): QuotaState {
    const { store, rules } = this.#options;
    const account = newAccount('', true);
    const nowMs = store.nowMs();
    passTime(account, nowMs, rules);
    return new QuotaState(account, nowMs, rules);
  }
}

function countsOf({ minute, day }: Account) {
  return {
    minute: { used: minute.total, limit: minute.limit },
    day: { used: day.total, limit: day.limit },
  };
}
