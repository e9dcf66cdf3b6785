import { DAY_MS, MINUTE_MS } from '../../plan.ts';
import { grantableOf, isOnTheHour, limitsOf } from './limits.ts';
import type { AccountRules, Limits } from './limits.ts';
import type { Account, WindowCount, WindowName } from './format.ts';

/** Slots are so short that little of a window is wasted, and so few that an account stays small. */
export const WINDOWS = {
  minute: { lengthMs: MINUTE_MS, slotMs: 1_000 },
  day: { lengthMs: DAY_MS, slotMs: 600_000 },
} as const;
export const WINDOW_NAMES = ['minute', 'day'] as const;

/** The upstream may count a call this much later than its response says. */
const GUARD_MS = 500;
export const MAX_PAUSE_MS = DAY_MS;
/** The pause after a probe that failed or got no response says less than a 429, so it is shorter. */
export const MAX_PROBE_PAUSE_MS = 120_000;
const SUCCESSES_FOR_MS = 43_200_000;

/** Drops what has ended by `nowMs`, and bounds times that are too far ahead: the clock may have been set back. */
export function passTime(account: Account, nowMs: number, rules: AccountRules): void {
  // 1. The configured plan.
  adoptConfigured(account, rules);

  // 2. Used permits and resets.
  for (const name of WINDOW_NAMES) {
    const window = account[name];
    const { lengthMs } = WINDOWS[name];
    const latest = slotFor(name, nowMs + rules.leaseMs);
    dropEnded(window, name, nowMs);
    if (nowMs < account.lastGrantAtMs) moveBack(window, latest);
    if (window.reset && window.reset.byMs > nowMs + lengthMs + rules.leaseMs) window.reset = undefined;
  }
  account.lastGrantAtMs = Math.min(account.lastGrantAtMs, nowMs);

  // 3. Successes, for half a day.
  const sinceMs = nowMs - account.successes.sinceMs;
  if (sinceMs > SUCCESSES_FOR_MS || sinceMs < 0) account.successes = { count: 0, sinceMs: nowMs };

  // 4. The pause.
  const { pause } = account;
  pause.untilMs = Math.min(pause.untilMs, nowMs + MAX_PAUSE_MS);
  pause.probeUntilMs = Math.min(pause.probeUntilMs, nowMs + Math.max(rules.probeMs, MAX_PROBE_PAUSE_MS));
  pause.incidentAtMs = Math.min(pause.incidentAtMs, nowMs);

  // 5. A calendar day that has begun.
  beginDay(account, nowMs);
}

function moveBack(window: WindowCount, latest: number): void {
  for (const slot of window.slots.filter((each) => each > latest)) move(window, slot, latest);
}

/** Returns the time until a calendar's day is emptied; Infinity if no response has shown its reset. */
export function dayBeginsInMs({ day: { reset } }: Account, nowMs: number): number {
  return reset && isOnTheHour(reset.id) ? reset.byMs - nowMs : Infinity;
}

/** Empties a calendar's day, which resets on the hour, at its reset; a probe confirms it. */
function beginDay(account: Account, nowMs: number): void {
  const { day, pause } = account;
  if (dayBeginsInMs(account, nowMs) > 0) return;

  const flying = Math.min(inFlight(account, nowMs), day.total);
  Object.assign(day, newWindow());
  day.reset = undefined;
  add(day, slotFor('day', nowMs), flying);
  pause.isHalfOpen = true;
}

/**
 * Adopts the configured plan of the process that started last, or forgets it if that process has none. A plan that changed also
 * replaces the limits from headers.
 */
function adoptConfigured(account: Account, { plan, startedAtMs }: AccountRules): void {
  const before = account.configured;
  if (before && before.startedAtMs >= startedAtMs) return;
  if (!plan.known) {
    account.configured = undefined;
    return;
  }

  const { perMinute, perDay } = plan;
  account.configured = { perMinute, perDay, startedAtMs };

  const { minute, day } = before
    ? limitsOf({ minute: {}, day: {}, configured: before }, plan)
    : limitsOf(account, plan);
  if (minute === perMinute && day === perDay) return;

  account.minute.limit = undefined;
  account.day.limit = undefined;
  account.pause.isHalfOpen = true;
}

