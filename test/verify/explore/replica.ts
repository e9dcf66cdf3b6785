import { randomUUID } from 'node:crypto';
import { newAccount, take } from '../../../src/quota/account/account.ts';
import type { Taken } from '../../../src/quota/account/account.ts';
import { applyEnd } from '../../../src/quota/account/call-end.ts';
import type { CallEnd } from '../../../src/quota/account/call-end.ts';
import type { Account, Permit } from '../../../src/quota/account/format.ts';
import type { AccountRules } from '../../../src/quota/account/limits.ts';
import { absorb, hasLost, restore } from '../../../src/quota/account/merge.ts';
import { openOfflineShare } from '../../../src/quota/account/offline-share.ts';
import { passTime } from '../../../src/quota/account/pass-time.ts';
import { dropNewFields } from './old-version.ts';
import type { Replica, ReplicasState } from './replicas-state.ts';
import { copyOf } from './search.ts';

type AccountChange<Result> = (account: Account, rules: AccountRules) => Result;

/** What one replica does with the key's account, in Redis or its own: the order of steps in KeyAccount, on plain data. */
export interface ReplicaSteps {
  /** @param isMute Redis carries the command out, and its reply is lost. */
  readonly take: (replica: Replica, wanted: number, isMute?: boolean) => Taken;
  readonly settle: (replica: Replica, permit: Permit, end: CallEnd, isMute?: boolean) => void;
  /** A heartbeat reaches Redis. */
  readonly beat: (replica: Replica) => void;
}

export function replicaSteps({ nowMs, redis, replicas }: ReplicasState, rules: AccountRules): ReplicaSteps {
  return {
    take(replica, wanted, isMute = false) {
      const change: AccountChange<Taken> = (account, by) => take(account, wanted, { nowMs, rules: by });
      if (!replica.isCut) {
        endOffline(replica);
        const taken = updateStored(replica, change, isMute);
        if (taken) return taken;
      }
      return replica.hasContact ? updateOffline(replica, change) : { permits: [] };
    },
    settle(replica, permit, end, isMute = false) {
      const change: AccountChange<void> = (account, by) => applyEnd(account, permit, end, { nowMs, rules: by });
      const isOffline = replica.offline?.account.epoch === permit.epoch;
      if (!isOffline) {
        if (!replica.isCut && updateStored(replica, (account, by) => (change(account, by), true), isMute)) return;
        // Redis may have applied a refund, so it is not repeated.
        if (end.kind === 'unused') return;
        open(replica).unwritten.push({ permit, end });
      }
      updateOffline(replica, change);
    },
    beat(replica) {
      replica.isCut = false;
      replica.hasContact = true;
      endOffline(replica);
      if (replica.hasLostBeats && replica.seen) {
        passTime(replica.seen, { nowMs, rules });
        const isUsed = replica.seen.day.total > 0 || replica.seen.pause.untilMs > nowMs;
        if (isUsed) updateStored(replica, () => true);
      }
      replica.hasLostBeats = false;
    },
  };

  /** Changes the stored account; returns undefined where Redis does not reply. */
  function updateStored<Result>(replica: Replica, change: AccountChange<Result>, isMute = false): Result | undefined {
    // Another replica has written first, so the change runs again: it must have changed nothing else.
    change(openStored(replica), rules);
    const account = openStored(replica);
    const result = change(account, rules);
    if (replica.isOld) dropNewFields(account);

    if (isMute && redis.account) replica.seen ??= copyOf(redis.account);
    redis.account = account;
    if (isMute) {
      replica.isCut = true;
      return undefined;
    }
    if (account.granted > 0) replica.seen = copyOf(account);
    return result;
  }

  function openStored({ isOld, seen }: Replica): Account {
    const account = redis.account ? copyOf(redis.account) : newAccount(randomUUID());
    if (isOld) dropNewFields(account);
    if (seen && hasLost(account, seen)) restore(account, seen);
    return account;
  }

  function updateOffline<Result>(replica: Replica, change: AccountChange<Result>): Result {
    const own = open(replica);
    return change(own.account, own.rules);
  }

  function open(replica: Replica): NonNullable<Replica['offline']> {
    const share = () => openOfflineShare(replica.seen, nowMs, rules, Math.max(2, replicas.length));
    return (replica.offline ??= { ...share(), unwritten: [] });
  }

  function endOffline(replica: Replica): void {
    const { offline } = replica;
    if (!offline) return;
    if (offline.account.granted > 0 || offline.unwritten.length > 0) {
      updateStored(replica, (account, by) => {
        for (const { permit, end } of offline.unwritten) applyEnd(account, permit, end, { nowMs, rules: by });
        absorb(account, offline.account);
      });
    }
    delete replica.offline;
  }
}
