/** Counts by the number of the slot: a time divided by the slot's length. */
export type CountsBySlot = Record<string, number>;

/** How a window is cut into slots. */
export interface SlotShape {
  readonly lengthMs: number;
  /** How many make up the window. */
  readonly slots: number;
  /** How many more guard against calls that were long on their way. */
  readonly guard: number;
}

export const MINUTE_SLOTS: SlotShape = { lengthMs: 5_000, slots: 12, guard: 2 };
export const DAY_SLOTS: SlotShape = { lengthMs: 3_600_000, slots: 24, guard: 1 };
/** How long the word of a count may have been on its way. */
const ON_ITS_WAY_MS = 1_000;

/** When the oldest slot leaves the window. */
export function firstFreeMs(starts: CountsBySlot, { lengthMs, slots, guard }: SlotShape): number {
  let oldest = Infinity;
  for (const slot of Object.keys(starts)) oldest = Math.min(oldest, Number(slot));
  return oldest === Infinity ? 0 : (oldest + slots + guard) * lengthMs;
}

/** When the newest slot leaves the window. */
export function lastFreeMs(starts: CountsBySlot, { lengthMs, slots, guard }: SlotShape): number {
  let newest = -Infinity;
  for (const slot of Object.keys(starts)) newest = Math.max(newest, Number(slot));
  return newest === -Infinity ? 0 : (newest + slots + guard) * lengthMs;
}

export function forgetSlots(starts: CountsBySlot, { lengthMs, slots, guard }: SlotShape, nowMs: number): void {
  const oldest = slotOf(nowMs, lengthMs) - slots - guard;
  for (const slot of Object.keys(starts)) if (Number(slot) <= oldest) delete starts[slot];
}

export function slotOf(timeMs: number, lengthMs: number): number {
  return Math.floor(timeMs / lengthMs);
}

export function add(slots: CountsBySlot, slot: number, count: number): void {
  slots[slot] = (slots[slot] ?? 0) + count;
}

/** The first slot that does not leave the window before so long, but for the way that the word of it took; at most the one of now. */
export function slotFreeIn(freeInMs: number | undefined, { lengthMs, slots, guard }: SlotShape, nowMs: number): number {
  const current = slotOf(nowMs, lengthMs);
  if (freeInMs === undefined) return current;
  return Math.min(current, Math.ceil((nowMs + freeInMs - ON_ITS_WAY_MS) / lengthMs) - slots - guard);
}

/** What is known to be spent of a window beyond what is counted of it, as if it were all spent in that slot. */
export function addMissing(starts: CountsBySlot, slot: number, used: number): void {
  const missing = used - sum(starts);
  if (missing > 0) add(starts, slot, missing);
}

/** Takes one from a slot; false when there is none. */
export function subtract(slots: CountsBySlot, slot: number): boolean {
  const count = slots[slot] ?? 0;
  if (count === 0) return false;
  if (count === 1) delete slots[slot];
  else slots[slot] = count - 1;
  return true;
}

export function sum(slots: CountsBySlot): number {
  let total = 0;
  for (const count of Object.values(slots)) total += count;
  return total;
}

/** A part of a slot is left where it was: what is counted is free a little later. */
export function moved(starts: CountsBySlot, backMs: number, lengthMs: number): CountsBySlot {
  const slots = Math.floor(backMs / lengthMs);
  return Object.fromEntries(Object.entries(starts).map(([slot, count]) => [Number(slot) - slots, count]));
}
