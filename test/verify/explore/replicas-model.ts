import type { AssumedPlan } from '../../../src/common/plan.ts';
import { newAccount } from '../../../src/quota/account/account.ts';
import { callEndOf } from '../../../src/quota/account/call-end.ts';
import type { CallAnswer } from '../../../src/common/call-answer.ts';
import type { Account, Permit } from '../../../src/quota/account/format.ts';
import type { AccountRules } from '../../../src/quota/account/limits.ts';
import { WINDOWS } from '../../../src/quota/account/slots.ts';
import { isInPause, isOlder, isSameIncident, permitProblem } from '../../support/plan-rules.ts';
import { grantProblems, isAfter, pauseFrom } from './grants.ts';
import { accountFrom, pauseText } from './key-text.ts';
import { isValid } from './valid-account.ts';
import { replicaSteps } from './replica.ts';
import { NO_REDIS_FAULTS } from './replicas-state.ts';
import type { RedisFaults, Replica, ReplicaCall, ReplicasOptions, ReplicasState } from './replicas-state.ts';
import { copyOf } from './search.ts';
import type { Model } from './search.ts';
import {
  DAY_MS,
  MAX_STRAY_MS,
  NO_ANSWER,
  TIMEOUT_MS,
  accountEdges,
  answerOf,
  retryAfterMsOf,
  arriveAt,
  upstreamEdges,
} from './upstream.ts';

/** After these actions Redis, or a replica, may know less than before. */
const LOSES_COUNTS = ['loses all data', 'goes on with the copy', 'crashes'] as const;

