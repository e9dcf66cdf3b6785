import { HOUR_MS } from '../../common/plan.ts';
import { WINDOW_NAMES, WINDOWS, add, dropEnded, newSlots, slotFor } from './slots.ts';
import type { Slots, WindowName } from './slots.ts';

/**
 * The share of one visitor in the quota of a key: it may use as many calls of a window as it leaves in it. So n greedy visitors
 * get 1/(n + 1) of the window each, and the next one finds as much; nobody counts the visitors. It is the dynamic threshold of
 * Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).
 *
 * The functions only change calls, and these in place. Times are milliseconds of one clock that never goes back.
 */

/** The calls that a visitor has used in this process, by the slot of time in which they are free again. */
export type VisitorCalls = Readonly<Record<WindowName, Slots>>;

/** What a visitor shares a window with. */
interface SharedWindow {
  /** Calls that are left of it. */
  readonly remaining: number;
  /** Processes that share it: each counts the visitors that it sees, and expects the others to see as much of them. */
  readonly replicas: number;
}

export function newVisitorCalls(): VisitorCalls {
  return { minute: newSlots(), day: newSlots() };
}

/** Counts calls of this time, or takes back calls that were counted so: a negative `count`. */
export function countCalls(calls: VisitorCalls, atMs: number, count = 1): void {
  for (const name of WINDOW_NAMES) add(calls[name], slotFor(name, atMs), count);
}

/** Returns how many calls were used in the last hour, or a slot more. */
export function usedInLastHour({ day: { slots, counts } }: VisitorCalls, nowMs: number): number {
  const since = slotFor('day', nowMs - HOUR_MS);
  return counts.reduce((sum, count, index) => sum + ((slots[index] ?? 0) >= since ? count : 0), 0);
}

/** Drops the calls that are free again. */
export function dropFree(calls: VisitorCalls, nowMs: number): void {
  for (const name of WINDOW_NAMES) dropEnded(calls[name], name, nowMs);
}

/** Whether a visitor that has used so many calls may make one more. The first one waits for the quota as all do. */
export function isWithinShare(used: number, { remaining, replicas }: SharedWindow): boolean {
  return used === 0 || used * replicas < remaining;
}

/** Returns how many more calls a visitor may make that has used so many. */
export function allowance(used: number, { remaining, replicas }: SharedWindow): number {
  return Math.max(0, Math.ceil((remaining - used * replicas) / (replicas + 1)));
}

/**
 * Returns the minimum time until a visitor may make so many more calls of a window: enough of its own are free again by then, or
 * enough of all.
 *
 * @param keyWaitMs returns the time until more than `needed` calls of the window are left.
 */
export function shareWaitMs(
  calls: VisitorCalls,
  name: WindowName,
  nowMs: number,
  { more, replicas, keyWaitMs }: { more: number; replicas: number; keyWaitMs: (needed: number) => number },
): number {
  const { slots, counts, total } = calls[name];
  const waitMsWith = (used: number) => keyWaitMs(used === 0 ? 0 : used * replicas + more - 1);
  let used = total + more - 1;
  let minMs = waitMsWith(used);
  for (const [index, slot] of slots.entries()) {
    const freeInMs = slot * WINDOWS[name].slotMs - nowMs;
    if (freeInMs >= minMs) break;
    used -= counts[index] ?? 0;
    minMs = Math.min(minMs, Math.max(freeInMs, waitMsWith(used)));
  }
  return minMs;
}
