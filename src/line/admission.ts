import type { CallerRequest } from '../common/caller-request.ts';
import type { Wait } from '../quota/account/wait.ts';
import { MOMENT_MS, SOON_MS } from '../common/time-limit.ts';
import type { Turn } from '../closed/closed-api.ts';
import type { Visitor } from '../quota/visitors.ts';
import { MAX_LATE_MS, MAX_SPREAD_MS } from '../common/call-times.ts';

/** Who waits for a call: a read of one request, or a write. */
export interface Claim {
  readonly request: Pick<CallerRequest, 'deadlineMs' | 'isBackground' | 'visitor'>;
  /** Whether cached data would do: then it waits for nothing. */
  readonly isRefresh: boolean;
}

/** A call that stands in the line of one API key. */
export interface WantedCall<Of extends Claim = Claim> {
  /** All who need the call. The first one whose visitor has a share pays for it. */
  readonly claims: readonly Of[];
  /** Whether it only refreshes an entry and is not in the line yet: then the refresh budget must allow it. */
  readonly isNewRefresh?: boolean;
  /** Whether it is a list; undefined where that is not known yet. */
  readonly isList?: boolean;
}

/** The call is not sent: it would be too late, or others have used what there is. */
export interface Refuse {
  readonly kind: 'refuse';
  readonly reason: 'background' | 'in-flight' | 'late' | 'outage' | 'quota' | 'stopping' | 'visitor-share';
  /** Until the plan has room for it, with all that were refused before it. */
  readonly wait: Wait;
}

/** The cached entry is served. */
export interface ServeStale {
  readonly kind: 'serve-stale';
  readonly reason: 'CALLS_IN_FLIGHT' | 'PAUSED' | 'QUOTA_EXHAUSTED' | 'SAVING_QUOTA' | 'UPSTREAM_FAILED';
}

/** What ends a claim. */
export type Ending = Refuse | ServeStale;

export type Verdict =
  /** There is a permit for it, or as far as this process knows, the account grants one now. */
  | { readonly kind: 'go' }
  | { readonly kind: 'wait'; readonly wait: Wait }
  /** It would be refused, but the view is old: the account is read first. */
  | { readonly kind: 'look' }
  | Ending;

/** What there is for the calls of one API key at one moment. */
export interface View {
  /** By `clock.elapsed()`. */
  readonly nowMs: number;
  readonly isStopping: boolean;
  /** Whether the account may have changed since: nobody is refused by it. */
  readonly isOld: boolean;
  /** Whether the last response was a 429, or a probe after one that failed. */
  readonly isAfter429: boolean;
  /** Permits that are granted and unused: the first calls of the line have them. */
  readonly permits: number;
  /** How many more calls may be in flight: as many as trust allows after a 429, and none where its calls are under way. */
  readonly freeCalls: number;
  /** Which calls may be sent where the API is closed, after a 429 and after a 401. */
  readonly turn: Turn;
  /** Refused requests that were told to return, and have not had the time yet. */
  readonly promisedReturns: number;
  /** Returns the minimum wait of a call without a permit that has `ahead` such calls before it. */
  waitOf(ahead: number): Wait;
  /** Returns the minimum wait of a background call for what it leaves to others; its own permit is used already. */
  reserveWaitOf(ahead: number): Wait;
  /** Whether a visitor may have one more call in flight, after `own` calls of its own and those of `others`. */
  hasPlace(visitor: Visitor, own: number, others: number): boolean;
  /** Whether a visitor that pays for `own` calls before this one may pay for it too. */
  hasShare(visitor: Visitor, own: number, ahead: number): boolean;
  /** Returns the minimum time until it may. */
  shareWaitOf(visitor: Visitor, own: number, ahead: number): Wait;
  /** Whether the refresh budget allows a call after the `calls` before it, of which the visitor pays for `own`. */
  hasRefreshToken(visitor: Visitor, own: number, calls: number): boolean;
}

/** What stands before a call in the line. */
export interface Before {
  /** Calls that go or wait. */
  readonly calls: number;
  /** Those of them that wait for no call of their own visitor: permits are for these. */
  readonly startable: number;
  /** Calls that the plan has no room for, and that are to return. */
  readonly refused: number;
  /** How many of the calls each visitor pays for. */
  readonly paidBy: ReadonlyMap<Visitor, number>;
}

export interface Admission<Of extends Claim = Claim> {
  readonly verdict: Verdict;
  /** Who pays for a call that goes or waits. */
  readonly payer: Of | undefined;
  /** Whether it waits for no call of its own visitor. */
  readonly isStartable: boolean;
  readonly ended: ReadonlyMap<Of, Ending>;
}

export const NOTHING_BEFORE: Before = { calls: 0, startable: 0, refused: 0, paidBy: new Map() };
const GO: Verdict = { kind: 'go' };
const LOOK: Verdict = { kind: 'look' };
/** A list goes first. Its end reviews the line. */
const AFTER_TURN: Verdict = { kind: 'wait', wait: { waitMs: SOON_MS, window: undefined } };

