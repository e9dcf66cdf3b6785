import type { Log } from '../common/log.ts';
import { DAY_MS } from '../common/plan.ts';
import type { ReplicaView } from '../store/replicas.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { SOON_MS } from '../common/time-limit.ts';
import type { AccountChange, AccountStore, UpdateOptions } from './account-store.ts';
import { newAccount, take } from './account/account.ts';
import type { Taken } from './account/account.ts';
import { applyEnd } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Account, Permit, WindowCount } from './account/format.ts';
import { absorb, hasLost, restore } from './account/merge.ts';
import { openOfflineShare } from './account/offline-share.ts';
import type { OfflineAccount } from './account/offline-share.ts';
import { passTime } from './account/pass-time.ts';
import { QuotaState, isPaused, quotaOfUnused } from './account/quota-state.ts';
import { trialsLeft } from './account/trust.ts';
import { waitOf } from './account/wait.ts';
import { ownCount } from './account/window.ts';
import type { Wait } from './account/wait.ts';
import { OLD_VIEW_MS } from '../common/call-times.ts';

/** What the accounts of all keys share. */
export interface AccountParts {
  readonly accounts: AccountStore;
  readonly replicas: ReplicaView;
  /** Those that have what the store has not taken. */
  readonly offline: Set<KeyAccount>;
  readonly log: Log;
}

interface Offline extends OfflineAccount {
  /** Settlements that the store has not taken, in order. */
  readonly unwritten: AccountChange<unknown>[];
  /** While the store absorbs it. */
  absorbing?: Promise<void> | undefined;
}

/** Longer than any request may wait. */
const NO_CONTACT: Wait = { waitMs: DAY_MS, window: undefined, cause: 'no-contact' };

/**
 * The account of one API key, which belongs to its caller: in this process, or in Redis as this process saw it last. While Redis is
 * unavailable it is an offline share of the plan, since other replicas use the rest. The stored account absorbs it afterwards.
 */
export class KeyAccount {
  readonly #id: string;
  readonly #parts: AccountParts;
  /** To read the quota without the store, and to restore what Redis has lost. By the store's clock. */
  #seen: { readonly account: Account; readonly atMs: number } | undefined;
  #offline: Offline | undefined;
  /** The last state, until a change or the next millisecond: thousands of hits may look at it. */
  #viewed: { readonly state: QuotaState; readonly atMs: number } | undefined;

  /** @param id the hash of the key. */
  constructor(id: string, parts: AccountParts) {
    this.#id = id;
    this.#parts = parts;
  }

