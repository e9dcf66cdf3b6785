import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Log } from '../log.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { Changed, Store } from '../store/store.ts';
import type { UpstreamAnswer } from '../upstream/pet-api.ts';
import { lose, newAccount, refund, refuse, settle, succeed, take } from './account.ts';
import type { Account, Moment, Permit, RateLimited, Response, Taken } from './account.ts';
import { decodeAccount, encodeAccount } from './account-format.ts';
import type { AccountRules } from './account-limits.ts';
import { restore } from './account-merge.ts';
import { passTime, sum } from './account-windows.ts';
import { createOfflineAccounts } from './offline-accounts.ts';
import type { Replicas } from './replicas.ts';
import { minWait, standingOf } from './standing.ts';
import type { MinWait, Standing } from './standing.ts';
import { headerLimits } from './header-limits.ts';

/** The accounts of all keys: kept in a store, and without it in this process. */
export interface Ledger {
  /** Grants up to `wanted` permits, also while the store is unavailable. */
  take(apiKey: string, wanted: number): Promise<Taken>;
  /** Reports the end of a permit. A report that the store does not take is applied once it is available. */
  report(apiKey: string, permit: Permit, report: Report): Promise<void>;
  /** Returns the key's standing as this process saw it last; undefined before the first call. The same object within a millisecond. */
  standing(apiKey: string): Standing | undefined;
  /** Returns the standing from the store. */
  refresh(apiKey: string): Promise<Standing>;
  /** Returns the minimum wait of a call with so many others before it. */
  minWait(apiKey: string, ahead: number): MinWait;
  /** Tries to write what the store has not taken. */
  flush(): Promise<void>;
}

export type Report =
  /** The call was not sent. */
  | { readonly kind: 'unused' }
  /** It was sent, without a response. */
  | { readonly kind: 'lost' }
  /** A 401 or 403: only its headers matter. */
  | ({ readonly kind: 'rejected' } & Response)
  | ({ readonly kind: 'succeeded' } & Response)
  | ({ readonly kind: 'rate-limited' } & RateLimited);

export interface LedgerOptions {
  readonly store: Store;
  /** Names a key's account; rejects with StoreUnavailableError while the name's secret is in an unavailable Redis. */
  readonly nameOf: (apiKey: string) => Promise<string> | string;
  readonly rules: AccountRules;
  readonly log: Log;
  /** Whether the upstream started with this process, so no calls were made before. Default false. */
  readonly isFreshUpstream?: boolean;
  /** Whether the store began empty with this process, though calls may have been made before. Default false. */
  readonly isForgetful?: boolean;
  /** The processes that share the store. Default: this is the only one. */
  readonly replicas?: Replicas;
}

/** All permits of an account are free again after this. */
const ACCOUNT_TTL_MS = 93_600_000;
const MAX_SEEN = 20_000;
/** Redis may be available again at any time, so no wait is expected to be longer without it. */
const SOON_MS = 1_000;
const CONTENDED_MS = 50;

interface Seen {
  readonly account: Account;
  /** As the store keeps it. */
  readonly text: string;
  standing?: { readonly atMs: number; readonly value: Standing };
}

type AccountChange<Result> = (account: Account, nowMs: number, rules: AccountRules) => Result;

