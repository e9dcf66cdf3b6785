import { randomUUID } from 'node:crypto';
import type { Log } from '../log.ts';
import type { NameOf } from '../store/names.ts';
import { createDocumentReader } from '../store/read-document.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { Changed, Store } from '../store/store.ts';
import { newAccount, take } from './account/account.ts';
import type { Taken } from './account/account.ts';
import { ACCOUNT } from './account/format.ts';
import type { Account, Permit } from './account/format.ts';
import type { AccountRules } from './account/limits.ts';
import { absorb, restore } from './account/merge.ts';
import { passTime } from './account/windows.ts';
import { applyEnd, isBlank, isWorthKeeping } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import { openShare, openWhole } from './offline-account.ts';
import type { OfflineAccount } from './offline-account.ts';
import { ProvenFirst } from './proven-first.ts';
import type { Replicas } from '../store/replicas.ts';
import { minWait, quotaStateOf } from './account/quota-state.ts';
import type { MinWait, QuotaState } from './account/quota-state.ts';

interface AccountsOptions {
  readonly store: Store;
  readonly nameOf: NameOf;
  readonly rules: AccountRules;
  readonly log: Log;
  /** The processes that share the store; undefined where this is the only one. */
  readonly replicas: Replicas | undefined;
}

/** The version in a document's name is raised with its format. */
const NAME = 'account:3';
/** All permits of an account are free again after this. */
const ACCOUNT_TTL_MS = 93_600_000;
/** Redis may be available again at any time, so no wait is expected to be longer without it. */
const SOON_MS = 1_000;
/** Longer than any request may wait. */
const NO_CONTACT: MinWait = { waitMs: 86_400_000, window: undefined, cause: 'no-contact' };
/** Another replica may have got permits back since. */
const OLD_VIEW_MS = 1_000;

interface Seen {
  readonly account: Account;
  /** As the store keeps it; undefined where it does not. */
  readonly text: string | undefined;
  /** By the store's clock. */
  readonly atMs: number;
}

type AccountChange<Result> = (account: Account, nowMs: number, rules: AccountRules) => Result;

/** Changes nothing: what Redis has lost is restored. */
const RESTORE: AccountChange<void> = () => {};

interface Offline extends OfflineAccount {
  /** Settlements that the store has not taken, in order. */
  readonly unwritten: AccountChange<void>[];
  /** While it is written to the store. */
  rejoining?: Promise<void> | undefined;
}

export type Accounts = ReturnType<typeof createAccounts>;

