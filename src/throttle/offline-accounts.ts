import { randomUUID } from 'node:crypto';
import { newAccount } from './account.ts';
import type { Account } from './account.ts';
import { limitsOf } from './account-limits.ts';
import type { AccountRules } from './account-limits.ts';
import { absorb } from './account-merge.ts';
import { leftOf, passTime, sum } from './account-windows.ts';
import type { Replicas } from './replicas.ts';

/**
 * The accounts of keys that are used while the store is unavailable. Without a file, this process continues from what it saw
 * last. Without Redis, each replica has a share: the plan divided by the replicas of the last ten minutes, at least two.
 */
export interface OfflineAccounts {
  /** Returns the key's offline account, and makes it from the last seen one where there is none. */
  open(apiKey: string, seen: Account | undefined, nowMs: number): Offline;
  get(apiKey: string): Offline | undefined;
  keys(): Iterable<string>;
  /** Returns the change that adds the offline account to the store's. */
  merge(apiKey: string): (account: Account) => void;
  delete(apiKey: string): void;
}

export interface Offline {
  readonly account: Account;
  readonly rules: AccountRules;
}

/** A minute and a response: other replicas may use the rest of a minute in which the key was used. */
const WHOLE_MINUTE_MS = 61_000;
const MAX_IN_FLIGHT = 2;
/** Divides the plan for a replica that the others may not have counted; it has one call in flight. */
const UNCOUNTED_SHARE = 50;

export function createOfflineAccounts(options: {
  readonly rules: AccountRules;
  readonly replicas?: Replicas;
}): OfflineAccounts {
  const { rules } = options;
  const accounts = new Map<string, Offline>();
  return {
    open(apiKey, seen, nowMs) {
      const known = accounts.get(apiKey);
      if (known) return known;
      const offline = options.replicas ? openShare(seen, nowMs, options.replicas) : openWhole(seen);
      accounts.set(apiKey, offline);
      return offline;
    },
    get: (apiKey) => accounts.get(apiKey),
    keys: () => accounts.keys(),
    merge(apiKey) {
      const own = structuredClone(accounts.get(apiKey)?.account);
      if (!own) return () => {};
      return (account) => void (options.replicas ? absorb(account, own) : Object.assign(account, structuredClone(own)));
    },
    delete: (apiKey) => void accounts.delete(apiKey),
  };

  function openWhole(seen: Account | undefined): Offline {
    return { account: seen ? structuredClone(seen) : newAccount(randomUUID(), true), rules };
  }

  function openShare(seen: Account | undefined, nowMs: number, replicas: Replicas): Offline {
    const account = newAccount(randomUUID(), true);
    if (seen) passTime(seen, nowMs, rules);
    const shareCount = replicas.shareCount ?? UNCOUNTED_SHARE;
    const share = (calls: number) => Math.max(1, Math.floor(calls / shareCount));
    const limits = limitsOf(seen ?? account, rules.plan);
    const left = seen ? leftOf(seen, rules) : limits;
    if (seen) {
      account.minute.limit = seen.minute.limit;
      account.day.limit = seen.day.limit;
      account.isPlanKnown = seen.isPlanKnown;
      account.configured = seen.configured;
      Object.assign(account.pause, seen.pause, { isHalfOpen: true, probeUntilMs: 0 });
      if (sum(seen.minute) > 0) account.pause.untilMs = Math.max(account.pause.untilMs, nowMs + WHOLE_MINUTE_MS);
    }
    return {
      account,
      rules: {
        ...rules,
        shareDivisor: shareCount,
        limits: { minute: share(limits.minute), day: share(left.day) },
        maxInFlight: replicas.shareCount === undefined ? 1 : MAX_IN_FLIGHT,
      },
    };
  }
}
