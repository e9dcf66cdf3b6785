import type {
  Closed,
  Exchange,
  Grant,
  Memory,
  Reading,
  Report,
  Standing,
  WindowName,
  WindowStanding,
} from './ledger.ts';
import type { AssumedPlan, Plan } from '../plan.ts';
import {
  add,
  addMissing,
  DAY_SLOTS,
  firstFreeMs,
  forgetSlots,
  lastFreeMs,
  MINUTE_SLOTS,
  moved,
  slotFreeIn,
  slotOf,
  subtract,
  sum,
} from './slot-counts.ts';
import type { CountsBySlot, SlotShape } from './slot-counts.ts';

/**
 * The ledger's algorithm, without I/O: one caller's state, and what an exchange makes of it. ledger-script.ts has the
 * same rules in Lua, so that they can run inside Redis.
 *
 * Two counters only ever grow: `started`, every start ever granted, and `counted`, every start that the upstream has
 * surely counted by now or that surely never left. A window is a ceiling in units of `started`. So one counter moves for
 * both windows, nothing is spent twice, and updates from several replicas commute.
 *
 * What keeps it inside the plan:
 *
 * 1. A header that says "R remaining", on the answer to start s, has counted s and everything that was counted before s
 *    was granted. It may have counted none of the others: `started - countedBefore - 1` of them. So at least
 *    `countedBefore + 1 + R` starts are allowed in all, and at most R more than there have been. Hence the ceiling:
 *    min(max(ceiling, countedBefore + 1 + R), started + R). Answers may come late and in any order.
 * 2. Once a start that was granted after some moment has been answered, the answer that was counted last is among those
 *    that came in since that moment. It told no less than the fewest remaining that any of them told, and only starts without
 *    an answer may have been counted after it: so `counted` + fewest starts are allowed as well. Without this, what was under
 *    way when a sliding window's reset moved on would be taken off twice, and with nothing left to grant nobody would find out.
 * 3. A window that is not known (the first ever, after its reset, after a pause, after the state was lost) admits one
 *    call, the probe, over all replicas. Its answer opens the window.
 * 4. A start whose answer never came may still be counted. It joins `counted` a lease after it was granted, not before.
 * 5. What no header tells of is counted here, over a sliding window that is a little longer than the real one, so that
 *    no window of the upstream's, wherever it begins, can hold more.
 * 6. An answer to a start of an earlier generation, before the state was lost, can lower a ceiling and never raise it.
 */
export interface LedgerState {
  generation: string;
  started: number;
  counted: number;
  minute: WindowState;
  day: WindowState;
  planKnown: boolean;
  /** When each plan that somebody has configured lately, as PER_MINUTE/PER_DAY, was so last. */
  configuredAtMs: Record<string, number>;
  /** The one of them that was heeded last; empty for none. */
  heeded: string;
  /** Starts by the slot of time in which they were granted: all of them, a minute's and a day's worth. */
  minuteStarts: CountsBySlot;
  dayStarts: CountsBySlot;
  /** Starts without an answer, by the slot in which they were granted. */
  unanswered: CountsBySlot;
  /** Whether only a probe may go out, once the pause is over. */
  mustProbe: boolean;
  /** Until when a probe is under way; 0 when none is. */
  probeUntilMs: number;
  pausedUntilMs: number;
  /** When the last refusal came that was no echo of the one before; starts granted earlier belong to the same incident. */
  pausedAtMs: number;
  /** The latest time that an exchange was at. */
  seenMs: number;
  /** Refusals in a row. */
  refusals: number;
  banned: boolean;
  /** Whether the day is used up by a limit that was merely configured, so that a probe may find out all the same. */
  dayInDoubt: boolean;
  /**
   * How many starts the day has room for in all, by the last answer before the plan was known that told of a day or of a minute:
   * where it was the minute, its day is a hundred times as long. 0 where there was none.
   */
  dayAtLeast: number;
  /**
   * Among how many replicas the upstream's windows are shared out without any of them knowing of the others' calls: 1 but
   * where Redis is away. The share of a window is taken once, when it opens; what is left of it later may be another's.
   */
  replicas: number;
}

