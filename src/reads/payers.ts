import type { Visitor, VisitorShares } from '../throttle/visitor-shares.ts';
import type { PendingReads } from './pending-reads.ts';
import type { CallKey } from './cache/read-key.ts';
import { waitersOf } from './read-waiter.ts';
import type { PendingRead, ReadWaiter } from './read-waiter.ts';

type Calls = ReadonlyMap<CallKey, readonly PendingRead[]>;

/** Who pays for the calls of a plan, where visitors share the quota. */
export interface Payers {
  /** The waiter that pays for each call, from the share of its visitor. */
  readonly byCall: ReadonlyMap<CallKey, ReadWaiter>;
  /** Calls for visitors that have no share left. */
  readonly unpaid: Calls;
}

/** Without visitors, the first waiter pays. */
export const NO_PAYERS: Payers = { byCall: new Map(), unpaid: new Map() };

/** Finds a waiter for each call whose visitor may make it, after the calls before it in the plan. */
export function findPayers(calls: Calls, pending: PendingReads, shares: VisitorShares): Payers {
  const payers = new Map<CallKey, ReadWaiter>();
  const unpaid = new Map<CallKey, readonly PendingRead[]>();
  const planned = new Map<Visitor, number>();
  for (const [call, reads] of calls) {
    const payer = possiblePayers(call, reads).find((waiter) => {
      const { visitor } = waiter.request;
      const own = planned.get(visitor) ?? 0;
      return pending.isInNeed(waiter) && shares.hasShare(visitor, { own, ahead: payers.size });
    });
    if (!payer) {
      unpaid.set(call, reads);
      continue;
    }
    const { visitor } = payer.request;
    planned.set(visitor, (planned.get(visitor) ?? 0) + 1);
    payers.set(call, payer);
  }
  return { byCall: payers, unpaid };
}

/** Returns the waiters of the read that the call is for before those that it saves a call. */
export function possiblePayers(call: CallKey, reads: readonly PendingRead[]): ReadWaiter[] {
  const own = reads.filter(({ key }) => key === call);
  const others = reads.filter(({ key }) => key !== call);
  return waitersOf([...own, ...others]);
}
