import { randomUUID } from 'node:crypto';
import { newAccount } from './account.ts';
import type { Account } from './format.ts';
import { limitsOf } from './limits.ts';
import type { AccountRules } from './limits.ts';
import { leftOf, passTime } from './windows.ts';

/** The account of a key that is used while the store is unavailable. */
export interface OfflineAccount {
  readonly account: Account;
  readonly rules: AccountRules;
}

/** A minute and a response: other replicas may use the rest of a minute in which the key was used. */
const WHOLE_MINUTE_MS = 61_000;
const MAX_IN_FLIGHT = 2;

/**
 * Opens an account of a replica's offline share of the plan: a part of the minute, and of the rest of the day.
 *
 * @param seen the account as this replica saw it last; undefined if it never did.
 * @param divisor among how many replicas the plan is divided.
 */
export function openOfflineShare(
  seen: Account | undefined,
  nowMs: number,
  rules: AccountRules,
  divisor: number,
): OfflineAccount {
  const account = newAccount(randomUUID(), true);
  if (seen) {
    passTime(seen, nowMs, rules);
    continueFrom(seen, account, nowMs);
  }

  const share = (calls: number) => Math.max(0, Math.floor(calls / divisor));
  const limits = limitsOf(seen ?? account, rules.plan);
  const left = seen ? leftOf(seen, rules) : limits;
  return {
    account,
    rules: {
      ...rules,
      offlineShare: {
        divisor,
        limits: { minute: Math.max(1, share(limits.minute)), day: share(left.day) },
        maxInFlight: MAX_IN_FLIGHT,
      },
    },
  };
}

/** Copies limits, plan and pause, without the used permits: the stored account still counts them. */
function continueFrom(seen: Account, account: Account, nowMs: number): void {
  account.minute.limit = seen.minute.limit;
  account.day.limit = seen.day.limit;
  account.isProven = seen.isProven;
  account.isPlanKnown = seen.isPlanKnown;
  account.configured = seen.configured;

  const { pause } = account;
  Object.assign(pause, seen.pause, { isHalfOpen: true, probeUntilMs: 0 });
  if (seen.minute.total > 0) pause.untilMs = Math.max(pause.untilMs, nowMs + WHOLE_MINUTE_MS);
}
