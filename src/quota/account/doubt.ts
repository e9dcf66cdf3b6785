import { SECOND_MS } from '../../common/plan.ts';
import type { Account, WindowCount } from './format.ts';
import { WINDOWS, addAll, countSince, takeOldest } from './slots.ts';
import type { WindowName } from './slots.ts';
import { FAR_MS, SLIDES_MS } from './times.ts';

/*
 * A told reset that is over may have freed all that was counted before it, as where windows are fixed, or a part only, as where they
 * slide. What was counted before stays in doubt: it counts until a response or trust shows which.
 */

type Reset = Pick<NonNullable<WindowCount['reset']>, 'fromMs' | 'id' | 'isGuess'>;

/** The reset is over. The slots of a minute tell to the second which calls were counted since. */
export function doubt(account: Account, name: WindowName, { fromMs, id, isGuess }: Reset, nowMs: number): void {
  const window = account[name];
  window.reset = undefined;
  if ((window.slidesUntilMs ?? 0) > nowMs) return;

  const since = countSince(account.minute, 'minute', fromMs);
  const before = takeOldest(window, Math.max(0, window.total - since));
  if (window.doubted) addAll(before, window.doubted);
  const doubted = { ...before, fromMs, id, isGuess };
  if (before.total > 0) Object.assign(window, { doubted, beyondSinceMs: undefined });
}

/** A `Retry-After` that no minute explains ends with the day, where no header has said so. */
export function guessDayEnd({ day }: Account, nowMs: number, retryAfterMs: number): void {
  const isTold = day.reset !== undefined && !day.reset.isGuess;
  if (isTold || retryAfterMs <= FAR_MS || retryAfterMs > WINDOWS.day.lengthMs) return;
  const atMs = nowMs + retryAfterMs;
  day.reset = { fromMs: atMs, byMs: atMs + SECOND_MS, id: Math.round(atMs / SECOND_MS), isGuess: true };
  day.slidesUntilMs = undefined;
}

/** What was counted before the reset counts as ever. */
export function endDoubt(window: WindowCount, nowMs: number): void {
  const { doubted } = window;
  window.doubted = undefined;
  if (doubted) addAll(window, doubted);
  // A `Retry-After` may have been another window's.
  if (!doubted?.isGuess) window.slidesUntilMs = nowMs + SLIDES_MS;
}
