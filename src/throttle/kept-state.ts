import type { LedgerState, WindowState } from './ledger-state.ts';

/**
 * The one place that reads a state which a file has kept; ledger-script.ts has the same rules for the states in Redis. What
 * was written may be of an older petql, or damaged: the ledger works on nothing but whole states, or it would throw in the
 * midst of an exchange, or count with NaN and grant for ever.
 */
export interface ReadState {
  readonly state: LedgerState;
  /** Whether all of it could be used. Else the state is a new one, with what still counts of the old one. */
  readonly whole: boolean;
}

/** @param fresh what stands for a state that cannot be used; it may be changed. */
export function readState(text: string, fresh: LedgerState): ReadState {
  const kept = parsed(text);
  const state = completed(kept, fresh);
  return fits(state, STATE) ? { state, whole: true } : { state: anew(fresh, kept), whole: false };
}

/** Whatever was kept under the names of a state. */
type Kept = { readonly [Name in keyof LedgerState]?: unknown };

function parsed(text: string): Kept {
  try {
    return (JSON.parse(text) as Kept | null) ?? {};
  } catch {
    return {};
  }
}

/** Fields that older versions did not have yet: without them, less is known, and nothing more is allowed. */
function completed(kept: Kept, fresh: LedgerState): LedgerState {
  const { configuredAtMs, heeded, seenMs, dayInDoubt, dayAtLeast, replicas } = fresh;
  return {
    configuredAtMs,
    heeded,
    seenMs,
    dayInDoubt,
    dayAtLeast,
    replicas,
    ...kept,
    minute: completedWindow(kept.minute, fresh.minute),
    day: completedWindow(kept.day, fresh.day),
  } as LedgerState;
}

function completedWindow(kept: unknown, fresh: WindowState): unknown {
  const { toldLimit, fewest, fewestLately, fewestSince, leastLeft, toldAtMs } = fresh;
  return { toldLimit, fewest, fewestLately, fewestSince, leastLeft, toldAtMs, ...(kept as object | null | undefined) };
}

/**
 * What was started and how much the windows still hold is not known: a probe will tell. But the calls of the day, by the
 * limits that they were made under, and a pause still count as far as they can be read.
 */
function anew(fresh: LedgerState, kept: Kept): LedgerState {
  const limits = [limitOf(kept.minute), limitOf(kept.day)];
  if (limits.every(isCount)) {
    [fresh.minute.limit, fresh.day.limit] = limits as [number, number];
    copy(['planKnown', 'configuredAtMs', 'heeded', 'minuteStarts', 'dayStarts']);
  }
  copy(['pausedUntilMs', 'pausedAtMs', 'seenMs', 'refusals', 'banned']);
  fresh.mustProbe = true;
  return fresh;

  function copy(names: readonly (keyof LedgerState)[]): void {
    for (const name of names) if (STATE[name](kept[name])) Object.assign(fresh, { [name]: kept[name] });
  }
}

function limitOf(window: unknown): unknown {
  return (window as Partial<WindowState> | null | undefined)?.limit;
}

type Checks<T> = { readonly [Name in keyof T]: (value: unknown) => boolean };

/** More than any count, time or reset that a header can tell. */
const MOST = 1e18;
const MODES: readonly unknown[] = ['told', 'counted', 'unknown'] satisfies WindowState['mode'][];
/** Fifteen digits are more than any time's. */
const SLOT = /^-?\d{1,15}$/;

const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
/** A time, or a reset as the upstream names it. */
const isNumber = (value: unknown) => typeof value === 'number' && Math.abs(value) <= MOST;
const isWhole = (value: unknown) => isNumber(value) && Number.isInteger(value);
const isCount = (value: unknown) => isWhole(value) && (value as number) >= 0;
const isWindow = (value: unknown) => fits(value as WindowState, WINDOW);
const isBySlot = (value: unknown) => isTable(value, (slot, count) => SLOT.test(slot) && isCount(count));
const isByPlan = (value: unknown) => isTable(value, (_plan, atMs) => isNumber(atMs));

const WINDOW: Checks<WindowState> = {
  mode: (value) => MODES.includes(value),
  limit: isCount,
  toldLimit: isCount,
  ceiling: isWhole,
  cappedAt: isWhole,
  resetAtMs: isNumber,
  resetId: isNumber,
  fewest: isWhole,
  fewestLately: isWhole,
  fewestSince: isWhole,
  leastLeft: isWhole,
  toldAtMs: isNumber,
};

const STATE: Checks<LedgerState> = {
  generation: isText,
  started: isCount,
  counted: isCount,
  minute: isWindow,
  day: isWindow,
  planKnown: isFlag,
  configuredAtMs: isByPlan,
  heeded: isText,
  minuteStarts: isBySlot,
  dayStarts: isBySlot,
  unanswered: isBySlot,
  mustProbe: isFlag,
  probeUntilMs: isNumber,
  pausedUntilMs: isNumber,
  pausedAtMs: isNumber,
  seenMs: isNumber,
  refusals: isCount,
  banned: isFlag,
  dayInDoubt: isFlag,
  dayAtLeast: isWhole,
  replicas: (value) => isCount(value) && value !== 0,
};

function fits<T extends object>(value: T, checks: Checks<T>): boolean {
  return (Object.keys(checks) as (keyof T)[]).every((name) => checks[name](value[name]));
}

function isTable(value: unknown, isEntry: (name: string, value: unknown) => boolean): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(([name, entry]) => isEntry(name, entry));
}
