import { MAX_TOLD_MS } from './times.ts';
import { SECOND_MS } from '../../common/plan.ts';
import { doubt, endDoubt } from './doubt.ts';
import type { Account, Permit, WindowCount } from './format.ts';
import { OTHER_WINDOW, contradicts } from './limits.ts';
import { permitsAfter } from './named-window.ts';
import type { NamedWindow } from './named-window.ts';
import { WINDOWS } from './slots.ts';
import type { WindowName } from './slots.ts';
import { ownCount } from './window.ts';
import type { Moment } from './window.ts';

interface ToldWindow extends NamedWindow {
  readonly tookMs: number;
}

/** What a response shows of a window. */
interface HeaderEvidence {
  /** Calls that its header counts; NaN where it counts none. */
  readonly used: number;
  /** When the window began, in seconds; NaN where no reset says so. */
  readonly beginsAtS: number;
  readonly permit: Permit;
  readonly nowMs: number;
}

/** Corrects an account by what a response says of a window: what the limit is, when it ends, and how many calls are foreign. */
export function correct(account: Account, permit: Permit, told: ToldWindow, moment: Moment): void {
  const { nowMs, rules } = moment;
  const { name, remaining, reset, tookMs, used } = told;

  // 1. Headers count the calls of all replicas, so they correct no offline share.
  if (rules.offlineShare) {
    if (remaining < 2 * rules.offlineShare.divisor) pauseShare(account, reset?.inMs ?? MAX_TOLD_MS, nowMs);
    return;
  }

  // 2. A response of an earlier window is too old.
  const window = account[name];
  const before = window.reset;
  if (reset && before && !before.isGuess && reset.id < before.id - 1) return;

  // 3. The limit, the window and the calls of others.
  setLimit(account, told);
  // By the upstream's clock, which no latency disturbs.
  const beginsAtS = reset ? reset.id - WINDOWS[name].lengthMs / SECOND_MS : NaN;
  judgeDoubted(account, name, { used, beginsAtS, permit, nowMs });
  if (reset) seeReset(window, reset, tookMs, nowMs);
  window.toldAtMs = nowMs;
  if (Number.isNaN(used)) return;
  seeForeign(window, name, { used, isAlone: permitsAfter(account, permit) === 1, nowMs });
}

/** Ends an offline share when little is left: without Redis, other replicas may take the rest. */
function pauseShare({ pause }: Account, inMs: number, nowMs: number): void {
  pause.untilMs = Math.max(pause.untilMs, nowMs + Math.min(inMs + SECOND_MS, MAX_TOLD_MS));
}

function setLimit(account: Account, { name, limit, isSure }: NamedWindow): void {
  const other = account[OTHER_WINDOW[name]];
  // A limit is told of one window, and no minute allows more than its day.
  const isMisplaced = name === 'minute' ? limit >= (other.limit ?? Infinity) : limit <= (other.limit ?? 0);
  if (isMisplaced || contradicts(name, limit, other.limit)) {
    Object.assign(other, { limit: undefined, isSure: undefined, foreign: undefined, reset: undefined });
  }

  const window = account[name];
  if (window.limit !== limit) {
    Object.assign(window, { limit, isSure, lesson: undefined, beyondSinceMs: undefined });
  }
  // Headers that tell two limits tell both windows.
  const isOther = other.limit !== undefined && other.limit !== limit;
  if (isSure || isOther) window.isSure = true;
  if (isOther) other.isSure = true;
}

function seeReset(
  window: WindowCount,
  { inMs, id }: NonNullable<NamedWindow['reset']>,
  tookMs: number,
  nowMs: number,
): void {
  if (window.reset && !window.reset.isGuess && id <= window.reset.id) return;
  window.reset = { fromMs: nowMs + inMs - tookMs - SECOND_MS, byMs: nowMs + inMs + SECOND_MS, id };
}

/**
 * Judges what was counted before a reset that is over, by a call that was sent after it: all of it was freed if this window begins
 * there, or if the header counts no more than what came since.
 */
function judgeDoubted(account: Account, name: WindowName, { used, beginsAtS, permit, nowMs }: HeaderEvidence): void {
  const window = account[name];
  if (window.reset && !window.reset.isGuess && beginsAtS >= window.reset.id) doubt(account, name, window.reset, nowMs);

  const { doubted } = window;
  const isByCount = Number.isNaN(beginsAtS);
  if (!doubted || permit.grantedAtMs < doubted.fromMs || (isByCount && Number.isNaN(used))) return;
  // Its own count proves it, whatever the reset says: a local day may have 23 hours, and a window may be an hour.
  const isFreed = used <= window.total - permitsAfter(account, permit) + 1 || beginsAtS >= doubted.id;
  // It may count any of the calls in flight.
  if (!isFreed && used <= window.total) return;
  if (isFreed) window.doubted = undefined;
  else endDoubt(window, nowMs);
  window.beyondSinceMs = undefined;
}

/**
 * What a header counts beyond the own permits are foreign calls, and there may be more: the header may lack own calls, as those in
 * flight. Without other calls in flight it is exact, and lowers the number too.
 */
function seeForeign(
  window: WindowCount,
  name: WindowName,
  { used, isAlone, nowMs }: { readonly used: number; readonly isAlone: boolean; readonly nowMs: number },
): void {
  const calls = Math.max(0, used - ownCount(window));
  const known = window.foreign?.calls ?? 0;
  if (calls < known && !isAlone) return;

  const toldMs = window.reset && !window.reset.isGuess ? window.reset.byMs : Infinity;
  const untilMs = Math.min(toldMs, nowMs + WINDOWS[name].lengthMs);
  window.foreign = calls > 0 ? { calls, untilMs } : undefined;
}