export interface WindowState {
  mode: WindowStanding['mode'];
  limit: number;
  /** The limit that the upstream told last, of this window or by the other one's; 0 for none. */
  toldLimit: number;
  /** In units of `started`. */
  ceiling: number;
  /** How many had been started when the upper bound `started + R` last held the ceiling down. */
  cappedAt: number;
  resetAtMs: number;
  resetId: number;
  /** The fewest remaining that was told since a moment after which a start was granted that is answered; 0 when not known. */
  fewest: number;
  /** The same since the moment at which `fewestSince` had been started; no such start is answered yet. */
  fewestLately: number;
  fewestSince: number;
  /** The fewest remaining that was told of this window. A replica that is alone tells it; the one in Redis is not asked. */
  leastLeft: number;
  /** When an answer told of it for the last time. */
  toldAtMs: number;
}

export interface LedgerRules {
  /** What a caller's plan is before the headers tell. */
  readonly plan: AssumedPlan;
  /** How long a probe may be under way before another is sent: the upstream timeout. */
  readonly probeMs: number;
}

type Answered = Extract<Report, { kind: 'answered' }>;
type Refused = Extract<Report, { kind: 'refused' }>;

/** Calls that are older are in no window of a minute, however it is counted. */
export const LONGEST_MINUTE_MS = (MINUTE_SLOTS.slots + MINUTE_SLOTS.guard) * MINUTE_SLOTS.lengthMs;
const UNANSWERED_SLOT_MS = 10_000;
/** A call that was lost may still be counted so long after its timeout. */
const LATE_MS = 60_000;
/** Resets come in whole seconds; this is never too early. */
export const GUARD_MS = 1_000;
/** Two resets this close to each other are one. */
const SAME_RESET_MS = 1_500;
/** Clocks are set right all the time; by so much back, somebody has set it. */
const SET_BACK_MS = 10_000;
const FIRST_BACKOFF_MS = 5_000;
const LONGEST_BACKOFF_MS = 900_000;
const FIRST_BAN_MS = 60_000;
const LONGEST_BAN_MS = 3_600_000;
/** A refusal without a 429 counts as a ban for so long after the last 429. */
const BAN_SUSPECTED_MS = 900_000;
/** Whatever day was told when a plan was last configured so long ago is over. */
const LATELY_MS = 86_400_000;
/** For how long a plan stands that no process has had since. */
const STANDS_MS = 60_000;
const LONGEST_PAUSE_MS = 366 * 86_400_000;
/** A lost probe is followed by another after this, unless the gate was closed before it. */
const LOST_PROBE_MS = 1_000;
/** Of what cannot be made out, it is asked again after this. */
const NOT_KNOWN_MS = 1_000;
/** Of a window: no answer has told of it lately, or not every one. */
const NOTHING_TOLD = { fewest: 0, fewestLately: 0, fewestSince: 0 } as const;
/** What a crash may lose of a day that nobody but petql counts: one call in a hundred. */
const DAY_RESERVE = 100;
const SHAPES = { minute: MINUTE_SLOTS, day: DAY_SLOTS } as const;

export function newLedgerState(generation: string, { plan }: LedgerRules): LedgerState {
  return {
    generation,
    started: 0,
    counted: 0,
    minute: newWindow(plan.perMinute),
    day: newWindow(plan.perDay),
    planKnown: plan.known,
    configuredAtMs: {},
    heeded: '',
    minuteStarts: {},
    dayStarts: {},
    unanswered: {},
    mustProbe: false,
    probeUntilMs: 0,
    pausedUntilMs: 0,
    pausedAtMs: 0,
    seenMs: 0,
    refusals: 0,
    banned: false,
    dayInDoubt: false,
    dayAtLeast: 0,
    replicas: 1,
  };
}

/**
 * The state of one of several replicas that can see neither each other nor the ledger that they share, from how the caller
 * stood when that was last heard of. Of the minute, others may have used up what was left; of the day, a share is safe.
 */