/** Returns the line: writes, then reads, and last what is for background work alone. */
export function lineOf<Call extends WantedCall>(writes: Iterable<Call>, reads: Iterable<Call>): readonly Call[] {
  const wanted = [...writes, ...reads];
  const yielding = wanted.filter(isBackground);
  return yielding.length === 0 ? wanted : [...wanted.filter((call) => !isBackground(call)), ...yielding];
}

/** Decides about all calls of a line, in their order. */
export function admitAll<Of extends Claim, Call extends WantedCall<Of>>(
  line: Iterable<Call>,
  view: View,
): { readonly admissions: Map<Call, Admission<Of>>; readonly after: Before } {
  const admissions = new Map<Call, Admission<Of>>();
  let after = NOTHING_BEFORE;
  for (const call of line) {
    const admission = admit<Of>(call, view, after);
    admissions.set(call, admission);
    after = stepBehind(after, admission);
  }
  return { admissions, after };
}

/**
 * Decides whether a call may go now: the one place where it is decided for reads, refreshes, writes and dry runs. A call ends with
 * its last claim.
 */
export function admit<Of extends Claim>(call: WantedCall<Of>, view: View, before: Before): Admission<Of> {
  const place = placeOf(call, view, before);
  const ended = new Map<Of, Ending>();
  const unpaid = (verdict: Verdict): Admission<Of> => ({ verdict, payer: undefined, isStartable: false, ended });

  // 1. A closed API ends all but the call that finds out; the quota ends claims that would wait too long.
  for (const claim of call.claims) {
    const ending = (place.isInTurn ? undefined : endingByTurn(claim, view)) ?? endingByQuota(claim, call, view, place);
    if (ending) ended.set(claim, ending);
  }
  const staying = ended.size === 0 ? call.claims : call.claims.filter((claim) => !ended.has(claim));
  if (staying.length === 0) return unpaid(endOf(ended));

  // 2. What is left is for others.
  if (!place.isInTurn) return unpaid(AFTER_TURN);
  if (place.isHeldBack) return unpaid({ kind: 'wait', wait: place.wait });

  // 3. A visitor that has a share pays for all: best one that has a place too.
  const own = (visitor: Visitor) => before.paidBy.get(visitor) ?? 0;
  const payers = staying.filter(({ request: { visitor } }) => view.hasShare(visitor, own(visitor), place.ahead));
  const payer = payers.find((claim) => hasPlace(claim, view, before)) ?? payers[0];
  if (!payer) {
    if (view.isOld && !call.isNewRefresh) return unpaid(LOOK);
    for (const claim of staying) ended.set(claim, endingByShare(claim, view, own(claim.request.visitor), place.ahead));
    return unpaid(endOf(ended));
  }

  // 4. A call that only refreshes needs a token.
  const { visitor } = payer.request;
  if (call.isNewRefresh && !view.hasRefreshToken(visitor, own(visitor), before.calls)) {
    for (const claim of staying) ended.set(claim, { kind: 'serve-stale', reason: 'SAVING_QUOTA' });
    return unpaid(endOf(ended));
  }

  const isStartable = hasPlace(payer, view, before);
  const verdict: Verdict = place.mayGo && isStartable ? GO : { kind: 'wait', wait: place.wait };
  return { verdict, payer, isStartable, ended };
}

/** Returns what stands before the next call of the line. */
export function stepBehind(before: Before, { verdict, payer, isStartable }: Admission): Before {
  if (verdict.kind === 'refuse' && verdict.reason === 'quota') return { ...before, refused: before.refused + 1 };
  if (!payer) return before;

  const calls = before.calls + 1;
  const startable = before.startable + Number(isStartable);
  // Most gateways do not tell visitors apart.
  const { visitor } = payer.request;
  if (visitor === undefined) return { ...before, calls, startable };
  const paidBy = new Map(before.paidBy).set(visitor, (before.paidBy.get(visitor) ?? 0) + 1);
  return { ...before, calls, startable, paidBy };
}

/** Whether a call is for background work alone: it stands behind all others. */
export function isBackground({ claims }: WantedCall): boolean {
  return claims.every(({ request }) => request.isBackground);
}

/** Where a call stands. */
interface Place {
  /** How many calls before it lack a permit too. Negative where the call has a permit. */
  readonly ahead: number;
  readonly hasPermit: boolean;
  /** Whether it is one of the calls that may go now, whatever the quota. */
  readonly isInTurn: boolean;
  /** Whether it waits for the reserve, and so takes no permit. */
  readonly isHeldBack: boolean;
  readonly wait: Wait;
  readonly mayGo: boolean;
  readonly mayStart: boolean;
  /** Until the plan has room for it behind all that were told to return. */
  readonly returnWait: () => Wait;
}

const NO_WAIT: Wait = { waitMs: 0, window: undefined };

