import { newAccount, take } from '../../../src/quota/account/account.ts';
import { applyEnd, callEndOf } from '../../../src/quota/account/call-end.ts';
import type { Account, Permit } from '../../../src/quota/account/format.ts';
import type { AccountRules } from '../../../src/quota/account/limits.ts';
import { QuotaState } from '../../../src/quota/account/quota-state.ts';
import { countCalls, dropFree, isWithinShare, newVisitorCalls } from '../../../src/quota/account/visitor-share.ts';
import type { VisitorCalls } from '../../../src/quota/account/visitor-share.ts';
import { waitOf } from '../../../src/quota/account/wait.ts';
import { trialsLeft } from '../../../src/quota/account/trust.ts';
import type { WindowName } from '../../../src/quota/account/slots.ts';
import { passTime } from '../../../src/quota/account/pass-time.ts';
import { WINDOWS, WINDOW_NAMES } from '../../../src/quota/account/slots.ts';
import { MAX_LATE_MS } from '../../../src/common/call-times.ts';
import { admitAll, lineOf } from '../../../src/line/admission.ts';
import type { Claim, View, WantedCall } from '../../../src/line/admission.ts';
import { OPEN } from '../../../src/closed/closed-api.ts';
import { maxOfVisitor } from '../../support/plan-rules.ts';
import { accountFrom } from './key-text.ts';
import type { Model } from './search.ts';
import { TIMEOUT_MS, accountEdges } from './upstream.ts';

export interface LineOptions {
  readonly perMinute: number;
  readonly perDay: number;
  readonly startMs: number;
  /** Who may come, in any order. */
  readonly kinds: readonly (keyof typeof CLAIMS)[];
  /** How many come on one way. */
  readonly arrivals: number;
  /** 429s with a Retry-After of 30 s. */
  readonly limited: number;
  /** How often petql is half a second late. */
  readonly delays: number;
}

/** Who waits, for how long at most, and as which visitor. A minute's calls are free again when the patient one's wait ends. */
const CLAIMS = {
  write: { waitMs: 30_000, visitor: undefined, isRefresh: false, isBackground: false },
  read: { waitMs: 10_000, visitor: undefined, isRefresh: false, isBackground: false },
  patient: { waitMs: 61_000, visitor: undefined, isRefresh: false, isBackground: false },
  greedy: { waitMs: 90_000, visitor: 'greedy', isRefresh: false, isBackground: false },
  honest: { waitMs: 10_000, visitor: 'honest', isRefresh: false, isBackground: false },
  refresh: { waitMs: 10_000, visitor: undefined, isRefresh: true, isBackground: false },
  background: { waitMs: 90_000, visitor: undefined, isRefresh: false, isBackground: true },
} as const;

interface Waiter extends WantedCall {
  readonly kind: keyof typeof CLAIMS;
  readonly claims: readonly [Claim];
  /** When it goes, as it was said last. */
  saidMs?: number;
}

interface ViewParts {
  nowMs: number;
  account: Account;
  waiters: Waiter[];
  flying: { readonly permit: Permit; readonly sentAtMs: number }[];
  visitors: Record<string, VisitorCalls>;
  /** When calls for visitors were sent. */
  sent: { readonly visitor: string; readonly atMs: number }[];
  arrivals: number;
  limited: number;
  delays: number;
  isStopping: boolean;
}

/** Background calls leave half of a minute and a fifth of a day. */
const RESERVES: Readonly<Record<WindowName, number>> = { minute: 0.5, day: 0.2 };
const SLOTS = 2;
const RETRY_AFTER_MS = 30_000;
const DELAY_MS = 500;