  /**
   * Grants permits, also while the store is unavailable.
   *
   * @param countWanted how many at most, asked when they are granted.
   */
  take(countWanted: () => number): Taken | Promise<Taken> {
    const change: AccountChange<Taken> = (account, moment) => take(account, countWanted(), moment);
    return this.#whileAvailable(
      () => this.#write(change),
      () =>
        this.#hasNoContact
          ? { permits: [], wait: { by: 'no-contact', waitMs: SOON_MS } }
          : this.#changeOffline(this.#openOffline(), change),
    );
  }

  /**
   * Settles a permit by the end of its call, where it was granted. Never rejects: the store gets later what it does not take now.
   * Returns undefined where it is settled at once.
   */
  settle(permit: Permit, end: CallEnd): Promise<void> | undefined {
    let counts: unknown[] = [];
    const change: AccountChange<void> = (account, moment) => {
      passTime(account, moment);
      const before = countsOf(account);
      applyEnd(account, permit, end, moment);
      counts = [before, countsOf(account)];
    };

    const offline = this.#offline;
    const isOffline = offline?.account.epoch === permit.epoch;
    const urgency = this.isNews(end) ? 'now' : 'late';
    const settling = isOffline ? this.#changeOffline(offline, change) : this.#write(change, { end, urgency });
    const settled = () => this.#logCorrection(end, counts);
    return settling ? settling.catch(() => this.#settleLater(change, end)).then(settled) : settled();
  }

  /**
   * Whether other replicas have to learn of this end at once. It is no news that a call succeeded while there is room and no success
   * has to prove anything: until it is settled, its permit counts to the end of its lease.
   */
  isNews(end: CallEnd): boolean {
    const account = this.#known;
    if (!account?.isProven || account.trust !== undefined || account.pause.incidents > 0) return true;
    return end.kind !== 'succeeded' || end.headers?.remaining === 0;
  }

  /** Returns the quota from the store. Reading the quota of an unused key stores nothing, since clients can invent keys. */
  async read(): Promise<QuotaState> {
    const { accounts } = this.#parts;
    await this.#whileAvailable(
      async () => {
        const found = await accounts.read(this.#id);
        if (found) this.#see(this.#restored(found), accounts.nowMs());
      },
      () => undefined,
    );
    return this.state ?? quotaOfUnused(accounts.nowMs(), accounts.rules);
  }

  /** The quota as this process knows it; undefined before the first call. */
  get state(): QuotaState | undefined {
    const { rules } = this.#parts.accounts;
    const nowMs = this.#parts.accounts.nowMs();
    if (this.#viewed?.atMs === nowMs) return this.#viewed.state;

    const account = this.#offline ? this.#combined(this.#offline) : this.#known;
    if (!account) return undefined;
    passTime(account, { nowMs, rules });
    const state = new QuotaState(account, nowMs, rules);
    this.#viewed = { state, atMs: nowMs };
    return state;
  }

  /** Returns the minimum wait of a call with `ahead` others before it. */
  waitOf(ahead: number): Wait {
    if (this.#hasNoContact) return NO_CONTACT;
    const { account = this.#known, rules = this.#parts.accounts.rules } = this.#offline ?? {};
    if (!account) return { waitMs: 0, window: undefined };

    const moment = { nowMs: this.#parts.accounts.nowMs(), rules };
    passTime(account, moment);
    const wait = waitOf(account, ahead, moment);
    if (!this.#offline) return wait;
    return { ...wait, waitMs: Math.min(wait.waitMs, SOON_MS), cause: 'offline-share' };
  }

  /** Returns how many calls may go before the next success proves more, as far as this process knows; Infinity with full trust. */
  get trialsLeft(): number {
    const account = this.#offline?.account ?? this.#known;
    return account ? trialsLeft(account, this.#parts.accounts.nowMs()) : Infinity;
  }

  /** Whether this process knows that the upstream has accepted the key. */
  get isProven(): boolean {
    return this.#offline?.account.isProven === true || this.#known?.isProven === true;
  }

  /** Whether the key is paused after a 429. */
  get isPaused(): boolean {
    const nowMs = this.#parts.accounts.nowMs();
    return isPaused(this.#offline?.account, nowMs) || isPaused(this.#known, nowMs);
  }

  /** Whether another replica may have changed the account since this process saw it, and reading it from Redis is fast. */
  get isViewOld(): boolean {
    if (!this.#parts.replicas.isRedisFast || this.#offline || !this.#seen) return false;
    return this.#parts.accounts.nowMs() - this.#seen.atMs > OLD_VIEW_MS;
  }

  /**
   * Lets the stored account absorb the offline one, which ends; one write at a time.
   *
   * @throws StoreUnavailableError and keeps it.
   */
  async writeBack(): Promise<void> {
    const offline = this.#offline;
    if (!offline) return;
    offline.absorbing ??= this.#endOffline(offline).finally(() => (offline.absorbing = undefined));
    await offline.absorbing;
  }

  /**
   * Restores the account after Redis lost its data, so that other replicas see it.
   *
   * @throws StoreUnavailableError
   */
  async restore(): Promise<void> {
    if (!this.#seen) return;
    const { account } = this.#seen;
    const { accounts } = this.#parts;
    const nowMs = accounts.nowMs();
    passTime(account, { nowMs, rules: accounts.rules });
    // Any write restores it.
    if (ownCount(account.day) > 0 || account.pause.untilMs > nowMs) await this.#write(() => {});
  }

  get #known(): Account | undefined {
    return this.#parts.accounts.find(this.#id) ?? this.#seen?.account;
  }

  /** Whether Redis failed before this replica has reached it: it knows neither the account nor the other replicas. */
  get #hasNoContact(): boolean {
    const { isRedisWorking, startedAtMs } = this.#parts.replicas;
    return !isRedisWorking && startedAtMs === undefined;
  }

  /** Runs `work` on the store, once that has absorbed what was used offline; `orElse` takes its place while it is unavailable. */
  #whileAvailable<Result>(work: () => Promise<Result> | Result, orElse: () => Result): Promise<Result> | Result {
    const { replicas } = this.#parts;
    if (!replicas.isRedisWorking) return orElse();
    const working = this.#offline ? this.writeBack().then(work) : work();
    if (!(working instanceof Promise)) return working;
    return working.catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error;
      replicas.noteFailure(error);
      return orElse();
    });
  }

  /** @throws StoreUnavailableError when Redis may have taken the change or not. */
  #write<Result>(change: AccountChange<Result>, options?: UpdateOptions): Promise<Result> | Result {
    const { accounts } = this.#parts;
    const written = accounts.update(
      this.#id,
      (found, moment) => {
        const account = this.#restored(found);
        // An offline account continues from it if the change cannot be written.
        if (!this.#seen && account.granted > 0) this.#see(structuredClone(account), moment.nowMs);
        return { result: change(account, moment), account, atMs: moment.nowMs };
      },
      options,
    );
    const see = ({ result, account, atMs }: Awaited<typeof written>) => {
      this.#see(account, atMs);
      return result;
    };
    return written instanceof Promise ? written.then(see) : see(written);
  }

  /** Returns the account. Where Redis has lost a part of it, this process adds what it has seen. */
  #restored(account: Account): Account {
    if (this.#seen && hasLost(account, this.#seen.account)) restore(account, this.#seen.account);
    return account;
  }

  #see(account: Account, atMs: number): void {
    this.#viewed = undefined;
    if (account.granted > 0 || account.pause.incidents > 0) this.#seen = { account, atMs };
  }

  /** Returns the account as this process saw it last, with what was used offline. */
  #combined({ account: own }: Offline): Account {
    const account = structuredClone(this.#seen?.account ?? newAccount(''));
    absorb(account, own);
    return { ...account, pause: own.pause };
  }

  #openOffline(): Offline {
    const { accounts, replicas } = this.#parts;
    const open = () => openOfflineShare(this.#seen?.account, accounts.nowMs(), accounts.rules, replicas.shareDivisor);
    this.#parts.offline.add(this);
    return (this.#offline ??= { ...open(), unwritten: [] });
  }

  #changeOffline<Result>({ account, rules }: Offline, change: AccountChange<Result>): Result {
    this.#viewed = undefined;
    return change(account, { nowMs: this.#parts.accounts.nowMs(), rules });
  }

  async #endOffline({ account, unwritten }: Offline): Promise<void> {
    const changes = [...unwritten];
    if (account.granted > 0 || changes.length > 0) {
      const used = structuredClone(account);
      await this.#write((stored, moment) => {
        for (const change of changes) change(stored, moment);
        absorb(stored, used);
      });
    }
    this.#offline = undefined;
    this.#parts.offline.delete(this);
    this.#viewed = undefined;
  }

  #settleLater(change: AccountChange<void>, end: CallEnd): void {
    // Redis may have applied it, and a refund counts each time: so the lease runs out instead.
    if (end.kind === 'unused') return;
    const offline = this.#openOffline();
    offline.unwritten.push(change);
    this.#changeOffline(offline, change);
  }

  /** Logs that headers have lowered or raised a count, or named a limit. */
  #logCorrection(end: CallEnd, [before, after]: readonly unknown[]): undefined {
    const { log } = this.#parts;
    if (!log.debug || !('headers' in end) || JSON.stringify(before) === JSON.stringify(after)) return;
    log.debug({ key: this.#id, headers: end.headers, before, after }, 'count corrected');
  }
}

/** Own calls and those of others. */
function usedOf(window: WindowCount): number {
  return ownCount(window) + (window.foreign?.calls ?? 0);
}

function countsOf({ minute, day }: Account) {
  return {
    minute: { used: usedOf(minute), limit: minute.limit },
    day: { used: usedOf(day), limit: day.limit },
  };
}
