import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { maxEntries } from '../max-entries.ts';
import type { WindowName } from './account/format.ts';
import type { QuotaState } from './account/quota-state.ts';
import {
  allowance,
  charge,
  dropFree,
  hasShare,
  newVisitorCalls,
  refund,
  shareWaitMs,
  usedLately,
} from './account/visitor-share.ts';
import type { VisitorCalls } from './account/visitor-share.ts';
import type { Wait } from './account/wait.ts';
import { WINDOW_NAMES } from './account/windows.ts';
import { createRefusal } from './refusal.ts';
import type { Refusal } from './refusal.ts';
import type { Throttle } from './throttle.ts';

/** An end user behind the key, by a hash; undefined where the operators do not tell them apart. */
export type Visitor = string | undefined;

interface VisitorSharesOptions {
  readonly throttle: Pick<Throttle, 'callsBefore' | 'waitOf' | 'quotaState'>;
  readonly clock: Clock;
  /** Returns how many processes share the key. */
  readonly replicas: () => number;
}

/** What a client sees of a quota. */
export type ShownQuota = Pick<QuotaState, 'day' | 'minute' | 'pausedForMs' | 'plan'>;

/** Calls that are planned and have no permit yet. */
interface PlannedCounts {
  /** Of the visitor. */
  readonly own: number;
  /** Of all, before the one in question. */
  readonly ahead: number;
}

/** Forgetting a visitor favors it. */
const MAX_VISITORS = 10_000;
const NONE_PLANNED: PlannedCounts = { own: 0, ahead: 0 };

/** What each visitor of one key uses, and whether it may use more (account/visitor-share.ts). */
export class VisitorShares {
  readonly #options: VisitorSharesOptions;
  /** The calls of each visitor; the least recently used goes first. Undefined before the first. */
  #visitors: LRUCache<string, VisitorCalls> | undefined;

  constructor(options: VisitorSharesOptions) {
    this.#options = options;
  }

  /** Whether no visitor has made a call. */
  get isEmpty(): boolean {
    return this.#visitors === undefined;
  }

  /** Whether the visitor may make one more call. */
  hasShare(visitor: Visitor, { own, ahead }: PlannedCounts = NONE_PLANNED): boolean {
    const { throttle, replicas } = this.#options;
    const state = visitor === undefined ? undefined : throttle.quotaState();
    if (!state) return true;
    const before = throttle.callsBefore(ahead);
    return WINDOW_NAMES.every((name) => {
      const remaining = state.countedLeft(name) - before;
      return hasShare(this.#used(visitor, name) + own, { remaining, replicas: replicas() });
    });
  }

  /** Returns how many calls the visitor has used in the last hour. */
  usedLately(visitor: Visitor): number {
    const calls = this.#callsOf(visitor);
    return calls ? usedLately(calls, this.#options.clock.elapsed()) : 0;
  }

  /** Counts a call of the visitor; with the time, by `clock.elapsed()`, it can be refunded. */
  charge(visitor: Visitor, atMs: number): void {
    if (visitor === undefined) return;
    this.#visitors ??= new LRUCache(maxEntries(MAX_VISITORS));
    const calls = this.#visitors.get(visitor) ?? newVisitorCalls();
    this.#visitors.set(visitor, calls);
    charge(calls, atMs);
  }

  /** Takes back a call that was charged at this time, and not sent. */
  refund(visitor: Visitor, atMs: number): void {
    const calls = this.#callsOf(visitor);
    if (calls) refund(calls, atMs);
  }

  /** Returns the refusal of a call of a visitor without a share. */
  refusal(visitor: Visitor, planned: PlannedCounts = NONE_PLANNED): Refusal {
    const { throttle, clock } = this.#options;
    const state = throttle.quotaState();
    const wait = this.waitOf(visitor, 1, planned);
    // The key may be paused too.
    const waitMs = Math.max(wait.waitMs, throttle.waitOf(0).waitMs);
    return createRefusal('visitor-share', { ...wait, waitMs }, state, clock.now());
  }

  /** Returns the minimum time until the visitor may make so many more calls. */
  waitOf(visitor: Visitor, more: number, planned: PlannedCounts): Wait {
    const minute = this.#waitMs(visitor, 'minute', more, planned);
    const day = this.#waitMs(visitor, 'day', more, planned);
    return day > minute ? { waitMs: day, window: 'DAY' } : { waitMs: minute, window: 'MINUTE' };
  }

  /** Returns the quota as the visitor may see it: its share, and not the plan. */
  quotaOf(visitor: Visitor, state: QuotaState): ShownQuota {
    if (visitor === undefined) return state;
    const replicas = this.#options.replicas();
    const shareOf = (name: WindowName) => {
      const window = state[name];
      const used = this.#used(visitor, name);
      const remaining = allowance(used, { remaining: state.countedLeft(name), replicas });
      const resetInMs = remaining > 0 ? window.resetInMs : this.#waitMs(visitor, name, 1, NONE_PLANNED);
      return { ...window, limit: used + remaining, used, remaining, resetInMs };
    };
    return { plan: undefined, minute: shareOf('minute'), day: shareOf('day'), pausedForMs: state.pausedForMs };
  }

  #waitMs(visitor: Visitor, name: WindowName, more: number, { own, ahead }: PlannedCounts): number {
    const { throttle, clock, replicas } = this.#options;
    const state = visitor === undefined || more === 0 ? undefined : throttle.quotaState();
    if (!state) return 0;

    const nowMs = clock.elapsed();
    const calls = structuredClone(this.#callsOf(visitor) ?? newVisitorCalls());
    charge(calls, nowMs, own);
    const before = throttle.callsBefore(ahead);
    return shareWaitMs(calls, name, nowMs, {
      more,
      replicas: replicas(),
      keyWaitMs: (needed) => state.countedWaitMs(name, needed + before),
    });
  }

  #used(visitor: Visitor, name: WindowName): number {
    return this.#callsOf(visitor)?.[name].total ?? 0;
  }

  #callsOf(visitor: Visitor): VisitorCalls | undefined {
    const calls = visitor === undefined ? undefined : this.#visitors?.get(visitor);
    if (calls) dropFree(calls, this.#options.clock.elapsed());
    return calls;
  }
}
