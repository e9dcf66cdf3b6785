import type { AssumedPlan } from '../../../src/common/plan.ts';
import { newAccount, take } from '../../../src/quota/account/account.ts';
import { applyEnd, callEndOf } from '../../../src/quota/account/call-end.ts';
import type { CallAnswer } from '../../../src/common/call-answer.ts';
import type { Permit } from '../../../src/quota/account/format.ts';
import type { AccountRules } from '../../../src/quota/account/limits.ts';
import { waitOf } from '../../../src/quota/account/wait.ts';
import { passTime } from '../../../src/quota/account/pass-time.ts';
import { WINDOWS } from '../../../src/quota/account/slots.ts';
import { MAX_TOLD_MS } from '../../../src/quota/account/times.ts';
import { inFlight } from '../../../src/quota/account/window.ts';
import { isOlder, isSameIncident, permitProblem } from '../../support/plan-rules.ts';
import { grantProblems, isAfter, pauseFrom } from './grants.ts';
import { NO_FAULTS } from './key-state.ts';
import type { Call, Faults, KeyOptions, KeyState } from './key-state.ts';
import { keyOf } from './key-text.ts';
import type { Model } from './search.ts';
import {
  DAY_MS,
  MAX_STRAY_MS,
  NO_ANSWER,
  TIMEOUT_MS,
  UNUSED,
  accountEdges,
  answerOf,
  retryAfterMsOf,
  arriveAt,
  upstreamEdges,
} from './upstream.ts';
import type { Response } from './upstream.ts';
import { isValid } from './valid-account.ts';

const STORM_MS = 30_000;
const BACK_MS = 3_600_000;

