import { isOnTheHour, limitsOf } from './account-limits.ts';
import type { AccountRules } from './account-limits.ts';
import type { Account, WindowCount } from './account-format.ts';

export type WindowName = 'day' | 'minute';

/** Slots are short enough that little of a window is wasted, and few enough to be kept. */
export const WINDOWS = {
  minute: { lengthMs: 60_000, slotMs: 1_000 },
  day: { lengthMs: 86_400_000, slotMs: 600_000 },
} as const;
export const WINDOW_NAMES = ['minute', 'day'] as const;

/** The upstream may count a call this much later than its response says. */
const GUARD_MS = 500;
const MAX_PAUSE_MS = 86_400_000;
const SUCCESSES_FOR_MS = 43_200_000;

/** Drops what has ended by `nowMs`, and bounds times that lie too far ahead, since the clock may have been set back. */
export function passTime(account: Account, nowMs: number, rules: AccountRules): void {
  adoptConfigured(account, rules);
  for (const name of WINDOW_NAMES) {
    const window = account[name];
    const { slotMs, lengthMs } = WINDOWS[name];
    const latest = freeSlot(name, nowMs + rules.leaseMs);
    for (const slot in window.spent) {
      if (Number(slot) * slotMs > nowMs) break;
      add(window, slot, -Infinity);
    }
    if (nowMs < account.lastGrantAtMs) moveBack(window, latest);
    if (window.reset && window.reset.byMs > nowMs + lengthMs + rules.leaseMs) window.reset = undefined;
  }
  account.lastGrantAtMs = Math.min(account.lastGrantAtMs, nowMs);
  const sinceMs = nowMs - account.successes.sinceMs;
  if (sinceMs > SUCCESSES_FOR_MS || sinceMs < 0) account.successes = { count: 0, sinceMs: nowMs };
  const { pause } = account;
  pause.untilMs = Math.min(pause.untilMs, nowMs + MAX_PAUSE_MS);
  pause.probeUntilMs = Math.min(pause.probeUntilMs, nowMs + rules.probeMs);
  pause.incidentAtMs = Math.min(pause.incidentAtMs, nowMs);
  beginDay(account, nowMs);
}

function moveBack(window: WindowCount, latest: number): void {
  for (const [slot, count] of Object.entries(window.spent)) {
    if (Number(slot) <= latest) continue;
    add(window, slot, -count);
    add(window, latest, count);
  }
}

/** Empties a calendar day, which resets on the hour, at its reset; a probe confirms it. */
function beginDay(account: Account, nowMs: number): void {
  const { day, pause } = account;
  if (!day.reset || day.reset.byMs > nowMs || !isOnTheHour(day.reset.id)) return;
  const flying = Math.min(inFlight(account, nowMs), sum(day));
  Object.assign(day, newWindow());
  day.reset = undefined;
  add(day, freeSlot('day', nowMs), flying);
  pause.isHalfOpen = true;
}

/** Adopts the configured plan of the process that started last. A plan that changed also replaces the limits from headers. */
function adoptConfigured(account: Account, { plan, startedAtMs }: AccountRules): void {
  const before = account.configured;
  if (!plan.known || (before && before.startedAtMs >= startedAtMs)) return;
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
  return sum(account[name]) > inFlight(account, nowMs);
}

/** Returns the minimum time until more than `needed` spent permits are free again. */
export function freeInMs(account: Account, name: WindowName, nowMs: number, needed: number): number {
  const { spent, reset } = account[name];
  const resetMs = reset && reset.byMs > nowMs && account.lastGrantAtMs < reset.fromMs ? reset.byMs - nowMs : Infinity;
  let freed = 0;
  for (const [slot, count] of Object.entries(spent)) {
    freed += count;
    if (freed > needed) return Math.min(resetMs, Math.max(1, Number(slot) * WINDOWS[name].slotMs - nowMs));
  }
  return Math.min(resetMs, WINDOWS[name].lengthMs);
}

/** Returns the time until the known reset; 0 where none is ahead. */
export function resetInMs(account: Account, name: WindowName, nowMs: number): number {
  return Math.max(0, (account[name].reset?.byMs ?? 0) - nowMs);
}

export function leftOf(account: Account, rules: AccountRules): Record<WindowName, number> {
  const limits = rules.limits ?? limitsOf(account, rules.plan);
  return { minute: limits.minute - sum(account.minute), day: limits.day - sum(account.day) };
}

/** Returns how many permits have no response yet: their slots are later than any settled permit's. */
export function inFlight(account: Account, nowMs: number): number {
  const settled = freeSlot('minute', nowMs);
  const { spent } = account.minute;
  let count = 0;
  for (const slot in spent) if (Number(slot) > settled) count += spent[slot] ?? 0;
  return count;
}

export function newWindow(): { spent: Record<string, number>; total: number } {
  return { spent: {}, total: 0 };
}

export function sum({ total }: WindowCount): number {
  return total;
}

/** Returns the slot in which a call that was counted at `atMs` is free again. */
export function freeSlot(name: WindowName, atMs: number): number {
  const { lengthMs, slotMs } = WINDOWS[name];
  return Math.ceil((atMs + lengthMs + GUARD_MS) / slotMs);
}

/** The keys of `spent` are whole numbers, so that they come in ascending order (ECMA-262, OrdinaryOwnPropertyKeys). */
export function add(window: WindowCount, slot: number | string, count: number): void {
  const before = window.spent[slot] ?? 0;
  const after = Math.max(0, before + count);
  window.total += after - before;
  if (after > 0) window.spent[slot] = after;
  else delete window.spent[slot];
}

/** Moves to the known reset what is free before it: the upstream frees no call before, so those permits stand for other clients' calls. */
export function keepUntilReset(
  window: WindowCount,
  name: WindowName,
  { fromMs, byMs }: NonNullable<WindowCount['reset']>,
): void {
  const resetSlot = Math.ceil(byMs / WINDOWS[name].slotMs);
  for (const [slot, count] of Object.entries(window.spent)) {
    if (Number(slot) * WINDOWS[name].slotMs >= fromMs) return;
    add(window, slot, -count);
    add(window, resetSlot, count);
  }
}

export function dropOldest(window: WindowCount, excess: number): void {
  let left = excess;
  for (const [slot, count] of Object.entries(window.spent)) {
    if (left <= 0) return;
    add(window, slot, -Math.min(count, left));
    left -= count;
  }
}