export function newStateAlone(
  generation: string,
  rules: LedgerRules,
  known: Standing | undefined,
  { replicas, nowMs }: { replicas: number; nowMs: number },
): LedgerState {
  const state = newLedgerState(generation, rules);
  state.replicas = replicas;
  if (!known) return state;
  state.planKnown = known.planKnown;
  // It was heeded where this is known from.
  if (rules.plan.known) state.heeded = planText(rules.plan);
  for (const name of ['minute', 'day'] as const) {
    const { mode, limit, remaining, resetInMs, resetId } = known[name];
    const share = name === 'minute' ? 0 : Math.floor(remaining / replicas);
    Object.assign(state[name], { mode, limit, resetId, resetAtMs: nowMs + resetInMs, ceiling: share });
    // Of a minute that is not known, nothing is: its probe will tell. A day is counted until then.
    if (mode === 'told' || (mode === 'unknown' && name === 'minute')) continue;
    // The count begins with all that the share leaves out.
    const [starts, { lengthMs }] = countOf(state, name);
    const spent = allowedWhenCounted(name, limit, replicas) - share;
    if (spent > 0) add(starts, slotOf(nowMs, lengthMs), spent);
  }
  if (known.refusedLately) state.pausedAtMs = nowMs;
  if (known.pausedForMs > 0) {
    pause(state, known.pausedForMs, nowMs);
    Object.assign(state, { refusals: 1, pausedAtMs: nowMs, banned: known.banned });
  }
  return state;
}

/** Carries out an exchange on the state, in place. */
export function exchange(
  state: LedgerState,
  { reports, wanted }: Exchange,
  rules: LedgerRules,
  nowMs: number,
): Standing {
  heedClock(state, nowMs);
  passTime(state, rules, nowMs);
  heedConfigured(state, rules, nowMs);
  for (const report of reports) applyReport(state, report, nowMs);
  const grants: Grant[] = [];
  const room = grantable(state, nowMs);
  const granted = Math.max(0, Math.min(wanted, room.starts));
  for (let index = 0; index < granted; index += 1) grants.push(grant(state, room.probe, nowMs));
  if (room.probe && granted > 0) state.probeUntilMs = nowMs + rules.probeMs;
  // A probe under way closes the door for the next one.
  const after = wanted > granted && granted > 0 ? grantable(state, nowMs) : room;
  return {
    grants,
    closed: wanted > granted ? after.closed : undefined,
    waitMs: wanted > granted ? after.waitMs : 0,
    generation: state.generation,
    started: state.started,
    minute: windowStanding(state, 'minute', nowMs),
    day: windowStanding(state, 'day', nowMs),
    dayFreeInMs: Math.max(0, lastFreeMs(state.dayStarts, DAY_SLOTS) - nowMs),
    pausedForMs: Math.max(0, state.pausedUntilMs - nowMs),
    banned: state.banned,
    refusedLately: refusedLately(state, nowMs),
    planKnown: state.planKnown,
  };
}

function newWindow(limit: number): WindowState {
  return {
    mode: 'unknown',
    limit,
    toldLimit: 0,
    ceiling: 0,
    cappedAt: 0,
    resetAtMs: 0,
    resetId: 0,
    ...NOTHING_TOLD,
    leastLeft: 0,
    toldAtMs: 0,
  };
}

/** Where somebody has set the clock back, what lay ahead lies as far ahead as it did. */
function heedClock(state: LedgerState, nowMs: number): void {
  const backMs = state.seenMs - nowMs;
  if (backMs < SET_BACK_MS) {
    state.seenMs = Math.max(state.seenMs, nowMs);
    return;
  }
  state.seenMs = nowMs;
  for (const window of [state.minute, state.day]) {
    window.resetAtMs -= backMs;
    window.toldAtMs -= backMs;
  }
  for (const name of ['probeUntilMs', 'pausedUntilMs', 'pausedAtMs'] as const) state[name] -= backMs;
  state.minuteStarts = moved(state.minuteStarts, backMs, MINUTE_SLOTS.lengthMs);
  state.dayStarts = moved(state.dayStarts, backMs, DAY_SLOTS.lengthMs);
  state.unanswered = moved(state.unanswered, backMs, UNANSWERED_SLOT_MS);
}

/**
 * Somebody has configured a plan that was not lately: it was bought, and holds until the upstream says otherwise. Replicas
 * that share a ledger may be told different plans for a while, so each is heeded once. One that is not new takes nothing back
 * that the upstream has told: a process that lags behind knows no better.
 */
