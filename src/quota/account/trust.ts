import type { Account, Permit } from './format.ts';
import type { Moment } from './window.ts';
import { FIRST_LOST_MS, HANGS_AFTER_MS, MAX_LOST_MS } from './times.ts';

/*
 * Trust: how many calls may go before the next success proves more. It begins with one call where petql does not know how much the
 * upstream allows, and doubles with each round of successes: one, two, four, eight. A 429 ends it.
 */

/** So many successes prove that the upstream serves the key as petql counts. */
const FULL_TRUST = 31;

export function beginTrust(account: Account, nowMs: number): void {
  account.trust = { sinceMs: nowMs, calls: 1, successes: 0, lost: 0, againAtMs: 0 };
}

/** Returns how many calls may go now: where all are under way or lost, another one after a while. */
export function trialsLeft({ trust }: Account, nowMs: number): number {
  if (!trust) return Infinity;
  return trust.calls > 0 ? trust.calls : Number(nowMs >= trust.againAtMs);
}

/** Takes so many calls from what may go now. */
export function takeTrials({ trust }: Account, count: number, { nowMs, rules }: Moment): void {
  if (!trust || count === 0) return;
  trust.calls = Math.max(0, trust.calls - count);
  // Of a key that was never refused, others do not wait for a call that hangs.
  const isNewKey = trust.sinceMs === 0;
  trust.againAtMs = nowMs + (isNewKey ? Math.min(HANGS_AFTER_MS, rules.probeMs) : rules.probeMs);
}

/** Another call may go in place of one that was not sent, or whose response proves nothing. */
export function returnTrial(account: Account, permit: Permit): void {
  if (account.trust && isTrialOf(account, permit)) account.trust.calls += 1;
}

/**
 * A call got no response, which is no 429: within the count another one may go in its place. Beyond the count, where it may have been
 * one too many, the next one goes after a pause that grows.
 */
export function loseTrial(account: Account, permit: Permit, { nowMs, rules }: Moment): void {
  const { trust } = account;
  if (!trust || !isTrialOf(account, permit)) return;
  const isBeyond = [account.minute, account.day].some(({ beyondSinceMs }) => beyondSinceMs !== undefined);
  const firstMs = Math.min(FIRST_LOST_MS, rules.probeMs);
  trust.againAtMs = nowMs + Math.min(firstMs * 2 ** (isBeyond ? trust.lost : 0), MAX_LOST_MS);
  trust.lost += 1;
  if (!isBeyond) trust.calls += 1;
}

/** A call has succeeded: two more may go. */
export function proveTrial(account: Account, permit: Permit): void {
  const { trust } = account;
  if (!trust || !isTrialOf(account, permit)) return;
  trust.calls += 2;
  trust.successes += 1;
  trust.lost = 0;
  if (trust.successes >= FULL_TRUST) account.trust = undefined;
}

function isTrialOf({ epoch, pause, trust }: Account, permit: Permit): boolean {
  // A permit of the millisecond in which a 429 came was granted before it.
  if (permit.grantedAtMs <= pause.incidentAtMs) return false;
  return permit.isTrial && permit.epoch === epoch && trust !== undefined && permit.grantedAtMs >= trust.sinceMs;
}