/** The calls that one key wants: the real admission over the real account, with waiters that come and leave in every order. */
export function createLineModel(options: LineOptions): Model<ViewParts> {
  const { perDay, perMinute, startMs } = options;
  const rules: AccountRules = {
    plan: { perMinute, perDay, known: true },
    startedAtMs: startMs,
    leaseMs: 2 * TIMEOUT_MS + 60_000,
    probeMs: 2 * TIMEOUT_MS,
  };

  return {
    initial: () => ({
      nowMs: startMs,
      account: newAccount('e', true),
      waiters: [],
      flying: [],
      visitors: {},
      sent: [],
      arrivals: options.arrivals,
      limited: options.limited,
      delays: options.delays,
      isStopping: false,
    }),
    actions: actionsOf,
    apply(state, action) {
      run(state, action);
      return review(state);
    },
    progress,
    keyOf(state) {
      const { account, nowMs, visitors } = state;
      const waiters = state.waiters.map(({ kind, claims: [{ request }], saidMs = NaN }) => [
        kind,
        request.deadlineMs - nowMs,
        saidMs - nowMs,
      ]);
      const flying = state.flying.map(({ permit, sentAtMs }) => [permit, sentAtMs - nowMs, account.granted]);
      const shares = Object.entries(visitors).map(([name, calls]) => [
        name,
        WINDOW_NAMES.map((window) => calls[window].slots.map((slot) => slot * WINDOWS[window].slotMs - nowMs)),
      ]);
      const sent = state.sent.map(({ visitor, atMs }) => [visitor, atMs - nowMs]);
      const left = [state.arrivals, state.limited, state.delays, state.isStopping, sent];
      return JSON.stringify([nowMs % WINDOWS.day.slotMs, accountFrom(account, nowMs), waiters, flying, shares, left]);
    },
  };

  function actionsOf({ arrivals, delays, flying, isStopping, limited, waiters, ...state }: ViewParts): string[] {
    const actions: string[] = [];
    if (arrivals > 0 && !isStopping) actions.push(...options.kinds.map((kind) => `come ${kind}`));
    for (const [index, { kind }] of waiters.entries()) actions.push(`leave ${index} (${kind})`);
    for (const index of flying.keys()) {
      actions.push(`respond ${index}`);
      if (limited > 0) actions.push(`refuse ${index}`);
    }
    if (!isStopping) actions.push('stop');
    const edgeMs = edgeOf({ arrivals, delays, flying, isStopping, limited, waiters, ...state });
    if (edgeMs < Infinity && flying.length === 0) {
      actions.push('pass to the next edge');
      if (delays > 0) actions.push('pass to the next edge, and petql is late');
    }
    return actions;
  }

  function run(state: ViewParts, action: string): void {
    const [verb, what = ''] = action.split(' ');
    const index = Number(what);
    if (verb === 'come') come(state, what as Waiter['kind']);
    else if (verb === 'leave') state.waiters.splice(index, 1);
    else if (verb === 'respond') end(state, index, 'accepted');
    else if (verb === 'refuse') {
      state.limited -= 1;
      for (const waiter of state.waiters) delete waiter.saidMs;
      end(state, index, 'rate-limited');
    } else if (verb === 'stop') state.isStopping = true;
    else {
      state.nowMs = edgeOf(state);
      if (!action.endsWith('late')) return;
      state.delays -= 1;
      state.nowMs += DELAY_MS;
      for (const waiter of state.waiters) delete waiter.saidMs;
    }
  }

  function come(state: ViewParts, kind: Waiter['kind']): void {
    const { waitMs, isRefresh, ...terms } = CLAIMS[kind];
    state.arrivals -= 1;
    for (const other of state.waiters) if (placeOf(other.kind) > placeOf(kind)) delete other.saidMs;
    const request = { ...terms, deadlineMs: state.nowMs + waitMs };
    state.waiters.push({ kind, claims: [{ request, isRefresh }] });
  }

  function end({ account, flying, nowMs }: ViewParts, index: number, meaning: 'accepted' | 'rate-limited'): void {
    const [{ permit, sentAtMs } = {} as ViewParts['flying'][number]] = flying.splice(index, 1);
    const none = { limit: undefined, remaining: undefined, reset: undefined, dateMs: undefined };
    const rateLimit = { ...none, retryAfterMs: meaning === 'accepted' ? undefined : RETRY_AFTER_MS };
    const callEnd = callEndOf(
      permit,
      { sent: true, meaning, evidence: 'works', isOwn: true, rateLimit },
      { tookMs: nowMs - sentAtMs, nowMs, isDecisive: true },
    );
    applyEnd(account, permit, callEnd, { nowMs, rules });
  }

  /** Does what CallLine and CallRunner do after each event: ends claims, then takes a permit for the first call that stays. */
  function review(state: ViewParts): string[] {
    const problems: string[] = [];
    for (;;) {
      passTime(state.account, { nowMs: state.nowMs, rules });
      for (const calls of Object.values(state.visitors)) dropFree(calls, state.nowMs);
      const line = lineOf(
        state.waiters.filter(({ kind }) => kind === 'write'),
        state.waiters.filter(({ kind }) => kind !== 'write'),
      );
      const { admissions } = admitAll<Claim, Waiter>(line, viewOf(state));
      const ended = line.filter((waiter) => (admissions.get(waiter)?.ended.size ?? 0) > 0);
      problems.push(...line.flatMap((waiter) => problemsOf(state, waiter, admissions.get(waiter))));
      state.waiters = state.waiters.filter((waiter) => !ended.includes(waiter));
      if (ended.length > 0) continue;

      const first = line.find((waiter) => admissions.get(waiter)?.payer);
      if (!first || state.flying.length >= SLOTS) return problems;
      const [permit] = take(state.account, 1, { nowMs: state.nowMs, rules }).permits;
      if (!permit) return problems;
      problems.push(...send(state, first, permit));
    }
  }

  function problemsOf(
    state: ViewParts,
    waiter: Waiter,
    admission: ReturnType<typeof admitAll<Claim, Waiter>>['admissions'] extends Map<Waiter, infer A>
      ? A | undefined
      : never,
  ): string[] {
    const { nowMs } = state;
    const { kind } = waiter;
    const [claim] = waiter.claims;
    if (!admission) return [`a ${kind} without a verdict`];
    const ending = admission.ended.get(claim);
    if (ending && admission.payer) return [`a ${kind} ends, and goes`];
    if (ending?.kind === 'refuse' && ending.reason === 'quota') {
      return ending.wait.waitMs > 0 ? [] : [`a ${kind} is told to return at once`];
    }
    const { deadlineMs } = claim.request;
    const mayGo = state.flying.length < SLOTS && nowMs < deadlineMs + MAX_LATE_MS;
    if (ending?.kind === 'refuse' && ending.reason === 'late' && mayGo)
      return [`a ${kind} is refused though it may go`];
    if (ending) return ending.kind === 'serve-stale' && kind !== 'refresh' ? [`a ${kind} gets stale data`] : [];

    const { verdict } = admission;
    if (state.isStopping) return [`a ${kind} waits though petql stops`];
    if (verdict.kind !== 'wait' && verdict.kind !== 'go') return [`a ${kind} neither waits nor ends`];
    if (kind === 'refresh' && verdict.kind === 'wait') return ['a refresh waits'];
    if (nowMs > deadlineMs + MAX_LATE_MS) return [`a ${kind} waits ${nowMs - deadlineMs} ms too long`];
    if (verdict.kind !== 'wait') return [];
    if (nowMs + verdict.wait.waitMs > deadlineMs + MAX_LATE_MS) return [`a ${kind} waits in vain`];
    return checkSaid(waiter, nowMs + verdict.wait.waitMs);
  }

  /** A wait gets no longer, except by a write that goes before it, by a 429, and where petql itself is late. */
  function checkSaid(waiter: Waiter, saidMs: number): string[] {
    const { kind, saidMs: before = Infinity } = waiter;
    // The call yields to all who come.
    if (kind === 'background') return [];
    waiter.saidMs = saidMs;
    return saidMs > before ? [`a ${kind} waits ${saidMs - before} ms longer than it was said to`] : [];
  }

  function send(state: ViewParts, waiter: Waiter, permit: Permit): string[] {
    const { account, nowMs, visitors } = state;
    const { kind } = waiter;
    const problems: string[] = [];
    state.waiters = state.waiters.filter((other) => other !== waiter);
    state.flying.push({ permit, sentAtMs: nowMs });

    if (kind !== 'write' && state.waiters.some((other) => other.kind === 'write'))
      problems.push('a read before a write');
    const isOvertaken = state.waiters.some((other) => other.kind !== 'background');
    if (kind === 'background' && isOvertaken) problems.push('a background call before another');
    const minuteLeft = perMinute - account.minute.total;
    if (kind === 'background' && minuteLeft < Math.floor(perMinute * RESERVES.minute)) {
      problems.push('a background call takes the reserve');
    }

    const { visitor } = waiter.claims[0].request;
    if (visitor === undefined) return problems;
    const calls = (visitors[visitor] ??= newVisitorCalls());
    countCalls(calls, nowMs);
    state.sent.push({ visitor, atMs: nowMs });
    const own = state.sent.filter((call) => call.visitor === visitor).map(({ atMs }) => atMs);
    for (const name of WINDOW_NAMES) {
      const used = own.filter((atMs) => atMs > nowMs - WINDOWS[name].lengthMs).length;
      if (used > maxOfVisitor({ minute: perMinute, day: perDay }[name])) {
        problems.push(`a visitor gets more than its share of a ${name}`);
      }
    }
    return problems;
  }

  function viewOf({ account, flying, isStopping, nowMs, visitors }: ViewParts): View {
    const state = new QuotaState(account, nowMs, rules);
    const usedBy = (visitor: string, name: WindowName) => visitors[visitor]?.[name].total ?? 0;
    return {
      nowMs,
      isStopping,
      isOld: false,
      turn: OPEN,
      isAfter429: state.incidents > 0,
      permits: 0,
      freeCalls: trialsLeft(account, nowMs) > 0 ? SLOTS - flying.length : 0,
      promisedReturns: 0,
      waitOf: (ahead) => waitOf(account, ahead, { nowMs, rules }),
      reserveWaitOf(ahead) {
        const waits = WINDOW_NAMES.map((name) =>
          state.leftToShareInMs(name, Math.floor(state[name].limit * RESERVES[name]) + ahead),
        );
        return { waitMs: Math.max(...waits), window: 'MINUTE' };
      },
      hasPlace: () => true,
      hasShare: (visitor, own, ahead) =>
        visitor === undefined ||
        WINDOW_NAMES.every((name) =>
          isWithinShare(usedBy(visitor, name) + own, { remaining: state.leftToShare(name) - ahead, replicas: 1 }),
        ),
      shareWaitOf: () => ({ waitMs: WINDOWS.minute.lengthMs, window: 'MINUTE' }),
      hasRefreshToken: () => true,
    };
  }

  /** The next moment at which the account or a deadline changes something. */
  function edgeOf({ account, nowMs, waiters }: ViewParts): number {
    const deadlines = waiters.flatMap(({ claims: [{ request }] }) => [
      request.deadlineMs + 100,
      request.deadlineMs + MAX_LATE_MS,
    ]);
    return Math.min(Infinity, ...[...accountEdges(account), ...deadlines].filter((atMs) => atMs > nowMs));
  }

  /** When calls are answered and time passes, every waiter ends. */
  function progress(state: ViewParts): string[] {
    for (let looks = 0; looks < 200 && state.waiters.length + state.flying.length > 0; looks += 1) {
      if (state.flying.length > 0) end(state, 0, 'accepted');
      else state.nowMs = edgeOf(state);
      const problems = review(state);
      if (problems.length > 0) return problems;
    }
    return state.waiters.length > 0 ? ['a waiter never ends'] : [];
  }
}

/** Who goes before whom: a lower place before a higher one. */
function placeOf(kind: Waiter['kind']): number {
  return { write: 0, background: 2 }[kind as string] ?? 1;
}