function heedConfigured(state: LedgerState, { plan }: LedgerRules, nowMs: number): void {
  if (!plan.known) return;
  const { minute, day } = state;
  const text = planText(plan);
  const { heeded, configuredAtMs: lately } = state;
  const isNew = nowMs - (lately[text] ?? -Infinity) >= LATELY_MS;
  const stands = nowMs - (lately[heeded] ?? -Infinity) < STANDS_MS;
  for (const [other, atMs] of Object.entries(lately)) if (nowMs - atMs >= LATELY_MS) delete lately[other];
  lately[text] = nowMs;
  // Of two that processes have at the same time, each would take back what the other allows.
  const contradicts = plan.perMinute < toldLimit(minute) || plan.perDay < toldLimit(day);
  if (text === heeded || (!isNew && (stands || contradicts))) return;
  state.heeded = text;
  const wasOpen = windowStanding(state, 'day', nowMs).remaining > 0;
  // What is left of the day, a probe will tell. The minute is soon over, and may be used up by what the other plan allowed.
  if (day.mode === 'told' && day.limit !== plan.perDay) day.mode = 'unknown';
  minute.limit = plan.perMinute;
  day.limit = plan.perDay;
  state.planKnown = true;
  // No header could say that it is wrong, since no call would go out for a day.
  state.dayInDoubt = wasOpen && sum(state.dayStarts) >= allowedWhenCounted('day', day.limit, state.replicas);
  if (state.dayInDoubt) day.mode = 'unknown';
}

/** The window's limit, where the upstream told it; 0 where another was configured since. */
function toldLimit(window: WindowState): number {
  return window.toldLimit === window.limit ? window.limit : 0;
}

function planText({ perMinute, perDay }: Plan): string {
  return `${perMinute}/${perDay}`;
}

function passTime(state: LedgerState, rules: LedgerRules, nowMs: number): void {
  const leaseMs = LATE_MS + rules.probeMs;
  for (const [slot, starts] of Object.entries(state.unanswered)) {
    if ((Number(slot) + 1) * UNANSWERED_SLOT_MS + leaseMs > nowMs) continue;
    state.counted += starts;
    delete state.unanswered[slot];
    // They may have been counted after all that were answered.
    forgetFewest(state.minute);
    forgetFewest(state.day);
  }
  forgetSlots(state.minuteStarts, MINUTE_SLOTS, nowMs);
  forgetSlots(state.dayStarts, DAY_SLOTS, nowMs);
  if (hasReset(state.minute, nowMs)) state.minute.mode = 'unknown';
  if (hasReset(state.day, nowMs)) {
    state.day.mode = 'unknown';
    // The upstream has told when its day begins: what was started before is not in it.
    state.dayStarts = {};
  }
}

function applyReport(state: LedgerState, report: Report, nowMs: number): void {
  switch (report.kind) {
    case 'returned':
      return applyReturned(state, report.grant);
    case 'lost':
      return applyLost(state, report.grant, nowMs);
    case 'answered':
      return applyAnswered(state, report, nowMs);
    case 'refused':
      return applyRefused(state, report, nowMs);
    case 'adopted':
      return applyAdopted(state, report, nowMs);
  }
}

function applyReturned(state: LedgerState, given: Grant): void {
  if (given.generation !== state.generation) return;
  settle(state, given);
  // The start was in nobody's count, so the ceilings that allowed for it move up; but for one that was held down by
  // "R more than have been started" at a time when this start was among those.
  for (const window of [state.minute, state.day]) {
    if (window.mode === 'told' && given.start > window.cappedAt) window.ceiling += 1;
  }
  subtract(state.minuteStarts, slotOf(given.grantedAtMs, MINUTE_SLOTS.lengthMs));
  subtract(state.dayStarts, slotOf(given.grantedAtMs, DAY_SLOTS.lengthMs));
  if (given.probe) state.probeUntilMs = 0;
}

function applyLost(state: LedgerState, given: Grant, nowMs: number): void {
  if (given.generation !== state.generation || !given.probe || state.refusals > 0) return;
  state.probeUntilMs = Math.min(state.probeUntilMs, nowMs + LOST_PROBE_MS);
}

