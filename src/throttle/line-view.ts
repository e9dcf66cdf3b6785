import type { QuotaState } from './account/quota-state.ts';
import type { Wait } from './account/wait.ts';
import type { Accounts } from './accounts.ts';
import type { View } from './admission.ts';
import type { RefreshBudget } from './refresh-budget.ts';
import type { Visitor, VisitorCalls } from './visitor-calls.ts';

/** Background calls leave these parts of the windows to others. */
const MINUTE_RESERVE = 0.5;
const DAY_RESERVE = 0.2;

/** What a key's quota is made of. */
export interface KeyQuota {
  readonly apiKey: string;
  readonly accounts: Accounts;
  readonly visitors: VisitorCalls;
  readonly refreshBudget: RefreshBudget;
  /** Returns how many processes share the plan. */
  readonly replicas: () => number;
}

/** What the line itself knows. */
type LineState = Pick<View, 'isStopping' | 'nowMs' | 'permits' | 'promised'> & {
  /** Whether the account is being read, and may count permits that are not here yet. */
  readonly isTaking: boolean;
  /** Calls that may start before there are too many in flight. */
  readonly freeSlots: number;
};

/** What a key's account, visitors and budget say at one moment. Most decisions need two of its answers, so each is found on demand. */
export class LineView implements View {
  readonly nowMs: number;
  readonly isStopping: boolean;
  readonly permits: number;
  readonly promised: number;
  readonly #quota: KeyQuota;
  readonly #isTaking: boolean;
  readonly #freeSlots: number;
  #state: QuotaState | undefined;
  #slots: number | undefined;
  #isOld: boolean | undefined;

  constructor(quota: KeyQuota, { nowMs, isStopping, permits, promised, isTaking, freeSlots }: LineState) {
    this.#quota = quota;
    this.nowMs = nowMs;
    this.isStopping = isStopping;
    this.permits = permits;
    this.promised = promised;
    this.#isTaking = isTaking;
    this.#freeSlots = freeSlots;
  }

  get isOld(): boolean {
    const { accounts, apiKey } = this.#quota;
    return (this.#isOld ??= this.#isTaking || accounts.isViewOld(apiKey));
  }

  get isAfter429(): boolean {
    return (this.quotaState?.incidents ?? 0) > 0;
  }

  /** While permits are taken, one of them may be the probe. */
  get slots(): number {
    const { accounts, apiKey } = this.#quota;
    return (this.#slots ??= !this.#isTaking && accounts.isProbing(apiKey) ? 0 : this.#freeSlots);
  }

  /** The key's quota as this process saw it last; undefined before the first call. */
  get quotaState(): QuotaState | undefined {
    return (this.#state ??= this.#quota.accounts.quotaState(this.#quota.apiKey));
  }

  waitOf(ahead: number): Wait {
    return this.#quota.accounts.waitOf(this.#quota.apiKey, ahead);
  }

  reserveWaitOf(ahead: number): Wait {
    const state = this.quotaState;
    if (!state) return { waitMs: 0, window: undefined };
    const minuteMs = state.countedWaitMs('minute', Math.floor(state.minute.limit * MINUTE_RESERVE) + ahead);
    const dayMs = state.countedWaitMs('day', Math.floor(state.day.limit * DAY_RESERVE) + ahead);
    return dayMs > minuteMs ? { waitMs: dayMs, window: 'DAY' } : { waitMs: minuteMs, window: 'MINUTE' };
  }

  hasShare(visitor: Visitor, own: number, ahead: number): boolean {
    return visitor === undefined || this.#quota.visitors.hasShare(visitor, this.quotaState, { own, ahead });
  }

  shareWaitOf(visitor: Visitor, own: number, ahead: number): Wait {
    const share = this.#quota.visitors.waitOf(visitor, this.quotaState, { own, ahead });
    // The key may be paused too.
    return { ...share, waitMs: Math.max(share.waitMs, this.waitOf(0).waitMs) };
  }

  hasRefreshToken(visitor: Visitor, own: number, calls: number): boolean {
    const { refreshBudget, replicas, visitors } = this.#quota;
    const usedLately = visitors.usedLately(visitor) + own;
    return refreshBudget.tokens(this.quotaState?.day, replicas()) - calls >= Math.max(1, usedLately);
  }
}