/** One key at an upstream: the functions of its account, and everything that calls of it may meet, in every order. */
export function createKeyModel(options: KeyOptions): Model<KeyState> {
  const plan: AssumedPlan = { perMinute: options.perMinute, perDay: options.perDay, known: true };
  const rules: AccountRules = {
    plan,
    startedAtMs: options.startMs,
    leaseMs: 2 * TIMEOUT_MS + 60_000,
    probeMs: 2 * TIMEOUT_MS,
  };
  const isAlone = !(['other', 'limited', 'curt'] as const).some((fault) => (options.faults[fault] ?? 0) > 0);

  return {
    initial: () => ({
      nowMs: options.startMs,
      behindMs: 0,
      account: newAccount('e', true),
      calls: [],
      arrivals: [],
      faults: { ...NO_FAULTS, ...options.faults },
      tries: 0,
      refusesUntilMs: 0,
      refusals: { count: 0, atMs: 0, pausesUntilMs: 0 },
      permits: { sent: 0, returned: 0 },
    }),
    actions: actionsOf,
    apply(state, action) {
      const grantedBefore = state.account.granted;
      const problems = run(state, action);
      if (isOlder(state.account.granted, grantedBefore)) problems.push('the count of granted permits went down');
      return [...problems, ...problemsOf(state)];
    },
    keyOf: (state) => keyOf(state, options),
    progress,
  };

  /** Unless it names another one, an action is that of the call with this number. */
  function actionsOf(state: KeyState): string[] {
    const { calls, faults } = state;
    const underWay = calls.filter(({ phase }) => phase !== 'stray').length;
    const actions: string[] = [];
    const add = (fault: keyof Faults, action: string) => faults[fault] > 0 && actions.push(action);

    for (let wanted = 1; wanted <= options.maxCalls - underWay; wanted += 1) actions.push(`take ${wanted}`);
    if (underWay < options.maxCalls) add('unused', 'take 1, use none');
    for (const [index, { phase }] of calls.entries()) {
      if (phase === 'arrived') {
        actions.push(`respond ${index}`);
        add('lost', `lose ${index}`);
        continue;
      }
      actions.push(`arrive ${index}`);
      if (phase === 'stray') actions.push(`vanish ${index}`);
      else {
        add('failed', `fail ${index}`);
        add('lost', `lose ${index}`);
      }
    }
    if (state.refusesUntilMs <= state.nowMs) {
      add('limited', 'the upstream sends 429 with Retry-After');
      add('curt', 'the upstream sends 429 without Retry-After');
    }
    add('other', 'another client calls');
    if (underWay > 0) add('crash', 'crash');
    add('back', 'the clock goes back');
    if (calls.length > 0) add('slow', 'pass a moment');
    if (edgeOf(state) < deadlineOf(state)) actions.push('pass to just before the next edge', 'pass to the next edge');
    return actions;
  }

  function run(state: KeyState, action: string): string[] {
    const [verb = '', number = ''] = action.split(' ');
    const index = Number(number);
    if (action === 'take 1, use none') {
      spend(state, 'unused');
      return takeUnused(state);
    }
    if (verb === 'take') return takeAndSend(state, index);
    if (verb === 'arrive') arrive(state, index);
    else if (verb === 'respond') return respond(state, index);
    else if (verb === 'fail') {
      spend(state, 'failed');
      arrive(state, index);
      Object.assign(state.calls[index]?.response ?? {}, { status: 503 });
    } else if (verb === 'lose') {
      spend(state, 'lost');
      return lose(state, index);
    } else if (verb === 'vanish') state.calls.splice(index, 1);
    else if (action === 'another client calls') {
      spend(state, 'other');
      count(state);
    } else if (action === 'crash') {
      spend(state, 'crash');
      state.calls = state.calls.filter(({ phase }) => phase !== 'arrived');
      for (const call of state.calls) call.phase = 'stray';
    } else if (action === 'the clock goes back') {
      spend(state, 'back');
      state.behindMs += BACK_MS;
    } else if (action === 'pass a moment') {
      spend(state, 'slow');
      pass(state, state.nowMs + (options.latencyMs ?? 300));
    } else if (action.startsWith('the upstream')) {
      spend(state, action.includes('without') ? 'curt' : 'limited');
      state.refusesUntilMs = state.nowMs + STORM_MS;
    } else if (action === 'pass to the next edge') pass(state, edgeOf(state));
    else if (action === 'pass to just before the next edge') pass(state, Math.max(state.nowMs + 1, edgeOf(state) - 1));
    return [];
  }

  function takeAndSend(state: KeyState, wanted: number): string[] {
    const { permits } = take(state.account, wanted, { nowMs: petqlNow(state), rules });
    const problems = checkGrant(state, permits);
    state.permits.sent += permits.length;
    state.calls.push(...permits.map((permit) => ({ permit, sentAtMs: state.nowMs, phase: 'sent' as const })));
    return problems;
  }

  function takeUnused(state: KeyState): string[] {
    const { permits } = take(state.account, 1, { nowMs: petqlNow(state), rules });
    const { minute, day } = state.account;
    const totalBefore = minute.total + day.total - 2 * permits.length;
    for (const permit of permits) end(state, permit, UNUSED, state.nowMs);
    state.permits.returned += permits.length;
    return minute.total + day.total === totalBefore ? [] : ['a permit that was not used still counts'];
  }

  /** A Retry-After binds the permits that are granted after it, and then one probe goes. */
  function checkGrant({ calls, emptyUntilMs = 0, nowMs, pause }: KeyState, permits: readonly Permit[]): string[] {
    if (permits.length === 0) return [];
    if (nowMs < emptyUntilMs) return ['a call is sent in a window that a response has shown to be empty'];
    const underWay = calls.filter(({ phase }) => phase !== 'stray').map(({ permit }) => permit);
    return grantProblems(pause, permits, underWay);
  }

  function arrive(state: KeyState, index: number): void {
    const call = state.calls[index] as Call;
    const { status, headers } = arriveAt(state.nowMs, state.arrivals, options);
    const isRefused = state.nowMs < state.refusesUntilMs;
    const retryAfterMs =
      isRefused && options.faults.limited ? retryAfterMsOf(state.refusesUntilMs - state.nowMs) : headers.retryAfterMs;
    if (status === 200 && !isRefused) count(state);

    if (call.phase === 'stray') state.calls.splice(index, 1);
    else {
      call.phase = 'arrived';
      call.response = { status: isRefused ? 429 : status, headers: { ...headers, retryAfterMs } };
    }
  }

  function count(state: KeyState): void {
    state.arrivals.push(state.nowMs);
  }

  function respond(state: KeyState, index: number): string[] {
    const [{ permit, response, sentAtMs } = {} as Call] = state.calls.splice(index, 1);
    const answered = response as NonNullable<Call['response']>;
    const { headers, status } = answered;
    end(state, permit, answerOf(answered), sentAtMs);

    if (status === 429) return refused(state, permit, headers.retryAfterMs ?? 0);
    const { pause, refusals } = state;
    if (headers.remaining === 0 && headers.reset !== undefined && !isAmbiguous(state, headers)) {
      // A reset is a whole second, and a header alone holds a key for ten minutes at most.
      const emptyUntilMs = Math.min((headers.reset - 1) * 1_000, state.nowMs + MAX_TOLD_MS);
      state.emptyUntilMs = Math.max(state.emptyUntilMs ?? 0, emptyUntilMs);
    }
    if (status === 503) return failed(state, permit);
    if (status === 200 && permit.grantedAtMs > refusals.atMs) refusals.count = 0;
    if (status === 200 && isAfter(permit, pause)) delete state.pause;
    return [];
  }

  /**
   * Whether petql may still count a call that came before the window began: until a minute and some after its response. It takes such a
   * call for one of those that the header counts, in place of another client's.
   */
  function isAmbiguous({ arrivals }: KeyState, { limit, reset = 0 }: Response['headers']): boolean {
    const window = WINDOWS[limit === options.perMinute ? 'minute' : 'day'];
    const beginMs = reset * 1_000 - window.lengthMs;
    return arrivals.some((atMs) => atMs < beginMs && atMs >= beginMs - window.lengthMs - TIMEOUT_MS);
  }

  function refused(state: KeyState, permit: Permit, retryAfterMs: number): string[] {
    state.pause = pauseFrom(petqlNow(state), retryAfterMs, state.pause);
    if (isAlone && state.tries === (options.maxTries ?? 0)) {
      return ['the upstream refuses a call of a key that petql alone uses'];
    }
    if (isAlone) state.tries += 1;
    return checkPause(state, permit, retryAfterMs);
  }

  /** A probe after a 429 that fails or gets no response is one more incident. */
  function failed(state: KeyState, permit: Permit): string[] {
    const { count: incidents, atMs } = state.refusals;
    return incidents === 0 || isSameIncident(permit.grantedAtMs, atMs) ? [] : checkPause(state, permit, 0);
  }

  /** Pauses grow with each incident in a row, and are no longer than that. */
  function checkPause(state: KeyState, permit: Permit, retryAfterMs: number): string[] {
    const nowMs = petqlNow(state);
    const { account, refusals } = state;
    if (!isSameIncident(permit.grantedAtMs, refusals.atMs))
      Object.assign(refusals, { count: refusals.count + 1, atMs: nowMs });

    const minMs = Math.max(retryAfterMs, 5_000 * 2 ** (refusals.count - 1));
    refusals.pausesUntilMs = Math.max(refusals.pausesUntilMs, nowMs + minMs + 1_000);
    const { untilMs } = account.pause;
    if (untilMs < nowMs + minMs) return [`a pause of ${untilMs - nowMs} ms, and not of ${minMs}`];
    // A reset that petql knows is later than any backoff.
    const isLonger = options.tells === 'nothing' && untilMs > refusals.pausesUntilMs;
    return isLonger ? [`a pause that is ${untilMs - refusals.pausesUntilMs} ms too long`] : [];
  }

  function lose(state: KeyState, index: number): string[] {
    const call = state.calls[index] as Call;
    end(state, call.permit, NO_ANSWER, call.sentAtMs);
    if (call.phase === 'arrived') state.calls.splice(index, 1);
    else call.phase = 'stray';
    return failed(state, call.permit);
  }

  function end(state: KeyState, permit: Permit, answer: CallAnswer, sentAtMs: number): void {
    const nowMs = petqlNow(state);
    const callEnd = callEndOf(permit, answer, { tookMs: state.nowMs - sentAtMs, nowMs, isDecisive: true });
    applyEnd(state.account, permit, callEnd, { nowMs, rules });
  }

  function pass(state: KeyState, toMs: number): void {
    state.nowMs = toMs;
    state.arrivals = state.arrivals.filter((atMs) => atMs > toMs - 2 * DAY_MS);
    state.calls = state.calls.filter(({ phase, sentAtMs }) => phase !== 'stray' || sentAtMs + MAX_STRAY_MS > toMs);
  }

  /** Until then time may pass: a call without a response is lost at its timeout. */
  function deadlineOf({ calls }: KeyState): number {
    const waiting = calls.filter(({ phase }) => phase !== 'stray');
    return Math.min(Infinity, ...waiting.map(({ sentAtMs }) => sentAtMs + TIMEOUT_MS));
  }

  /** The next moment at which something is different: for petql, for the upstream, or for a call. */
  function edgeOf(state: KeyState): number {
    const { account, arrivals, behindMs, calls, nowMs, refusesUntilMs } = state;
    const ours = accountEdges(account).map((atMs) => atMs + behindMs);
    const strays = calls.map(({ sentAtMs }) => sentAtMs + MAX_STRAY_MS);
    const edges = [...ours, ...upstreamEdges(arrivals, options), ...strays, refusesUntilMs];
    return Math.min(Infinity, ...edges.filter((atMs) => atMs > nowMs));
  }

  /** What holds in every state. */
  function problemsOf({ account, behindMs, calls, permits }: KeyState): string[] {
    const problems: string[] = [];
    if (!isValid(account)) problems.push(`the account does not parse: ${JSON.stringify(account)}`);
    const unaccounted = permitProblem(account.granted, permits);
    if (unaccounted) problems.push(unaccounted);
    const leased = calls.filter(({ phase }) => phase !== 'stray').length;
    if (behindMs === 0 && account.minute.total < leased) problems.push('a call under way is in no count');
    return problems;
  }

  /** When all is well again and time passes, the whole plan can be used. */
  function progress(state: KeyState): string[] {
    const startMs = state.nowMs;
    state.refusesUntilMs = 0;
    for (let index = state.calls.length - 1; index >= 0; index -= 1) {
      if (state.calls[index]?.phase !== 'arrived') arrive(state, index);
    }
    const problems: string[] = [];
    while (state.calls.length > 0) problems.push(...respond(state, 0));

    // 1. The first call goes within a minute and a lease, where the day is not exhausted and nothing is paused; else within a day.
    const { day, pause } = state.account;
    const counted = state.arrivals.filter((atMs) => atMs > startMs - DAY_MS).length;
    // A call of another client, or a try, may cost one of petql's, which the upstream refuses and petql counts.
    const refusedCalls = isAlone ? (options.maxTries ?? 0) : 1;
    const isDayLeft = Math.max(day.total, counted) + refusedCalls < options.perDay && pause.untilMs <= petqlNow(state);
    const maxMs = isDayLeft ? WINDOWS.minute.lengthMs + rules.leaseMs : DAY_MS + WINDOWS.day.slotMs;
    const saidMs = saidWaits(state).map((waitMs) => startMs + waitMs);
    const firstMs = useNext(state, problems);
    if (firstMs > startMs + maxMs + 2_000) problems.push(`no call for ${firstMs - startMs} ms`);

    // 2. No wait is longer than it was said to be.
    const wentMs = [firstMs, ...saidMs.slice(1).map(() => useNext(state, problems))];
    for (const [ahead, atMs] of saidMs.entries()) {
      const lateMs = (wentMs[ahead] ?? Infinity) - atMs;
      if (lateMs > 0) problems.push(`a call behind ${ahead} others waits ${lateMs} ms longer than it was said to`);
    }
    if (problems.length > 0) return problems;

    // 3. After a day of rest a day's calls go, and a minute's at once.
    pass(state, state.nowMs + DAY_MS + WINDOWS.day.slotMs + 1_000);
    const restedMs = state.nowMs;
    let inMinute = 0;
    for (let used = 0; used < options.perDay; used += 1) {
      const atMs = useNext(state, problems);
      if (atMs - restedMs < 1_000) inMinute += 1;
    }
    if (problems.length > 0) return problems;
    const expectedMs = Math.ceil(options.perDay / options.perMinute) * 63_000;
    if (inMinute < Math.min(options.perMinute, options.perDay)) return [`${inMinute} calls in a rested minute`];
    const tookMs = state.nowMs - restedMs;
    const crossesMidnight = options.windows === 'fixed' && tookMs > expectedMs;
    return tookMs > expectedMs && !crossesMidnight ? [`a rested day took ${tookMs} ms`] : [];
  }

  /**
   * Returns how long the next calls are said to wait. A reset that headers name may free less than it says, and a call without a
   * response is said to end now: there the wait is a lower bound.
   */
  function saidWaits(state: KeyState): number[] {
    const { account, behindMs } = state;
    const nowMs = petqlNow(state);
    if (options.tells !== 'nothing' || behindMs > 0 || inFlight(account, nowMs) > 0) return [];
    passTime(account, { nowMs, rules });
    return [0, 1, 2].map((ahead) => waitOf(account, ahead, { nowMs, rules }).waitMs);
  }

  /** Makes a call as soon as petql may. Returns when, by the upstream's clock; Infinity after a hundred looks. */
  function useNext(state: KeyState, problems: string[]): number {
    for (let looks = 0; looks < 100; looks += 1) {
      const { permits, wait } = take(state.account, 1, { nowMs: petqlNow(state), rules });
      const [permit] = permits;
      if (!permit) {
        pass(state, state.nowMs + Math.max(1, wait?.waitMs ?? 1));
        continue;
      }
      problems.push(...checkGrant(state, permits));
      state.calls.push({ permit, sentAtMs: state.nowMs, phase: 'sent' });
      arrive(state, 0);
      const isServed = state.calls[0]?.response?.status === 200;
      problems.push(...respond(state, 0));
      if (isServed) return state.nowMs;
    }
    return Infinity;
  }
}

function petqlNow({ behindMs, nowMs }: KeyState): number {
  return nowMs - behindMs;
}

function spend({ faults }: KeyState, fault: keyof Faults): void {
  faults[fault] -= 1;
}