function applyAnswered(state: LedgerState, { grant: given, readings }: Answered, nowMs: number): void {
  if (given.generation === state.generation) settle(state, given);
  applyReadings(state, given, readings, nowMs);
  // Only a start that was granted after the pause says that the pause is over.
  if (given.generation !== state.generation || given.grantedAtMs < state.pausedUntilMs) return;
  state.refusals = 0;
  state.banned = false;
  if (given.probe) openUntold(state);
}

/** The probe is back. What its headers did not tell of is counted here from now on. */
function openUntold(state: LedgerState): void {
  state.probeUntilMs = 0;
  state.mustProbe = false;
  state.dayInDoubt = false;
  for (const window of [state.minute, state.day]) if (window.mode === 'unknown') window.mode = 'counted';
}

function applyReadings(state: LedgerState, given: Grant, readings: readonly Reading[], nowMs: number): void {
  for (const reading of readings) applyReading(state, given, reading, nowMs);
  // It may have been counted last, and nobody knows what it found.
  for (const name of ['minute', 'day'] as const)
    if (!readings.some(({ window }) => window === name)) forgetFewest(state[name]);
}

function applyReading(state: LedgerState, given: Grant, reading: Reading, nowMs: number): void {
  const window = state[reading.window];
  const other = reading.window === 'minute' ? state.day : state.minute;
  const limit = reading.limit ?? window.limit;
  // Read as what may be either window's, and now it is known to be the other's.
  if (state.planKnown && reading.otherLimit === undefined && limit !== window.limit && limit === other.limit)
    return forgetFewest(window);
  const remaining = Math.min(reading.remaining, limit);
  // While it may be the day's, the minute is counted here as well; but for one, which finds out after the reset.
  const unsure = !state.planKnown && reading.otherLimit === undefined && reading.window === 'minute';
  const highest = state.started + (unsure ? Math.min(remaining, Math.max(0, leftOfMinute(state) - 1)) : remaining);
  noteFewest(state, window, given, remaining);
  if (given.generation !== state.generation) {
    if (window.mode !== 'told') return;
    // What has opened the window need not have counted it, and here it is not among the starts.
    window.ceiling -= 1;
    window.leastLeft = Math.min(window.leastLeft, remaining);
    if (highest > window.ceiling) return;
    window.ceiling = highest;
    window.cappedAt = state.started;
    return;
  }
  if (unsure) state.dayAtLeast = given.countedBefore + 1 + Math.floor(remaining / state.replicas);
  const told = window.mode === 'told';
  if (told && reading.resetId < window.resetId - SAME_RESET_MS) return;
  const same = told && reading.resetId <= window.resetId + SAME_RESET_MS;
  // Alone, it knows of its own starts only.
  const allowed =
    state.replicas > 1
      ? given.countedBefore + 1 + Math.floor(remaining / state.replicas)
      : Math.max(given.countedBefore + 1 + remaining, state.counted + window.fewest);
  const ceiling = same ? (state.replicas > 1 ? window.ceiling : Math.max(window.ceiling, allowed)) : allowed;
  window.mode = 'told';
  window.cappedAt = ceiling >= highest ? state.started : same ? window.cappedAt : 0;
  window.ceiling = Math.min(ceiling, highest);
  window.resetAtMs = nowMs + reading.resetInMs + GUARD_MS;
  window.resetId = reading.resetId;
  window.leastLeft = same ? Math.min(window.leastLeft, remaining) : remaining;
  window.toldAtMs = Math.max(window.toldAtMs, nowMs - (reading.agoMs ?? 0));
  if (reading.limit !== undefined) window.toldLimit = reading.limit;
  // A limit that its reader knew is no news. Where it is not the one here, another plan was configured meanwhile.
  if (reading.otherLimit === undefined) return;
  // What was told of the other window before the plan was known may have been this one's; with this one's limit, it was.
  const assumed = other.mode !== 'told' || !state.planKnown || other.limit === limit;
  if (assumed) other.limit = other.toldLimit = reading.otherLimit;
  window.limit = limit;
  state.planKnown = true;
}