/** Replicas that share one document in Redis, and everything that Redis may do with it, in every order. */
export function createReplicasModel(options: ReplicasOptions): Model<ReplicasState> {
  const { old = 0, refusesForMs = 0, startMs } = options;
  const plan: AssumedPlan = { perMinute: options.perMinute, perDay: options.perDay, known: true };
  const rules: AccountRules = {
    plan,
    startedAtMs: startMs,
    leaseMs: 2 * TIMEOUT_MS + 60_000,
    probeMs: 2 * TIMEOUT_MS,
  };

  return {
    initial() {
      const account = { ...newAccount('first', false), isProven: true };
      return {
        nowMs: startMs,
        redis: { account, copy: account, isAway: false },
        replicas: Array.from({ length: options.replicas }, (_, index) => newReplica(true, index < old)),
        calls: [],
        arrivals: [],
        faults: { ...NO_REDIS_FAULTS, ...options.faults },
        refusesUntilMs: startMs + refusesForMs,
        isHarmed: refusesForMs > 0,
        permits: { sent: 0, leased: 0 },
      };
    },
    actions: actionsOf,
    apply(state, action) {
      const before = grantedOf(state);
      const problems = run(state, action);
      if (options.isTogether) showAll(state);
      const after = grantedOf(state);
      const isLossy = LOSES_COUNTS.some((loss) => action.includes(loss));
      const hasShrunk = before.some((granted = 0, index) => isOlder(after[index] ?? granted, granted));
      if (hasShrunk && !isLossy) problems.push('the count of granted permits went down');
      return [...problems, ...problemsOf(state)];
    },
    keyOf,
    progress,
    costsOf: ({ replicas }) => ({
      '429s': Math.max(...replicas.map(({ refused }) => refused.incidents)),
      '429s with those of calls in flight': Math.max(...replicas.map(({ refused }) => refused.responses)),
    }),
  };

  function actionsOf({ calls, faults, nowMs, redis, replicas, ...state }: ReplicasState): string[] {
    const underWay = calls.filter(({ phase }) => phase !== 'stray').length;
    const actions: string[] = [];
    const add = (fault: keyof RedisFaults, action: string) => faults[fault] > 0 && actions.push(action);

    for (const [index, { hasContact, hasLostBeats, isCut }] of replicas.entries()) {
      if (hasContact || !isCut) {
        if (options.isAtomic) actions.push(`replica ${index} calls`);
        for (let wanted = 1; !options.isAtomic && wanted <= options.maxCalls - underWay; wanted += 1) {
          actions.push(`replica ${index} takes ${wanted}`);
        }
      }
      if (!isCut && underWay < options.maxCalls) add('mute', `replica ${index} takes 1 without a reply of Redis`);
      if (!redis.isAway && (isCut || hasLostBeats)) actions.push(`replica ${index} reaches Redis`);
      if (!redis.isAway && !isCut) add('cut', `replica ${index} loses Redis`);
      add('crash', `replica ${index} crashes`);
    }
    for (const [index, { by, phase }] of calls.entries()) {
      if (phase !== 'arrived') actions.push(`call ${index} arrives`);
      else actions.push(`call ${index} is answered`);
      if (phase === 'arrived' && replicas[by]?.isCut === false) {
        add('mute', `call ${index} is answered without a reply of Redis`);
      }
      if (phase !== 'stray') add('lost', `call ${index} is lost`);
    }
    if (!redis.isAway) add('away', 'Redis fails');
    if (redis.isAway) actions.push('Redis returns');
    add('emptied', 'Redis loses all data');
    if (faults.older > 0 && redis.account !== undefined) {
      actions.push('the copy of Redis is up to date', 'Redis goes on with the copy');
    }
    const edgeMs = edgeOf({ calls, faults, nowMs, redis, replicas, ...state });
    // Heartbeats come each second.
    const areBeatsDue = replicas.some(
      ({ hasLostBeats, isAlone, isCut }) => !redis.isAway && !isAlone && (isCut || hasLostBeats),
    );
    if (areBeatsDue || edgeMs >= deadlineOf(calls)) return actions;
    if (!options.isAtomic) actions.push('pass to just before the next edge');
    actions.push('pass to the next edge');
    return actions;
  }

  function run(state: ReplicasState, action: string): string[] {
    const { faults, redis, replicas } = state;
    const [noun, number] = action.split(' ');
    const index = Number(number);
    const replica = replicas[index];
    const isMute = action.endsWith('without a reply of Redis');
    if (isMute) spend('mute');

    if (noun === 'call') {
      if (action.endsWith('arrives')) arrive(state, index);
      else if (action.endsWith('is lost')) {
        faults.lost -= 1;
        lose(state, index);
      } else return respond(state, index, isMute);
    } else if (noun === 'replica' && replica) {
      if (action.includes('takes')) return takeAndSend(state, index, Number(action.split(' ')[3]), isMute);
      if (action.endsWith('calls')) return callAtOnce(state, index);
      if (action.endsWith('reaches Redis')) {
        replica.isAlone = false;
        replicaSteps(state, rules).beat(replica);
      } else if (action.endsWith('loses Redis')) {
        spend('cut');
        Object.assign(replica, { isCut: true, isAlone: true });
      } else {
        spend('crash');
        crash(state, index);
      }
    } else if (action === 'Redis fails') {
      spend('away');
      redis.isAway = true;
      for (const each of replicas) each.isCut = true;
    } else if (action === 'Redis returns') {
      redis.isAway = false;
      if (options.isTogether) for (const each of replicas) replicaSteps(state, rules).beat(each);
    } else if (action === 'Redis loses all data') {
      spend('emptied');
      delete redis.account;
      delete redis.pause;
      for (const each of replicas) each.hasLostBeats = true;
    } else if (action === 'the copy of Redis is up to date') {
      redis.copy = copyOf(redis.account as Account);
    } else if (action === 'Redis goes on with the copy') {
      spend('older');
      redis.account = copyOf(redis.copy as Account);
      delete redis.pause;
    } else if (action === 'pass to the next edge') pass(state, edgeOf(state));
    else pass(state, Math.max(state.nowMs + 1, edgeOf(state) - 1));
    return [];

    function spend(fault: keyof RedisFaults): void {
      faults[fault] -= 1;
      state.isHarmed = true;
    }
  }

  /** Each replica sees the account as it is. */
  function showAll({ redis: { account }, replicas }: ReplicasState): void {
    if (!account || account.granted === 0) return;
    for (const replica of replicas) if (!replica.isCut) replica.seen = copyOf(account);
  }

  function callAtOnce(state: ReplicasState, by: number): string[] {
    const index = state.calls.length;
    const problems = takeAndSend(state, by, 1, false);
    if (state.calls.length === index) return problems;
    arrive(state, index);
    return [...problems, ...respond(state, index, false)];
  }

  function takeAndSend(state: ReplicasState, by: number, wanted: number, isMute: boolean): string[] {
    const replica = state.replicas[by] as Replica;
    const grantedBefore = state.redis.account?.granted ?? 0;
    const { permits } = replicaSteps(state, rules).take(replica, wanted, isMute);
    state.permits.sent += permits.length;
    if (isMute) state.permits.leased += (state.redis.account?.granted ?? 0) - grantedBefore;
    const problems = checkGrant(state, replica, permits);
    state.calls.push(...permits.map((permit) => newCall(state, by, permit)));
    return problems;
  }

  function newCall({ nowMs, replicas }: ReplicasState, by: number, permit: Permit): ReplicaCall {
    const { offline, refused } = replicas[by] as Replica;
    const isOffline = permit.epoch === offline?.account.epoch;
    return { by, permit, isOffline, sentAtMs: nowMs, knew: refused.responses, phase: 'sent' };
  }

  /**
   * A replica that has heard of a Retry-After sends nothing before it, whatever Redis says. What Redis has heard binds all that take
   * their permits there, and then one probe goes; each replica without Redis has its own.
   */
  function checkGrant(state: ReplicasState, replica: Replica, permits: readonly Permit[]): string[] {
    const [permit] = permits;
    if (!permit) return [];
    if (replica.pause && isInPause(replica.pause, state.nowMs)) return ['a call is sent before Retry-After is over'];

    const by = state.replicas.indexOf(replica);
    const isOffline = permit.epoch === replica.offline?.account.epoch;
    const underWay = state.calls.filter((call) => call.phase !== 'stray' && call.isOffline === isOffline);
    if (!isOffline) return grantProblems(state.redis.pause, permits, permitsOf(underWay));
    return grantProblems(replica.pause, permits, permitsOf(underWay.filter((call) => call.by === by)));
  }

  function arrive(state: ReplicasState, index: number): void {
    const call = state.calls[index] as ReplicaCall;
    const { headers, status } = arriveAt(state.nowMs, state.arrivals, options);
    const isRefused = state.nowMs < state.refusesUntilMs;
    const retryAfterMs = isRefused ? retryAfterMsOf(state.refusesUntilMs - state.nowMs) : headers.retryAfterMs;
    if (status === 200 && !isRefused) state.arrivals.push(state.nowMs);

    if (call.phase === 'stray') state.calls.splice(index, 1);
    else {
      call.phase = 'arrived';
      call.response = { status: isRefused ? 429 : status, headers: { ...headers, retryAfterMs } };
    }
  }

  function respond(state: ReplicasState, index: number, isMute: boolean): string[] {
    const [{ by, knew, permit, response, sentAtMs } = {} as ReplicaCall] = state.calls.splice(index, 1);
    const { nowMs, redis } = state;
    const replica = state.replicas[by] as Replica;
    const answered = response as NonNullable<ReplicaCall['response']>;
    const reachesRedis = !replica.isCut && replica.offline?.account.epoch !== permit.epoch;
    settle(state, replica, permit, { answer: answerOf(answered), sentAtMs, isMute });
    if (answered.status === 200) {
      if (isAfter(permit, redis.pause)) delete redis.pause;
      if (isAfter(permit, replica.pause)) delete replica.pause;
      return [];
    }

    if (!state.isHarmed) return ['the upstream refuses a call though nothing has gone wrong'];
    const { refused } = replica;
    if (!isSameIncident(knew, refused.knownAt)) {
      refused.incidents += 1;
      refused.knownAt = refused.responses;
    }
    refused.responses += 1;
    const retryAfterMs = answered.headers.retryAfterMs ?? 0;
    replica.pause = pauseFrom(nowMs, retryAfterMs, replica.pause);
    if (reachesRedis) redis.pause = pauseFrom(nowMs, retryAfterMs, redis.pause);
    const { max } = options;
    if (refused.incidents > max.incidents)
      return [`a replica meets more than ${max.incidents} 429s one after the other`];
    return refused.responses > max.responses ? [`a replica meets more than ${max.responses} 429s`] : [];
  }

  function lose(state: ReplicasState, index: number): void {
    const call = state.calls[index] as ReplicaCall;
    const replica = state.replicas[call.by] as Replica;
    settle(state, replica, call.permit, { answer: NO_ANSWER, sentAtMs: call.sentAtMs, isMute: false });
    if (call.phase === 'arrived') state.calls.splice(index, 1);
    else call.phase = 'stray';
  }

  function settle(
    state: ReplicasState,
    replica: Replica,
    permit: Permit,
    { answer, isMute, sentAtMs }: { answer: CallAnswer; sentAtMs: number; isMute: boolean },
  ): void {
    const { nowMs } = state;
    const end = callEndOf(permit, answer, { tookMs: nowMs - sentAtMs, nowMs, isDecisive: true });
    replicaSteps(state, rules).settle(replica, permit, end, isMute);
  }

  /** What the replica has seen goes with it; its 429s are counted on. */
  function crash(state: ReplicasState, index: number): void {
    const { refused } = state.replicas[index] as Replica;
    state.replicas[index] = { ...newReplica(!state.redis.isAway), refused };
    state.calls = state.calls.filter(({ by, phase }) => by !== index || phase !== 'arrived');
    for (const call of state.calls) if (call.by === index) call.phase = 'stray';
  }

  function pass(state: ReplicasState, toMs: number): void {
    state.nowMs = toMs;
    state.arrivals = state.arrivals.filter((atMs) => atMs > toMs - 2 * DAY_MS);
    state.calls = state.calls.filter(({ phase, sentAtMs }) => phase !== 'stray' || sentAtMs + MAX_STRAY_MS > toMs);
  }

  function edgeOf({ arrivals, calls, nowMs, redis, refusesUntilMs, replicas }: ReplicasState): number {
    const accounts = [redis.account, ...replicas.map(({ offline }) => offline?.account)];
    const ours = accounts.flatMap((account) => (account ? accountEdges(account) : []));
    const strays = calls.map(({ sentAtMs }) => sentAtMs + MAX_STRAY_MS);
    const edges = [...ours, ...upstreamEdges(arrivals, options), ...strays, refusesUntilMs];
    return Math.min(Infinity, ...edges.filter((atMs) => atMs > nowMs));
  }

  /** What holds in every state. */
  function problemsOf({ permits, redis, replicas }: ReplicasState): string[] {
    const accounts = [redis.account, ...replicas.map(({ offline }) => offline?.account)].filter(
      (each) => each !== undefined,
    );
    if (!accounts.every(isValid)) return ['an account does not parse'];
    if (options.faults.emptied || options.faults.older) return [];
    const granted = accounts.reduce((sum, account) => sum + account.granted, 0);
    return [permitProblem(granted, permits)].filter((problem) => problem !== undefined);
  }

  /** When all is well again and time passes, the whole plan can be used, by all replicas, and without a 429. */
  function progress(state: ReplicasState): string[] {
    state.redis.isAway = false;
    state.refusesUntilMs = 0;
    for (const [index, { phase }] of state.calls.entries()) if (phase === 'sent') arrive(state, index);
    state.calls = state.calls.filter(({ phase }) => phase === 'arrived');
    while (state.calls.length > 0) respond(state, 0, false);
    for (const replica of state.replicas) replicaSteps(state, rules).beat(replica);

    pass(state, state.nowMs + DAY_MS + WINDOWS.day.slotMs + rules.leaseMs);
    const restedMs = state.nowMs;
    for (let used = 0; used < options.perDay; used += 1) {
      const problem = useNext(state, used % options.replicas);
      if (problem) return [problem];
    }
    const expectedMs = Math.ceil(options.perDay / options.perMinute) * 63_000;
    const tookMs = state.nowMs - restedMs;
    return tookMs > expectedMs ? [`a rested day took ${tookMs} ms`] : [];
  }

  function useNext(state: ReplicasState, by: number): string | undefined {
    const replica = state.replicas[by] as Replica;
    for (let looks = 0; looks < 100; looks += 1) {
      const { permits, wait } = replicaSteps(state, rules).take(replica, 1);
      const [permit] = permits;
      if (!permit) {
        pass(state, state.nowMs + Math.max(1, wait?.waitMs ?? 1));
        continue;
      }
      const [problem] = checkGrant(state, replica, permits);
      if (problem) return problem;
      state.calls.push(newCall(state, by, permit));
      arrive(state, 0);
      if (state.calls[0]?.response?.status !== 200) return 'a 429 though all is well again';
      respond(state, 0, false);
      return undefined;
    }
    return 'no call after a hundred looks though all is well again';
  }

  /** Returns the state as text with all times from now; replicas with the same memory are the same. */
  function keyOf(state: ReplicasState): string {
    const { arrivals, calls, faults, isHarmed, nowMs, redis, refusesUntilMs, replicas } = state;
    const textOf = (account: Account | undefined) => account && [account.granted, accountFrom(account, nowMs)];
    const owners = replicas.map((replica, index) => {
      const { hasContact, hasLostBeats, isAlone, isCut, isOld, offline, pause, refused, seen } = replica;
      const namesOf = (epoch: string | undefined) =>
        [redis.account, redis.copy, seen, offline?.account].map((account) => account?.epoch === epoch);
      const permitFrom = (permit: Permit) => ({
        ...permit,
        epoch: namesOf(permit.epoch),
        grantedAtMs: permit.grantedAtMs - nowMs,
        minuteSlot: permit.minuteSlot * WINDOWS.minute.slotMs - nowMs,
        daySlot: permit.daySlot * WINDOWS.day.slotMs - nowMs,
      });
      const own = calls.filter(({ by }) => by === index);
      return JSON.stringify([
        [hasContact, hasLostBeats, isAlone, isCut, isOld, pauseText(pause, nowMs), refused],
        [textOf(seen), namesOf(seen?.epoch)],
        offline && [textOf(offline.account), offline.rules.offlineShare, offline.unwritten.length],
        offline?.unwritten.map(({ permit, end }) => [permitFrom(permit), end]),
        own
          .map((call) =>
            JSON.stringify([
              call.phase,
              call.knew,
              call.isOffline,
              permitFrom(call.permit),
              call.sentAtMs - nowMs,
              call.response?.status,
            ]),
          )
          .toSorted(),
      ]);
    });
    return JSON.stringify([
      options.windows === 'fixed' ? nowMs % DAY_MS : nowMs % WINDOWS.day.slotMs,
      [redis.isAway, isHarmed, redis.account?.epoch === redis.copy?.epoch, pauseText(redis.pause, nowMs)],
      textOf(redis.account),
      faults.older > 0 && textOf(redis.copy),
      owners.toSorted(),
      arrivals.filter((atMs) => atMs > nowMs - DAY_MS - 60_000).map((atMs) => atMs - nowMs),
      Object.values(faults),
      Math.max(0, refusesUntilMs - nowMs),
    ]);
  }
}

function newReplica(hasContact: boolean, isOld = false): Replica {
  return {
    isOld,
    isCut: !hasContact,
    isAlone: false,
    hasContact,
    hasLostBeats: false,
    refused: { responses: 0, incidents: 0, knownAt: -1 },
  };
}

/** Until then time may pass: a call without a response is lost at its timeout. */
function deadlineOf(calls: readonly ReplicaCall[]): number {
  const waiting = calls.filter(({ phase }) => phase !== 'stray');
  return Math.min(Infinity, ...waiting.map(({ sentAtMs }) => sentAtMs + TIMEOUT_MS));
}

/** What Redis and each replica know of the permits that were granted. */
function grantedOf({ redis, replicas }: ReplicasState): (number | undefined)[] {
  return [redis.account, ...replicas.map(({ seen }) => seen)].map((account) => account?.granted);
}

function permitsOf(calls: readonly ReplicaCall[]): Permit[] {
  return calls.map(({ permit }) => permit);
}