function placeOf(call: WantedCall, view: View, before: Before): Place {
  // A call that waits for others of its own visitor leaves the permits to those behind it.
  const isStartable = call.claims.some((claim) => hasPlace(claim, view, before));
  const ahead = isStartable ? before.startable - view.permits : Math.max(0, before.calls - view.permits);
  const quotaWait = ahead < 0 ? NO_WAIT : view.waitOf(ahead);
  const reserveWait = isBackground(call) ? view.reserveWaitOf(ahead) : NO_WAIT;
  const isHeldBack = reserveWait.waitMs > quotaWait.waitMs;
  const wait = isHeldBack ? reserveWait : quotaWait;
  const isInTurn = isOfTurn(call, view.turn) && before.startable < view.turn.calls;
  const mayStart = isInTurn && isStartable && (ahead < 0 || before.startable < view.freeCalls);
  return {
    ahead,
    hasPermit: ahead < 0 && !isHeldBack && isInTurn,
    isInTurn,
    isHeldBack,
    wait,
    mayStart,
    mayGo: mayStart && wait.waitMs === 0,
    returnWait() {
      const own = view.waitOf(Math.max(0, ahead) + view.promisedReturns + before.refused);
      const maxMs = wait.waitMs + MAX_SPREAD_MS;
      return own.waitMs > maxMs ? { ...wait, waitMs: maxMs } : own;
    },
  };
}

function hasPlace({ request: { visitor } }: Claim, view: View, { startable, paidBy }: Before): boolean {
  const own = paidBy.get(visitor) ?? 0;
  return view.hasPlace(visitor, own, Math.max(0, startable - own));
}

function isOfTurn({ isList }: WantedCall, turn: Turn): boolean {
  return turn.of === 'all' || isList === undefined || isList === (turn.of === 'lists');
}

function endingByTurn(claim: Claim, view: View): Ending | undefined {
  const { isRefresh } = claim;
  const { isClosed, isRefusing, waitMs } = view.turn;
  if (isRefresh && isClosed) return { kind: 'serve-stale', reason: 'UPSTREAM_FAILED' };
  const isLate = isClosed && view.nowMs >= lateAtMs(claim, false);
  if (!isRefusing && !isLate) return undefined;
  const wait = { waitMs, window: undefined };
  return { kind: 'refuse', reason: view.isStopping ? 'stopping' : 'outage', wait };
}

function endingByQuota(claim: Claim, call: WantedCall, view: View, place: Place): Ending | undefined {
  const { wait, mayGo } = place;
  if (view.isStopping) return { kind: 'refuse', reason: 'stopping', wait };
  if (place.hasPermit) return undefined;

  // A refresh waits for no quota, no call in flight and no probe; once in the line, it waits for a look at the account.
  if (claim.isRefresh) {
    const isLookedAt = view.isOld && place.mayStart && !call.isNewRefresh;
    if (mayGo || isLookedAt) return undefined;
    return { kind: 'serve-stale', reason: whyNoCall(view, { isQuotaLeft: wait.waitMs === 0 }) };
  }

  const isLate = view.nowMs >= lateAtMs(claim, mayGo);
  const isHopeless = !view.isOld && wait.waitMs > 0 && view.nowMs + wait.waitMs > claim.request.deadlineMs;
  if (!isLate && !isHopeless) return undefined;
  if (place.isHeldBack) return { kind: 'refuse', reason: 'background', wait };
  if (wait.waitMs > 0) return { kind: 'refuse', reason: 'quota', wait: place.returnWait() };
  return { kind: 'refuse', reason: mayGo ? 'late' : 'in-flight', wait };
}

/** Returns why a call cannot go at once. */
export function whyNoCall(
  { isAfter429 }: Pick<View, 'isAfter429'>,
  { isQuotaLeft }: { readonly isQuotaLeft: boolean },
): 'CALLS_IN_FLIGHT' | 'PAUSED' | 'QUOTA_EXHAUSTED' {
  if (isAfter429) return 'PAUSED';
  return isQuotaLeft ? 'CALLS_IN_FLIGHT' : 'QUOTA_EXHAUSTED';
}

/** Returns when a claim is refused that still waits. */
export function lateAtMs({ request: { deadlineMs } }: Claim, mayGo: boolean): number {
  return deadlineMs + (mayGo ? MAX_LATE_MS : MOMENT_MS);
}

function endingByShare({ isRefresh, request: { visitor } }: Claim, view: View, own: number, ahead: number): Ending {
  if (isRefresh) return { kind: 'serve-stale', reason: 'QUOTA_EXHAUSTED' };
  return { kind: 'refuse', reason: 'visitor-share', wait: view.shareWaitOf(visitor, own, ahead) };
}

/** Returns how a call ends without any claim: it is refused if one of them is. */
function endOf(ended: ReadonlyMap<Claim, Ending>): Ending {
  const endings = [...ended.values()];
  return endings.find(({ kind }) => kind === 'refuse') ?? (endings[0] as Ending);
}

/** Returns what stands before a call, with so many more calls that the visitor pays for; fewer where `calls` is negative. */
export function withCalls(before: Before, calls: number, visitor: Visitor): Before {
  const paid = Math.max(0, (before.paidBy.get(visitor) ?? 0) + calls);
  return {
    ...before,
    calls: before.calls + calls,
    startable: before.startable + calls,
    paidBy: visitor === undefined ? before.paidBy : new Map(before.paidBy).set(visitor, paid),
  };
}
