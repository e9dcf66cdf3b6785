import { doubt } from './doubt.ts';
import type { Account, WindowCount } from './format.ts';
import { limitsOf } from './limits.ts';
import { WINDOWS, WINDOW_NAMES, dropEnded, moveBack, slotFor } from './slots.ts';
import type { WindowName } from './slots.ts';
import { beginTrust } from './trust.ts';
import { WindowAt } from './window.ts';
import type { Moment } from './window.ts';
import { MAX_PAUSE_MS, MAX_TOLD_MS } from './times.ts';

/** Drops what has ended, and bounds times that are too far ahead: the clock may have been set back. */
export function passTime(account: Account, moment: Moment): void {
  const { nowMs, rules } = moment;
  // 1. The configured plan.
  adoptConfigured(account, moment);

  // 2. Used permits, resets and foreign calls.
  for (const name of WINDOW_NAMES) {
    const window = account[name];
    dropEnded(window, name, nowMs);
    if (window.doubted) dropDoubted(window, window.doubted, name, nowMs);
    if (nowMs < account.lastGrantAtMs) moveBack(window, slotFor(name, nowMs + rules.leaseMs));
    boundTimes(window, name, moment);
    if (window.reset && window.reset.byMs <= nowMs) doubt(account, name, window.reset, nowMs);
    if (window.foreign && hasForeignEnded(account, name, moment)) {
      window.foreign = undefined;
      beginTrust(account, nowMs);
    }
  }
  account.lastGrantAtMs = Math.min(account.lastGrantAtMs, nowMs);

  // 3. The pause, and trust.
  const { pause, trust } = account;
  pause.untilMs = Math.min(pause.untilMs, nowMs + MAX_PAUSE_MS);
  pause.incidentAtMs = Math.min(pause.incidentAtMs, nowMs);
  if (trust) {
    trust.sinceMs = Math.min(trust.sinceMs, nowMs);
    trust.againAtMs = Math.min(trust.againAtMs, nowMs + Math.max(rules.probeMs, WINDOWS.minute.lengthMs));
  }
}

function dropDoubted(
  window: WindowCount,
  doubted: NonNullable<WindowCount['doubted']>,
  name: WindowName,
  nowMs: number,
) {
  dropEnded(doubted, name, nowMs);
  if (doubted.total === 0) Object.assign(window, { doubted: undefined, beyondSinceMs: undefined });
}

function boundTimes(window: WindowCount, name: WindowName, { nowMs, rules }: Moment): void {
  const { beyondSinceMs, foreign, reset, toldAtMs } = window;
  const latestMs = nowMs + WINDOWS[name].lengthMs + rules.leaseMs;
  if (reset && reset.byMs > latestMs) window.reset = undefined;
  if (foreign && foreign.untilMs > latestMs) window.foreign = { ...foreign, untilMs: latestMs };
  if (toldAtMs !== undefined && toldAtMs > nowMs) window.toldAtMs = nowMs;
  if (beyondSinceMs !== undefined && beyondSinceMs > nowMs) window.beyondSinceMs = nowMs;
}

/** Foreign calls are void at the told reset; where they alone hold the key, ten minutes after the last header at the latest. */
function hasForeignEnded(account: Account, name: WindowName, moment: Moment): boolean {
  const { foreign, toldAtMs = 0 } = account[name];
  if (!foreign || foreign.untilMs <= moment.nowMs) return true;
  if (moment.nowMs < toldAtMs + MAX_TOLD_MS) return false;
  const { left, own, ownLimit } = new WindowAt(account, name, moment);
  return left <= 0 && own < ownLimit;
}

/**
 * Adopts the configured plan of the process that started last, or forgets it if that process has none. A plan that changed also
 * replaces the limits from headers.
 */
function adoptConfigured(account: Account, { nowMs, rules: { plan, startedAtMs } }: Moment): void {
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

  for (const name of WINDOW_NAMES) {
    Object.assign(account[name], { limit: undefined, isSure: undefined, lesson: undefined, foreign: undefined });
  }
  beginTrust(account, nowMs);
}