function noteFewest(state: LedgerState, window: WindowState, given: Grant, remaining: number): void {
  window.fewest = Math.min(window.fewest, remaining);
  window.fewestLately = Math.min(window.fewestLately, remaining);
  if (given.generation !== state.generation || given.start <= window.fewestSince) return;
  window.fewest = window.fewestLately;
  window.fewestLately = remaining;
  window.fewestSince = state.started;
}

function forgetFewest(window: WindowState): void {
  Object.assign(window, NOTHING_TOLD);
}

function applyRefused(state: LedgerState, report: Refused, nowMs: number): void {
  const { grant: given, readings, refusal } = report;
  if (given.generation === state.generation) settle(state, given);
  applyReadings(state, given, readings, nowMs);
  // A key that is refused for no reason of the plan's is not the gate's business.
  if (refusal.ban && !refusedLately(state, nowMs)) {
    if (given.probe && given.generation === state.generation) openUntold(state);
    return;
  }
  // Whatever the day's limit is, it will not be found out by calling on.
  state.dayInDoubt = false;
  // A window that has something left is not the one that was overrun.
  const untilReset = Math.max(0, ...readings.map((reading) => (reading.remaining === 0 ? reading.resetInMs : 0)));
  let pauseMs = Math.max(refusal.retryAfterMs, untilReset);
  // What was granted before the pause began is an echo of the refusal that began it. Of a start that another ledger has
  // granted, by another clock, it is known only that none is granted in a pause.
  const before =
    given.generation === state.generation ? given.grantedAtMs <= state.pausedAtMs : nowMs < state.pausedUntilMs;
  const echo = state.refusals > 0 && before;
  if (!echo) {
    state.refusals += 1;
    state.pausedAtMs = nowMs;
    const [first, longest] = refusal.ban ? [FIRST_BAN_MS, LONGEST_BAN_MS] : [FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS];
    const backoffMs = Math.min(first * 2 ** (state.refusals - 1), longest);
    pauseMs = Math.max(pauseMs, backoffMs + Math.floor(backoffMs * 0.25 * refusal.jitter));
  }
  pause(state, Math.min(pauseMs, LONGEST_PAUSE_MS) + GUARD_MS, nowMs);
  state.banned ||= refusal.ban;
}

function applyAdopted(state: LedgerState, memory: Memory, nowMs: number): void {
  const { plan, calls, underWay, pausedForMs } = memory;
  // Or a ban that follows would be taken for a key that may not do this, and be called with for ever.
  if (memory.refusedLately && !refusedLately(state, nowMs)) state.pausedAtMs = nowMs;
  // Held against the plan that is merely assumed, what was spent could close the day.
  if (plan && !state.planKnown) {
    state.minute.limit = plan.perMinute;
    state.day.limit = plan.perDay;
    state.planKnown = true;
  }
  const knowsBefore = knows(state, memory);
  const starts = calls + underWay;
  adoptMinute(state, memory, nowMs);
  state.started += starts;
  state.counted += calls;
  forgetFewest(state.minute);
  forgetFewest(state.day);
  if (starts > 0) {
    add(state.minuteStarts, slotOf(nowMs, MINUTE_SLOTS.lengthMs), starts);
    add(state.dayStarts, slotOf(nowMs, DAY_SLOTS.lengthMs), starts);
  }
  if (underWay > 0) add(state.unanswered, slotOf(nowMs, UNANSWERED_SLOT_MS), underWay);
  // Where no header tells of a window, this is all that is known of it. What is counted here already has its own time: calls
  // that have left the window since would be counted anew.
  if (!knowsBefore) {
    addMissing(state.minuteStarts, slotOf(nowMs, MINUTE_SLOTS.lengthMs), memory.minuteUsed);
    addMissing(state.dayStarts, slotFreeIn(memory.dayFreeInMs, DAY_SLOTS, nowMs), memory.dayUsed);
  }
  adoptDay(state, memory, knowsBefore, nowMs);
  if (pausedForMs > 0) pause(state, pausedForMs, nowMs);
}

/**
 * What is left of a minute in which others have called, a probe finds out; but where nothing is known to be left, it would be
 * a call too many.
 */
