import { randomUUID } from 'node:crypto';
import { newAccount } from './account/account.ts';
import type { Account } from './account/format.ts';
import { limitsOf } from './account/limits.ts';
import type { AccountRules } from './account/limits.ts';
import { leftOf, passTime } from './account/windows.ts';
import type { Replicas } from '../store/replicas.ts';

/** The account of a key that is used while the store is unavailable. */
export interface OfflineAccount {
  readonly account: Account;
  readonly rules: AccountRules;
}

/** A minute and a response: other replicas may use the rest of a minute in which the key was used. */
const WHOLE_MINUTE_MS = 61_000;
const MAX_IN_FLIGHT = 2;

/** Continues from what this process saw last, without a store that others use. */
export function openWhole(seen: Account | undefined, rules: AccountRules): OfflineAccount {
  return { account: seen ? structuredClone(seen) : newAccount(randomUUID(), true), rules };
}

/** Opens a replica's share: the plan divided by the replicas of the last ten minutes, at least two. */
export function openShare(
  seen: Account | undefined,
  nowMs: number,
  rules: AccountRules,
  { shareDivisor }: Replicas,
): OfflineAccount {
  const account = newAccount(randomUUID(), true);
  if (seen) passTime(seen, nowMs, rules);
  const share = (calls: number) => Math.max(0, Math.floor(calls / shareDivisor));
  const limits = limitsOf(seen ?? account, rules.plan);
  const left = seen ? leftOf(seen, rules) : limits;
  if (seen) {
    account.minute.limit = seen.minute.limit;
    account.day.limit = seen.day.limit;
    account.isProven = seen.isProven;
    account.isPlanKnown = seen.isPlanKnown;
    account.configured = seen.configured;
    Object.assign(account.pause, seen.pause, { isHalfOpen: true, probeUntilMs: 0 });
    if (seen.minute.total > 0) account.pause.untilMs = Math.max(account.pause.untilMs, nowMs + WHOLE_MINUTE_MS);
  }
  return {
    account,
    rules: {
      ...rules,
      shareDivisor,
      limits: { minute: Math.max(1, share(limits.minute)), day: share(left.day) },
      maxInFlight: MAX_IN_FLIGHT,
    },
  };
}