/** The accounts of all keys: kept in a store, and without it in this process. */
export function createAccounts(options: AccountsOptions) {
  const { store, nameOf, rules, replicas, log } = options;
  const readAccount = createDocumentReader('account', ACCOUNT, store, log);
  /** The accounts as this process saw them last. */
  const seen = new ProvenFirst<Seen>();
  const offline = new ProvenFirst<Offline>();
  /** For one key only: one for each of a thousand keys would outlive the young generation. */
  let latest: { readonly seen: Seen; readonly atMs: number; readonly value: QuotaState } | undefined;
  replicas?.onBeat((isEmptied) => {
    void flush();
    if (isEmptied) writeBack().catch(() => {});
  });

  return {
    /** Grants up to `wanted` permits, also while the store is unavailable. */
    async take(apiKey: string, wanted: number): Promise<Taken> {
      const change: AccountChange<Taken> = (account, nowMs, own) => take(account, wanted, { nowMs, rules: own });
      const taken = await whileAvailable(async () => {
        await rejoin(apiKey);
        return updateStore(apiKey, change);
      });
      if (taken) return taken;
      if (hasNoContact()) return { permits: [], closed: { by: 'no-contact', waitMs: SOON_MS } };
      return updateOffline(apiKey, change);
    },
    /** Settles a permit by the end of its call. Never rejects: what the store does not take is applied once it is available. */
    async settle(apiKey: string, permit: Permit, end: CallEnd): Promise<void> {
      let counts: readonly Counts[] = [];
      const change: AccountChange<void> = (account, nowMs, own) => {
        if (!log.debug) return applyEnd(account, permit, end, { nowMs, rules: own });
        passTime(account, nowMs, own);
        const before = countsOf(account);
        applyEnd(account, permit, end, { nowMs, rules: own });
        counts = [before, countsOf(account)];
      };
      await settleBy(change, { apiKey, permit, end });
      logCorrection(apiKey, end, counts);
    },
    quotaState,
    /** Whether the upstream has accepted the key, as far as this process knows. */
    isProven: (apiKey: string) => [offline, seen].some((map) => map.get(apiKey)?.account.isProven),
    /** Returns how many keys are paused after a 429, as far as this process knows. */
    pausedKeys(): number {
      const nowMs = store.nowMs();
      const isPaused = (one: Seen | Offline | undefined) => one !== undefined && isPausedAt(one.account, nowMs);
      return seen.count(isPaused) + offline.count((own, apiKey) => isPaused(own) && !isPaused(seen.get(apiKey)));
    },
    /** Returns the quota from the store, and stores nothing: anybody can read the quota of made-up keys. */
    async refresh(apiKey: string): Promise<QuotaState> {
      await read(apiKey);
      return quotaState(apiKey) ?? quotaOfUnused(store.nowMs());
    },
    /** Returns the minimum wait of a call with so many others before it. */
    minWait(apiKey: string, ahead: number): MinWait {
      if (hasNoContact()) return NO_CONTACT;
      const own = offline.get(apiKey);
      const account = own?.account ?? seen.get(apiKey)?.account;
      if (!account) return { waitMs: 0, window: undefined };
      const nowMs = store.nowMs();
      passTime(account, nowMs, own?.rules ?? rules);
      const wait = minWait(account, ahead, nowMs, own?.rules ?? rules);
      if (!own) return wait;
      return { ...wait, waitMs: Math.min(wait.waitMs, SOON_MS), cause: replicas && 'share' };
    },
    /** Whether the probe after a pause is in flight, as far as this process knows: no other call is sent before its response. */
    isProbing(apiKey: string): boolean {
      const account = (offline.get(apiKey) ?? seen.get(apiKey))?.account;
      return account !== undefined && account.pause.isHalfOpen && store.nowMs() < account.pause.probeUntilMs;
    },
    /** Whether another replica may have changed the account since this process saw it, and a look at Redis takes but a moment. */
    isViewOld(apiKey: string): boolean {
      const last = seen.get(apiKey);
      if (!last || !replicas?.isRedisFast || offline.get(apiKey)) return false;
      return store.nowMs() - last.atMs > OLD_VIEW_MS;
    },
    flush,
  };

  function quotaOfUnused(nowMs: number): QuotaState {
    const account = newAccount('', true);
    passTime(account, nowMs, rules);
    return quotaStateOf(account, nowMs, rules);
  }

  async function settleBy(
    change: AccountChange<void>,
    { apiKey, permit, end }: { readonly apiKey: string; readonly permit: Permit; readonly end: CallEnd },
  ): Promise<void> {
    if (offline.get(apiKey)?.account.epoch !== permit.epoch) {
      try {
        return await updateStore(apiKey, change, end);
      } catch {
        // Redis may have carried it out, and a refund counts each time: the lease runs out instead.
        if (end.kind === 'unused') return;
        openOffline(apiKey).unwritten.push(change);
      }
    }
    updateOffline(apiKey, change);
  }

  /** Headers have lowered or raised a count, or named a limit. */
  function logCorrection(apiKey: string, end: CallEnd, [before, after]: readonly Counts[]): void {
    if (!before || end.kind === 'unused' || end.kind === 'lost') return;
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    log.debug?.({ key: nameOf(apiKey), told: end.headers, before, after }, 'count corrected');
  }

  /** Tries to write what the store has not taken. */
  async function flush(): Promise<void> {
    await Promise.allSettled(offline.entries().map(([apiKey]) => rejoin(apiKey)));
  }

  /** Whether Redis failed before this replica has reached it: it knows neither the account nor the other replicas. */
  function hasNoContact(): boolean {
    return replicas !== undefined && !replicas.isRedisWorking && replicas.startedAtMs === undefined;
  }

  /** Reads the account as the store has it; while the store is unavailable, nothing changes. */
  async function read(apiKey: string): Promise<void> {
    const now = await whileAvailable(async () => {
      await rejoin(apiKey);
      return store.update(documentOf(apiKey), (text, nowMs) => {
        const account = text === undefined ? undefined : open(apiKey, text, nowMs);
        return { text, ttlMs: 0, result: account && { account, text, atMs: nowMs } };
      });
    });
    if (now) seen.set(apiKey, now);
  }

  /** Works on the store; undefined while it is unavailable. */
  async function whileAvailable<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    if (replicas?.isRedisWorking === false) return undefined;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      replicas?.noteFailure(error);
      return undefined;
    }
  }

  function documentOf(apiKey: string): string {
    return `${NAME}:${nameOf(apiKey)}`;
  }

  function updateOffline<Result>(apiKey: string, change: AccountChange<Result>): Result {
    const own = openOffline(apiKey);
    const result = change(own.account, store.nowMs(), own.rules);
    offline.set(apiKey, own);
    return result;
  }

  function openOffline(apiKey: string): Offline {
    const known = offline.get(apiKey);
    if (known) return known;
    const last = seen.get(apiKey)?.account;
    const opened = replicas ? openShare(last, store.nowMs(), rules, replicas) : openWhole(last, rules);
    const own: Offline = { ...opened, unwritten: [] };
    offline.set(apiKey, own);
    return own;
  }

  /** @param end of the call that the change settles. */
  async function updateStore<Result>(apiKey: string, change: AccountChange<Result>, end?: CallEnd): Promise<Result> {
    const { result, now } = await store.update(
      documentOf(apiKey),
      (found, nowMs): Changed<{ result: Result; now: Seen }> => {
        const account = open(apiKey, found, nowMs);
        const changed = change(account, nowMs, rules);
        const text = isWorthKeeping(account, end, nowMs) ? JSON.stringify(account) : undefined;
        const ttlMs = isBlank(account) ? rules.leaseMs : ACCOUNT_TTL_MS;
        return { text, ttlMs, result: { result: changed, now: { account, text, atMs: nowMs } } };
      },
    );
    if (now.account.granted > 0) seen.set(apiKey, now);
    return result;
  }

  /** Restores all seen accounts after Redis lost its data, so that other replicas see them; the last used key first. */
  async function writeBack(): Promise<void> {
    for (const [apiKey, { account }] of seen.entries()) {
      const nowMs = store.nowMs();
      passTime(account, nowMs, rules);
      if (account.day.total > 0 || account.pause.untilMs > nowMs) await updateStore(apiKey, RESTORE);
    }
  }

  function open(apiKey: string, found: string | undefined, nowMs: number): Account {
    const last = seen.get(apiKey);
    const isSeen = found !== undefined && found === last?.text;
    const known = isSeen ? (JSON.parse(found) as Account) : readAccount(found);
    // The offline account starts from it if it cannot be written.
    if (known && !last) seen.set(apiKey, { account: structuredClone(known), text: JSON.stringify(known), atMs: nowMs });
    const account = known ?? newAccount(randomUUID(), true);
    // Redis lost some of it, or another replica restored it from what that one had seen.
    if (last && hasLost(account, last.account)) restore(account, last.account);
    return account;
  }

  /** Writes what the store has missed; one write of a key at a time. */
  async function rejoin(apiKey: string): Promise<void> {
    const own = offline.get(apiKey);
    if (own) await (own.rejoining ??= write(apiKey, own).finally(() => (own.rejoining = undefined)));
  }

  async function write(apiKey: string, own: Offline): Promise<void> {
    const unwritten = [...own.unwritten];
    if (own.account.granted === 0 && unwritten.length === 0) return offline.delete(apiKey);
    const used = structuredClone(own.account);
    await updateStore(apiKey, (account, nowMs) => {
      for (const change of unwritten) change(account, nowMs, rules);
      merge(account, used);
    });
    offline.delete(apiKey);
  }

  function merge(account: Account, own: Account): void {
    if (replicas) absorb(account, own);
    else Object.assign(account, structuredClone(own));
  }

  /** Returns the key's quota as this process saw it last; undefined before the first call. */
  function quotaState(apiKey: string): QuotaState | undefined {
    const last = seen.get(apiKey);
    const own = offline.get(apiKey);
    const nowMs = store.nowMs();
    if (own) {
      const account = structuredClone(last?.account ?? newAccount('', true));
      merge(account, own.account);
      return quotaStateOf({ ...account, pause: own.account.pause }, nowMs, rules);
    }
    if (!last) return undefined;
    if (latest?.seen !== last || latest.atMs !== nowMs) {
      passTime(last.account, nowMs, rules);
      latest = { seen: last, atMs: nowMs, value: quotaStateOf(last.account, nowMs, rules) };
    }
    return latest.value;
  }
}

function isPausedAt({ pause }: Account, nowMs: number): boolean {
  return pause.incidents > 0 && nowMs < pause.untilMs;
}

/** Whether the stored account is older than what was seen of it: Redis has lost a write, or all of it. */
function hasLost(found: Account, seen: Account): boolean {
  return found.granted < seen.granted || found.epoch !== seen.epoch || found.pause.untilMs < seen.pause.untilMs;
}

type Counts = ReturnType<typeof countsOf>;

function countsOf({ minute, day }: Account) {
  return {
    minute: { used: minute.total, limit: minute.limit },
    day: { used: day.total, limit: day.limit },
  };
}
