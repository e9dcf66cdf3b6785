import { LRUCache } from 'lru-cache';
import type { Clock } from '../common/clock.ts';
import { maxEntries } from '../common/memory.ts';
import type { ReplicaView } from '../store/replicas.ts';
import { WINDOW_NAMES } from './account/slots.ts';
import type { WindowName } from './account/slots.ts';
import type { QuotaState } from './account/quota-state.ts';
import {
  allowance,
  countCalls,
  dropFree,
  isWithinShare,
  newVisitorCalls,
  shareWaitMs,
  usedInLastHour,
} from './account/visitor-share.ts';
import type { VisitorCalls } from './account/visitor-share.ts';
import { longerWait } from './account/wait.ts';
import type { Wait } from './account/wait.ts';

/** An end user behind the key, by a hash; undefined where the operators do not tell them apart. */
export type Visitor = string | undefined;

/** Calls that stand in the line before the one in question: those that the visitor pays for, and all that have no permit. */
interface Standing {
  readonly own: number;
  readonly ahead: number;
}

/** petql forgets the visitor that called longest ago; its next calls count from 0. */
const MAX_COUNTED_VISITORS = 10_000;
const NO_STANDING: Standing = { own: 0, ahead: 0 };

/** The visitors of one key: the calls that each has used in this process, and what its share leaves it. */
export class Visitors {
  readonly #clock: Clock;
  /** The processes that share the key. */
  readonly #replicas: Pick<ReplicaView, 'count'>;
  /** The calls of each visitor; the least recently used goes first. Undefined before the first. */
  #visitors: LRUCache<string, VisitorCalls> | undefined;

  constructor(clock: Clock, replicas: Pick<ReplicaView, 'count'>) {
    this.#clock = clock;
    this.#replicas = replicas;
  }

  /** Whether no visitor has made a call. */
  get isEmpty(): boolean {
    return this.#visitors === undefined;
  }

  /** Counts a call of the visitor; with the time, by `clock.elapsed()`, it can be refunded. */
  charge(visitor: Visitor, atMs: number): void {
    if (visitor === undefined) return;
    this.#visitors ??= new LRUCache(maxEntries(MAX_COUNTED_VISITORS));
    const calls = this.#visitors.get(visitor) ?? newVisitorCalls();
    this.#visitors.set(visitor, calls);
    countCalls(calls, atMs);
  }

  /** Takes back a call that was charged at this time, and not sent. */
  refund(visitor: Visitor, atMs: number): void {
    const calls = this.#callsOf(visitor);
    if (calls) countCalls(calls, atMs, -1);
  }

  /** Returns how many calls the visitor has used in the last hour: it may use as much of the refresh budget as it leaves. */
  usedLately(visitor: Visitor): number {
    const calls = this.#callsOf(visitor);
    return calls ? usedInLastHour(calls, this.#clock.elapsed()) : 0;
  }

  /** Whether the visitor may pay for one more call. */
  hasShare(visitor: Visitor, state: QuotaState | undefined, { own, ahead }: Standing): boolean {
    if (visitor === undefined || !state) return true;
    const replicas = this.#replicas.count;
    return WINDOW_NAMES.every((name) => {
      const remaining = state.leftToShare(name) - ahead;
      return isWithinShare(this.#used(visitor, name) + own, { remaining, replicas });
    });
  }

  /** Returns the minimum time until the visitor may pay for one more call. */
  waitOf(visitor: Visitor, state: QuotaState | undefined, standing: Standing): Wait {
    if (visitor === undefined || !state) return { waitMs: 0, window: 'MINUTE' };
    return longerWait({
      minuteMs: this.#waitMs(visitor, 'minute', state, standing),
      dayMs: this.#waitMs(visitor, 'day', state, standing),
    });
  }

  /** Returns the quota as the visitor may see it: its share, and not the plan. */
  quotaOf(visitor: string, state: QuotaState): Pick<QuotaState, 'day' | 'minute' | 'pausedForMs' | 'plan'> {
    const replicas = this.#replicas.count;
    const shareOf = (name: WindowName) => {
      const window = state[name];
      const used = this.#used(visitor, name);
      const remaining = allowance(used, { remaining: state.leftToShare(name), replicas });
      const resetInMs = remaining > 0 ? window.resetInMs : this.#waitMs(visitor, name, state, NO_STANDING);
      return { ...window, limit: used + remaining, used, remaining, resetInMs };
    };
    return { plan: undefined, minute: shareOf('minute'), day: shareOf('day'), pausedForMs: state.pausedForMs };
  }

  #waitMs(visitor: Visitor, name: WindowName, state: QuotaState, { own, ahead }: Standing): number {
    const nowMs = this.#clock.elapsed();
    const calls = structuredClone(this.#callsOf(visitor) ?? newVisitorCalls());
    countCalls(calls, nowMs, own);
    return shareWaitMs(calls, name, nowMs, {
      more: 1,
      replicas: this.#replicas.count,
      keyWaitMs: (needed) => state.leftToShareInMs(name, needed + ahead),
    });
  }

  #used(visitor: Visitor, name: WindowName): number {
    return this.#callsOf(visitor)?.[name].total ?? 0;
  }

  #callsOf(visitor: Visitor): VisitorCalls | undefined {
    const calls = visitor === undefined ? undefined : this.#visitors?.get(visitor);
    if (calls) dropFree(calls, this.#clock.elapsed());
    return calls;
  }
}
