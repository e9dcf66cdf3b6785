import { demandKey } from './demand.ts';
import type { Demand } from './demand.ts';

const DAY_MS = 86_400_000;
/**
 * Shares of the day's plan, tuned by the simulated day (test/simulate): what may be spent at once, and what flows in
 * through the day. Together they leave some for writes and first reads. A key that asks every ten minutes for what takes
 * six calls spends a little more than flows in, and has a burst of fifty calls left at any time of its day.
 */
const BURST_SHARE = 0.12;
const FLOW_SHARE = 0.82;
/** Of what is left of the day, this much of the plan is not for refreshing. */
const KEPT_SHARE = 0.04;
/** A demand that nobody has asked for in so long is nobody's concern. */
const ACTIVE_MS = 60_000;
/** Demands watched at most; past it, the one asked for longest ago is left out. */
const MOST_ACTIVE = 1_000;

/** Decides which calls may be spent on answers that are still good enough, so that a hot key lives through its day. */
export interface RefreshAllowance {
  /**
   * Whether a call may be spent on an answer of this age. The demands asked for lately come first in the order of their
   * age: a younger answer is refreshed only where all older ones could be as well.
   *
   * @param planned calls that are planned already and not yet sent.
   */
  allows(demand: Demand, asOfMs: number, planned: number): boolean;
  /** A call is sent, whatever it is for. */
  spend(): void;
  /** A call that was spent was not sent after all. */
  refund(): void;
}

export interface RefreshAllowanceOptions {
  elapsed(): number;
  /** The day of the caller's plan. */
  day(): { readonly limit: number; readonly remaining: number };
  /** Among how many replicas the plan is shared. */
  replicas(): number;
  /** Whether one call refreshes every answer: the store is small. */
  oneCallIsEnough(): boolean;
  /** As of when the demand can be answered; undefined where it cannot, so that a call for it is no refreshing. */
  asOfMs(demand: Demand): number | undefined;
}

export function createRefreshAllowance(options: RefreshAllowanceOptions): RefreshAllowance {
  const { elapsed, day, replicas, oneCallIsEnough } = options;
  /** What was spent and has not flowed in again. */
  let spent = 0;
  let countedAtMs = elapsed();
  /** The demands asked for lately, in the order of the asking. */
  const active = new Map<string, { demand: Demand; askedAtMs: number }>();

  return {
    allows(demand, asOfMs, planned) {
      const nowMs = elapsed();
      note(demand, nowMs);
      const left = level(nowMs) - planned;
      return left >= 1 && (oneCallIsEnough() || left >= waitingLonger(asOfMs, nowMs));
    },
    spend() {
      flow(elapsed());
      spent += 1;
    },
    refund() {
      flow(elapsed());
      spent = Math.max(0, spent - 1);
    },
  };

  function level(nowMs: number): number {
    flow(nowMs);
    const { limit, remaining } = day();
    const share = 1 / replicas();
    return Math.min(limit * share * BURST_SHARE - spent, (remaining - limit * KEPT_SHARE) * share);
  }

  function flow(nowMs: number): void {
    const { limit } = day();
    const flowed = (limit * FLOW_SHARE * (nowMs - countedAtMs)) / DAY_MS / replicas();
    spent = Math.max(0, spent - flowed);
    countedAtMs = nowMs;
  }

  function note(demand: Demand, askedAtMs: number): void {
    const key = demandKey(demand);
    active.delete(key);
    active.set(key, { demand, askedAtMs });
    for (const [oldest, asked] of active) {
      if (active.size <= MOST_ACTIVE && asked.askedAtMs >= askedAtMs - ACTIVE_MS) break;
      active.delete(oldest);
    }
  }

  /** How many of the demands asked for lately have an answer at least as old. */
  function waitingLonger(asOfMs: number, nowMs: number): number {
    let count = 0;
    for (const { demand, askedAtMs } of active.values()) {
      if (askedAtMs >= nowMs - ACTIVE_MS && (options.asOfMs(demand) ?? Infinity) <= asOfMs) count += 1;
    }
    return count;
  }
}