function adoptMinute(state: LedgerState, memory: Memory, nowMs: number): void {
  const { minute, started } = state;
  const { minuteTold, calls, underWay, awayForMs } = memory;
  const told = minute.mode === 'told';
  const last = !told || !minuteTold || minuteTold.id >= minute.resetId - SAME_RESET_MS;
  if (minuteTold?.remaining === 0 && minuteTold.inMs > 0 && last) {
    const ceiling = told ? Math.min(minute.ceiling, started) : started;
    Object.assign(minute, { mode: 'told', ceiling, cappedAt: started + calls + underWay });
    Object.assign(minute, { resetAtMs: nowMs + minuteTold.inMs, resetId: minuteTold.id });
    return;
  }
  if (told && minute.ceiling <= started) return;
  const overtaken = awayForMs !== undefined && minute.toldAtMs < nowMs - awayForMs;
  if (told && (calls + underWay > 0 || overtaken)) minute.mode = 'unknown';
}

/** A day that was told is over at its reset; counted here, it would be when the last call of it is a day old. */
function adoptDay(state: LedgerState, { dayReset, dayUsed }: Memory, knowsBefore: boolean, nowMs: number): void {
  const { day, started } = state;
  if (!dayReset || dayReset.inMs <= 0) return;
  if (day.mode !== 'told') {
    const ceiling = started + Math.max(0, day.limit - sum(state.dayStarts));
    Object.assign(day, { mode: 'told', ceiling, cappedAt: started });
    Object.assign(day, { resetAtMs: nowMs + dayReset.inMs, resetId: dayReset.id });
    return;
  }
  // Several tell one after the other, each of what it knows; but not of the day before.
  const ceiling = started + Math.max(0, day.limit - dayUsed);
  if (knowsBefore || dayReset.id < day.resetId - SAME_RESET_MS || ceiling >= day.ceiling) return;
  Object.assign(day, { ceiling, cappedAt: started });
}

/** Whether all that was known before is counted here. A store that was restored may be behind. */
function knows({ generation, started }: LedgerState, { knownOf }: Memory): boolean {
  return knownOf !== undefined && knownOf.generation === generation && knownOf.started <= started;
}

/** How many of its own starts a ledger still counts in a window; what it began with may be among the others. */
export function startedWithin(state: LedgerState, name: WindowName): number {
  return Math.min(state.started, sum(countOf(state, name)[0]));
}

export function refusedLately({ refusals, pausedAtMs }: LedgerState, nowMs: number): boolean {
  return refusals > 0 || nowMs - pausedAtMs <= BAN_SUSPECTED_MS;
}

function pause(state: LedgerState, forMs: number, nowMs: number): void {
  state.pausedUntilMs = Math.max(state.pausedUntilMs, nowMs + forMs);
  state.mustProbe = true;
  state.probeUntilMs = 0;
  if (state.minute.mode === 'told') state.minute.mode = 'unknown';
}

interface Room {
  readonly starts: number;
  readonly probe: boolean;
  readonly closed: Closed | undefined;
  readonly waitMs: number;
}

function grantable(state: LedgerState, nowMs: number): Room {
  if (nowMs < state.pausedUntilMs) return closed('paused', state.pausedUntilMs - nowMs);
  const day = windowStanding(state, 'day', nowMs);
  const minute = windowStanding(state, 'minute', nowMs);
  // By a mistake of ours. It is neither more than nothing nor less: whoever asks would ask again at once, for ever.
  if (Number.isNaN(day.remaining + minute.remaining)) return closed('minute', NOT_KNOWN_MS);
  if (day.remaining <= 0) return usedUp('day', day);
  if (minute.remaining <= 0) return usedUp('minute', minute);
  if (state.mustProbe || minute.mode === 'unknown' || day.mode === 'unknown') {
    if (nowMs < state.probeUntilMs) return closed('probing', state.probeUntilMs - nowMs);
    return { starts: 1, probe: true, closed: undefined, waitMs: 0 };
  }
  const [name, tightest] = day.remaining < minute.remaining ? (['day', day] as const) : (['minute', minute] as const);
  return { starts: tightest.remaining, probe: false, closed: name, waitMs: tightest.resetInMs };
}

