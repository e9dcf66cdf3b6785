import { DAY_MS, MINUTE_MS } from '../../common/plan.ts';
import { GUARD_MS, LAP_GUARD_MS } from './times.ts';

export type WindowName = 'day' | 'minute';

/** Used permits by the slot of time in which they are free again, ascending. The functions change them in place. */
export interface Slots {
  slots: number[];
  counts: number[];
  /** The sum of the counts. */
  total: number;
}

/** Slots are so short that little of a window is wasted, and so few that an account stays small. */
export const WINDOWS = {
  minute: { lengthMs: MINUTE_MS, slotMs: 1_000 },
  day: { lengthMs: DAY_MS, slotMs: 600_000 },
} as const;
/** A call is free again a whole window and some after it is made. */
export const LAP_MS = {
  minute: WINDOWS.minute.lengthMs + WINDOWS.minute.slotMs + LAP_GUARD_MS,
  day: WINDOWS.day.lengthMs + WINDOWS.day.slotMs,
};
export const WINDOW_NAMES = ['minute', 'day'] as const;

export function newSlots(): Slots {
  return { slots: [], counts: [], total: 0 };
}

/** Returns the slot for a call that was counted at `atMs`: the one in which it is free again. */
export function slotFor(name: WindowName, atMs: number): number {
  const { lengthMs, slotMs } = WINDOWS[name];
  return Math.ceil((atMs + lengthMs + GUARD_MS) / slotMs);
}

/** Adds permits to a slot, or removes up to as many as it has. */
export function add(window: Slots, slot: number, count: number): void {
  const { slots, counts } = window;
  const before = countIn(window, slot);
  const after = Math.max(0, before + count);
  if (before === 0 && after === 0) return;
  window.total += after - before;

  // Searches from the end, where nearly all changes are.
  const index = slots.findLastIndex((each) => each <= slot);

  if (before === 0) {
    slots.splice(index + 1, 0, slot);
    counts.splice(index + 1, 0, after);
  } else if (after === 0) {
    slots.splice(index, 1);
    counts.splice(index, 1);
  } else counts[index] = after;
}

/** Returns how many permits of a slot are used. */
export function countIn({ slots, counts }: Slots, slot: number): number {
  return counts[slots.lastIndexOf(slot)] ?? 0;
}

/** Returns how many permits are those of calls that were counted at this time or later, or have no response. */
export function countSince(window: Slots, name: WindowName, atMs: number): number {
  return countAfter(window, slotFor(name, atMs) - 1);
}

/** Returns how many permits are free again in a later slot than this one. */
export function countAfter({ slots, counts }: Slots, slot: number): number {
  let count = 0;
  for (let index = slots.length - 1; (slots[index] ?? -Infinity) > slot; index -= 1) count += counts[index] ?? 0;
  return count;
}

/** Drops the permits that are free again. */
export function dropEnded(window: Slots, name: WindowName, nowMs: number): void {
  const { slotMs } = WINDOWS[name];
  while ((window.slots[0] ?? Infinity) * slotMs <= nowMs) takeOldest(window, window.counts[0] as number);
}

/** Takes so many permits out, those first that are free first. */
export function takeOldest(window: Slots, count: number): Slots {
  const taken = newSlots();
  while (taken.total < count && window.total > 0) {
    const slot = window.slots[0] as number;
    const part = Math.min(count - taken.total, window.counts[0] as number);
    add(window, slot, -part);
    add(taken, slot, part);
  }
  return taken;
}

/** Adds all permits of `more`. */
export function addAll(window: Slots, more: Slots): void {
  for (const slot of more.slots) add(window, slot, countIn(more, slot));
}

/** Moves permits that would be free later than in this slot to it. */
export function moveBack(window: Slots, latest: number): void {
  for (const slot of window.slots.filter((each) => each > latest)) {
    const count = countIn(window, slot);
    add(window, slot, -count);
    add(window, latest, count);
  }
}

/** Returns the minimum time until more than `needed` used permits are free again. A call in flight may end at once. */
export function freeInMs({ slots, counts }: Slots, name: WindowName, nowMs: number, needed: number): number {
  const settledSlot = slotFor(name, nowMs);
  let freed = 0;
  for (const [index, slot] of slots.entries()) {
    freed += counts[index] ?? 0;
    if (freed <= needed) continue;
    const freeAtMs = Math.min(slot, settledSlot) * WINDOWS[name].slotMs;
    return Math.max(1, freeAtMs - nowMs);
  }
  return WINDOWS[name].lengthMs;
}
