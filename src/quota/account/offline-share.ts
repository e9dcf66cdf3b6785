import { randomUUID } from 'node:crypto';
import { newAccount } from './account.ts';
import type { Account } from './format.ts';
import type { AccountRules } from './limits.ts';
import { passTime } from './pass-time.ts';
import { WINDOW_NAMES } from './slots.ts';
import { WHOLE_MINUTE_MS } from './times.ts';
import { WindowAt, ownCount } from './window.ts';

/** The account of a key that is used while the store is unavailable. */
export interface OfflineAccount {
  readonly account: Account;
  readonly rules: AccountRules;
}

const MAX_OFFLINE_IN_FLIGHT = 2;

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
  const account = newAccount(randomUUID());
  const moment = { nowMs, rules };
  if (seen) {
    passTime(seen, moment);
    continueFrom(seen, account, nowMs);
  }

  const share = (calls: number) => Math.max(0, Math.floor(calls / divisor));
  const minute = new WindowAt(seen ?? account, 'minute', moment);
  const day = new WindowAt(seen ?? account, 'day', moment);
  return {
    account,
    rules: {
      ...rules,
      // It is counted in the limits already.
      planShare: 100,
      offlineShare: {
        divisor,
        limits: { minute: Math.max(1, share(minute.ownLimit)), day: share(day.left) },
        maxInFlight: MAX_OFFLINE_IN_FLIGHT,
      },
    },
  };
}

/** Copies limits, plan and pause, without the used permits: the stored account still counts them. */
function continueFrom(seen: Account, account: Account, nowMs: number): void {
  for (const name of WINDOW_NAMES) {
    const { isSure, limit } = seen[name];
    Object.assign(account[name], { isSure, limit });
  }
  account.isProven = seen.isProven;
  account.paceLesson = seen.paceLesson;
  account.configured = seen.configured;

  const { pause } = account;
  Object.assign(pause, seen.pause);
  if (ownCount(seen.minute) > 0) pause.untilMs = Math.max(pause.untilMs, nowMs + WHOLE_MINUTE_MS);
}