export function createLedger(options: LedgerOptions): Ledger {
  const { store, nameOf, rules, replicas, log, isFreshUpstream = false } = options;
  /** The accounts as this process saw them last. */
  const seen = new LRUCache<string, Seen>({ max: MAX_SEEN });
  const offline = createOfflineAccounts({ rules, ...(replicas ? { replicas } : {}) });
  /** Reports that the store has not taken, by key, in order. */
  const unwritten = new Map<string, AccountChange<void>[]>();
  const rejoining = new Map<string, Promise<void>>();
  let isWarningDue = options.isForgetful ?? false;
  replicas?.onBeat((isEmptied) => {
    void flush();
    if (isEmptied) writeBack().catch(() => {});
  });

  return {
    async take(apiKey, wanted) {
      try {
        return await update(apiKey, (account, nowMs, own) => take(account, wanted, { nowMs, rules: own }));
      } catch (error) {
        if (!isContended(error)) throw error;
        return { permits: [], closed: { by: 'contended', waitMs: CONTENDED_MS } };
      }
    },
    async report(apiKey, permit, report) {
      const change: AccountChange<void> = (account, nowMs, own) => {
        apply(account, permit, report, { nowMs, rules: own });
        if (isWarningDue && report.kind === 'succeeded' && account.day.limit === undefined) warnOfUnknownDay();
      };
      if (offline.get(apiKey)?.account.epoch === permit.epoch) return updateOffline(apiKey, change);
      try {
        await updateStore(apiKey, change);
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        unwritten.set(apiKey, [...(unwritten.get(apiKey) ?? []), change]);
        if (!isContended(error)) updateOffline(apiKey, change);
      }
    },
    standing,
    async refresh(apiKey) {
      await update(apiKey, () => {}).catch((error: unknown) => {
        if (!isContended(error)) throw error;
      });
      return standing(apiKey) ?? standingOf(newAccount('', true), store.nowMs(), rules);
    },
    minWait(apiKey, ahead) {
      const own = offline.get(apiKey);
      const account = own?.account ?? seen.get(apiKey)?.account;
      if (!account) return { waitMs: 0, window: undefined };
      const nowMs = store.nowMs();
      passTime(account, nowMs, own?.rules ?? rules);
      const wait = minWait(account, ahead, nowMs, own?.rules ?? rules);
      return own ? { ...wait, waitMs: Math.min(wait.waitMs, SOON_MS) } : wait;
    },
    flush,
  };

  function warnOfUnknownDay(): void {
    isWarningDue = false;
    log.warn(
      { reason: 'no header tells of the day, and there is no state file and no Redis' },
      'calls made earlier today are not known; the plan may be overrun until tomorrow',
    );
  }

  async function flush(): Promise<void> {
    await Promise.allSettled([...new Set([...offline.keys(), ...unwritten.keys()])].map(rejoin));
  }

  /** In the store, or without it in this process. */
  async function update<Result>(apiKey: string, change: AccountChange<Result>): Promise<Result> {
    if (replicas?.isRedisWorking !== false) {
      try {
        if (offline.get(apiKey) || unwritten.has(apiKey)) await rejoin(apiKey);
        return await updateStore(apiKey, change);
      } catch (error) {
        if (!(error instanceof StoreUnavailableError) || isContended(error)) throw error;
        replicas?.noteFailure(error);
      }
    }
    return updateOffline(apiKey, change);
  }

  function updateOffline<Result>(apiKey: string, change: AccountChange<Result>): Result {
    const nowMs = store.nowMs();
    const own = offline.open(apiKey, seen.get(apiKey)?.account, nowMs);
    return change(own.account, nowMs, own.rules);
  }

  async function updateStore<Result>(apiKey: string, change: AccountChange<Result>): Promise<Result> {
    const name = `account:${await nameOf(apiKey)}`;
    const { result, now } = await store.update(name, (found, nowMs): Changed<{ result: Result; now: Seen }> => {
      const account = open(apiKey, found);
      const changed = change(account, nowMs, rules);
      const text = encodeAccount(account);
      return { text, ttlMs: ACCOUNT_TTL_MS, result: { result: changed, now: { account, text } } };
    });
    seen.set(apiKey, now);
    return result;
  }

  /** Restores all seen accounts after Redis lost its data, so that other replicas see them; the last used key first. */
  async function writeBack(): Promise<void> {
    const before = [...seen.entries()];
    for (const [apiKey, { account }] of before) {
      const nowMs = store.nowMs();
      passTime(account, nowMs, rules);
      if (sum(account.day) > 0 || account.pause.untilMs > nowMs) await updateStore(apiKey, () => {});
    }
  }

  function open(apiKey: string, found: string | undefined): Account {
    const last = seen.get(apiKey);
    const known =
      found === undefined ? undefined : found === last?.text ? (JSON.parse(found) as Account) : decodeAccount(found);
    if (found !== undefined && !known) {
      log.warn({}, 'an account in the store cannot be read; the headers correct a new one');
    }
    // The offline account starts from it if it cannot be written.
    if (known && !last) seen.set(apiKey, { account: structuredClone(known), text: encodeAccount(known) });
    const account = known ?? newAccount(randomUUID(), !isFreshUpstream || found !== undefined);
    // Redis lost some of it, or another replica restored it from what that one had seen.
    if (last && (account.granted < last.account.granted || account.epoch !== last.account.epoch)) {
      restore(account, last.account);
    }
    return account;
  }

  /** Writes what the store has missed; one write of a key at a time. */
  function rejoin(apiKey: string): Promise<void> {
    const under = rejoining.get(apiKey);
    if (under) return under;
    const changes = [...(unwritten.get(apiKey) ?? [])];
    const merge = offline.merge(apiKey);
    const done = updateStore(apiKey, (account, nowMs, own) => {
      for (const change of changes) change(account, nowMs, own);
      merge(account);
    }).then(() => {
      offline.delete(apiKey);
      const later = (unwritten.get(apiKey) ?? []).slice(changes.length);
      if (later.length > 0) unwritten.set(apiKey, later);
      else unwritten.delete(apiKey);
    });
    const ended = done.finally(() => rejoining.delete(apiKey));
    rejoining.set(apiKey, ended);
    return ended;
  }

  function standing(apiKey: string): Standing | undefined {
    const last = seen.get(apiKey);
    const own = offline.get(apiKey);
    const nowMs = store.nowMs();
    if (own) return standingOf(merged(last?.account, own.account, offline.merge(apiKey)), nowMs, rules);
    if (!last) return undefined;
    if (last.standing?.atMs !== nowMs) {
      passTime(last.account, nowMs, rules);
      last.standing = { atMs: nowMs, value: standingOf(last.account, nowMs, rules) };
    }
    return last.standing.value;
  }
}