/** What allows nothing holds nothing that could leave it either: it is asked again after its whole length. */
function usedUp(name: WindowName, { resetInMs }: WindowStanding): Room {
  const { lengthMs, slots } = SHAPES[name];
  return closed(name, resetInMs > 0 ? resetInMs : lengthMs * slots);
}

function closed(reason: Closed, waitMs: number): Room {
  return { starts: 0, probe: false, closed: reason, waitMs };
}

function grant(state: LedgerState, probe: boolean, nowMs: number): Grant {
  state.started += 1;
  add(state.minuteStarts, slotOf(nowMs, MINUTE_SLOTS.lengthMs), 1);
  add(state.dayStarts, slotOf(nowMs, DAY_SLOTS.lengthMs), 1);
  add(state.unanswered, slotOf(nowMs, UNANSWERED_SLOT_MS), 1);
  const { generation, started, counted } = state;
  return { generation, start: started, countedBefore: counted, grantedAtMs: nowMs, probe };
}

function windowStanding(state: LedgerState, name: WindowName, nowMs: number): WindowStanding {
  const { limit, ceiling, resetAtMs, resetId } = state[name];
  // Before the plan is known, the reset may have been the day's: the starts of the last minute are those of this one.
  const full = name === 'minute' && state.minute.mode === 'unknown' && !state.planKnown && leftOfMinute(state) === 0;
  const mode = full ? 'counted' : state[name].mode;
  // Of a minute that is not known, the starts of the last one say nothing. A day is the same until its reset was told.
  if (mode === 'unknown' && name === 'minute') return { mode, limit, used: 0, remaining: limit, resetInMs: 0, resetId };
  if (mode === 'told') {
    const remaining = Math.max(0, ceiling - state.started);
    const used = Math.max(0, limit - remaining);
    return { mode, limit, used, remaining, resetInMs: Math.max(0, resetAtMs - nowMs), resetId };
  }
  const [starts, slots] = countOf(state, name);
  const used = sum(starts);
  const least = name === 'day' ? leastOfDay(state, mode) : 0;
  const remaining = Math.max(least, allowedWhenCounted(name, limit, state.replicas) - used);
  return { mode, limit, used, remaining, resetInMs: Math.max(0, firstFreeMs(starts, slots) - nowMs), resetId };
}

/** What is left of a day for sure, or worth a call to find out, whatever is counted here against a plan that may not be it. */
function leastOfDay(
  { started, dayAtLeast, dayInDoubt, planKnown, day }: LedgerState,
  mode: WindowState['mode'],
): number {
  if (!planKnown) return Math.min(Math.max(0, dayAtLeast - started), day.limit);
  return mode === 'unknown' && dayInDoubt ? 1 : 0;
}

/** As it is counted here. */
function leftOfMinute({ minute, minuteStarts, replicas }: LedgerState): number {
  return Math.max(0, allowedWhenCounted('minute', minute.limit, replicas) - sum(minuteStarts));
}

function countOf(state: LedgerState, name: WindowName): [CountsBySlot, SlotShape] {
  return [name === 'minute' ? state.minuteStarts : state.dayStarts, SHAPES[name]];
}

/**
 * Of a limit that is smaller than the fleet may be, each takes one call all the same, as it does of a window that is told to
 * find out what is left: with none, a fleet of two that takes itself for fifty would serve nobody; with more, a real fleet of
 * fifty would overrun the plan by more than it must.
 */
function allowedWhenCounted(name: WindowName, limit: number, replicas: number): number {
  const reserve = name === 'day' ? Math.floor(limit / DAY_RESERVE) : 0;
  const allowed = limit - reserve;
  return Math.min(allowed, Math.max(1, Math.floor(allowed / replicas)));
}

function hasReset({ mode, resetAtMs }: WindowState, nowMs: number): boolean {
  return mode === 'told' && nowMs >= resetAtMs;
}

/** The start's answer is in, or it never left: nobody will count it any more. */
function settle(state: LedgerState, { grantedAtMs }: Grant): void {
  // Where the lease is over, it has been counted already.
  if (subtract(state.unanswered, slotOf(grantedAtMs, UNANSWERED_SLOT_MS))) state.counted += 1;
}