/** Returns whether the window's known reset is over, and has freed at least one call. */
export function hasReset(account: Account, name: WindowName, nowMs: number): boolean {
  const { reset } = account[name];
  if (!reset || reset.byMs > nowMs || account.lastGrantAtMs >= reset.fromMs) return false;
  return account[name].total > inFlight(account, nowMs);
}

/** Returns the minimum time until more than `needed` used permits are free again. A call in flight may end now. */
export function freeInMs(account: Account, name: WindowName, nowMs: number, needed: number): number {
  const { reset } = account[name];
  const isResetAhead = reset !== undefined && reset.byMs > nowMs && account.lastGrantAtMs < reset.fromMs;
  const resetMs = isResetAhead ? reset.byMs - nowMs : Infinity;
  return Math.min(resetMs, freeBySlotInMs(account[name], name, nowMs, needed));
}

/** Returns the minimum time until more than `needed` used permits are free by their slots, whatever a reset frees. */
export function freeBySlotInMs(
  { slots, counts }: WindowCount,
  name: WindowName,
  nowMs: number,
  needed: number,
): number {
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

/** Returns the time until the known reset; 0 if none is ahead. */
export function resetInMs(account: Account, name: WindowName, nowMs: number): number {
  return Math.max(0, (account[name].reset?.byMs ?? 0) - nowMs);
}

/** Returns how many permits of each window may be granted now; below 0 where the limit went down. */
export function leftOf(account: Account, rules: AccountRules): Limits {
  return leftBy(rules.offlineShare?.limits ?? grantableOf(account, rules.plan), account);
}

/** Returns how many are left once calls have proved what the limits are. */
export function expectedLeftOf(account: Account, rules: AccountRules): Limits {
  return leftBy(rules.offlineShare?.limits ?? limitsOf(account, rules.plan), account);
}

function leftBy(limits: Limits, { minute, day }: Account): Limits {
  return { minute: limits.minute - minute.total, day: limits.day - day.total };
}

/** Returns how many permits have no response yet: their slots are later than any settled permit's. */
export function inFlight(account: Account, nowMs: number): number {
  const settled = slotFor('minute', nowMs);
  const { slots, counts } = account.minute;
  let flying = 0;
  for (let index = slots.length - 1; (slots[index] ?? 0) > settled; index -= 1) flying += counts[index] ?? 0;
  return flying;
}

export function newWindow(): WindowCount {
  return { slots: [], counts: [], total: 0 };
}

/** Returns the slot for a call that was counted at `atMs`: the one in which it is free again. */
export function slotFor(name: WindowName, atMs: number): number {
  const { lengthMs, slotMs } = WINDOWS[name];
  return Math.ceil((atMs + lengthMs + GUARD_MS) / slotMs);
}

/** Drops the permits that are free again. */
export function dropEnded(window: WindowCount, name: WindowName, nowMs: number): void {
  const { slotMs } = WINDOWS[name];
  while (first(window) * slotMs <= nowMs) dropOldest(window, countIn(window, first(window)));
}

/** Adds permits to a slot, or removes up to as many as it has. */
export function add(window: WindowCount, slot: number, count: number): void {
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
export function countIn({ slots, counts }: WindowCount, slot: number): number {
  return counts[slots.lastIndexOf(slot)] ?? 0;
}

/** Returns the slot that is free first; Infinity if nothing is used. */
function first({ slots }: WindowCount): number {
  return slots[0] ?? Infinity;
}

function move(window: WindowCount, from: number, to: number): void {
  const count = countIn(window, from);
  add(window, from, -count);
  add(window, to, count);
}

/** Moves permits that would be free before the known reset to that reset: they count other clients' calls. */
export function keepUntilReset(
  window: WindowCount,
  name: WindowName,
  { fromMs, byMs }: NonNullable<WindowCount['reset']>,
): void {
  const { slotMs } = WINDOWS[name];
  const resetSlot = Math.ceil(byMs / slotMs);
  for (const slot of window.slots.filter((each) => each * slotMs < fromMs)) move(window, slot, resetSlot);
}

/** Drops the permits that would be free first. */
export function dropOldest(window: WindowCount, excess: number): void {
  const minTotal = Math.max(0, window.total - excess);
  while (window.total > minTotal) add(window, first(window), minTotal - window.total);
}
