import type { QuotaState } from '../quota/account/quota-state.ts';
import { longerWait } from '../quota/account/wait.ts';
import type { Wait } from '../quota/account/wait.ts';
import type { View } from './admission.ts';
import type { Turn } from '../closed/closed-api.ts';
import type { KeyQuota } from '../quota/key-quota.ts';
import type { Places } from './places.ts';
import type { Visitor } from '../quota/visitors.ts';

/** Background calls leave these parts of the windows to others. */
const MINUTE_RESERVE = 0.5;
const DAY_RESERVE = 0.2;

/** What the line itself knows. */
type ViewParts = Pick<View, 'isStopping' | 'nowMs' | 'permits' | 'promisedReturns'> & {
  /** Whether the account is being read, and may count permits that are not here yet. */
  readonly isTaking: boolean;
  readonly places: Places;
};

/** What a key's quota says at one moment. Most decisions need two of its answers, so each is found on demand. */
export class LineView implements View {
  readonly nowMs: number;
  readonly isStopping: boolean;
  readonly permits: number;
  readonly promisedReturns: number;
  readonly #quota: KeyQuota;
  readonly #isTaking: boolean;
  readonly #places: Places;
  #state: QuotaState | undefined;
  #freeCalls: number | undefined;
  #isOld: boolean | undefined;
  #turn: Turn | undefined;

  constructor(quota: KeyQuota, { nowMs, isStopping, permits, promisedReturns, isTaking, places }: ViewParts) {
    this.#quota = quota;
    this.nowMs = nowMs;
    this.isStopping = isStopping;
    this.permits = permits;
    this.promisedReturns = promisedReturns;
    this.#isTaking = isTaking;
    this.#places = places;
  }

  get isOld(): boolean {
    return (this.#isOld ??= this.#isTaking || this.#quota.account.isViewOld);
  }

  get isAfter429(): boolean {
    return (this.quotaState?.incidents ?? 0) > 0;
  }

  get freeCalls(): number {
    const isLimited = this.#trials === 0 || this.isAfter429;
    return (this.#freeCalls ??= isLimited ? Math.min(this.#spare, this.#trials) : this.#spare);
  }

  hasPlace(visitor: Visitor, own: number, others: number): boolean {
    if (visitor === undefined) return true;
    return this.#places.hasPlace(visitor, { own, others, spare: Math.min(this.#spare, this.#trials) });
  }

  /** The key's quota as this process saw it last; undefined before the first call. */
  get quotaState(): QuotaState | undefined {
    return (this.#state ??= this.#quota.account.state);
  }

  get turn(): Turn {
    return (this.#turn ??= this.#quota.turn);
  }

  waitOf(ahead: number): Wait {
    return this.#quota.account.waitOf(ahead);
  }

  reserveWaitOf(ahead: number): Wait {
    const state = this.quotaState;
    if (!state) return { waitMs: 0, window: undefined };
    const minuteMs = state.leftToShareInMs('minute', Math.floor(state.minute.limit * MINUTE_RESERVE) + ahead);
    const dayMs = state.leftToShareInMs('day', Math.floor(state.day.limit * DAY_RESERVE) + ahead);
    return longerWait({ minuteMs, dayMs });
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
    return this.#quota.refreshTokens(this.quotaState) - calls >= this.#tokensNeeded(visitor, own);
  }

  /** Returns the minimum time until it does. */
  refreshTokenWaitMs(visitor: Visitor): number {
    return this.#quota.refreshTokenWaitMs(this.quotaState, this.#tokensNeeded(visitor, 0));
  }

  #tokensNeeded(visitor: Visitor, own: number): number {
    // Where visitors are not told apart, nobody leaves a part to others.
    const usedLately = visitor === undefined ? 0 : this.#quota.visitors.usedLately(visitor) + own;
    return Math.max(1, usedLately);
  }

  get #spare(): number {
    return this.#places.spare(this.quotaState?.minute.limit ?? 0);
  }

  /** While permits are taken, some of the calls that trust allows are theirs. */
  get #trials(): number {
    return this.#isTaking ? Infinity : this.permits + this.#quota.account.trialsLeft;
  }
}