/** Makes the report of a permit from its response. */
export function reportOf(
  permit: Permit,
  { outcome, rateLimit, sent }: UpstreamAnswer<unknown>,
  { tookMs, nowMs }: { readonly tookMs: number; readonly nowMs: number },
): Report {
  if (!sent) return { kind: 'unused' };
  if (!rateLimit) return { kind: 'lost' };
  // The headers for an unknown key describe no plan.
  const headers = outcome.kind === 'unauthenticated' ? undefined : headerLimits(rateLimit, nowMs);
  const response = { headers, tookMs };
  const isRejected = outcome.kind === 'unauthenticated' || outcome.kind === 'forbidden';
  const isBan = isRejected && permit.isAfterRefusal;
  if (outcome.kind === 'rate-limited' || isBan) {
    return { kind: 'rate-limited', ...response, retryAfterMs: rateLimit.retryAfterMs ?? 0, isBan };
  }
  return { kind: isRejected ? 'rejected' : 'succeeded', ...response };
}

function apply(account: Account, permit: Permit, report: Report, moment: Moment): void {
  if (report.kind === 'unused') refund(account, permit);
  else if (report.kind === 'lost') lose(account, permit, moment);
  else if (report.kind === 'rejected') settle(account, permit, report, moment);
  else if (report.kind === 'succeeded') succeed(account, permit, report, moment);
  else refuse(account, permit, report, moment);
}

/** Returns the last seen account with what this process spent offline, and its pause. */
function merged(seen: Account | undefined, own: Account, merge: (account: Account) => void): Account {
  const account = structuredClone(seen ?? newAccount('', true));
  merge(account);
  return { ...account, pause: own.pause };
}

function isContended(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.isContended;
}
