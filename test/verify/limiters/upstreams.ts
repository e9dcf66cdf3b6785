import { PLANS } from '../../../src/common/plan.ts';
import { tooMany } from '../../support/pet-api/fault.ts';
import type { ArrivingCall, Fault, FaultRule } from '../../support/pet-api/fault.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import type { StrictPlanOptions, ToldHeaders } from '../../support/pet-api/strict-plan.ts';
import { between, createRandom } from '../../support/random.ts';

/** An API whose documentation says 60 calls a minute and 1,000 a day, and what it does beside. */
export interface LimitedUpstream {
  readonly name: string;
  readonly about: string;
  readonly plan: StrictPlanOptions;
  /** Limits that no document shows. */
  readonly fault?: () => FaultRule;
  /** Calls of others and other limits, by time. */
  readonly begin?: Begin;
  /** When the client starts anew, without what it knew. */
  readonly restartsAtMs?: readonly number[];
}

type Begin = (petApi: PetApi, startMs: number, hours: number) => void;

export const KEY = 'key';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const FREE: StrictPlanOptions = { ...PLANS.free, windows: 'fixed', tells: 'changing' };
const UNCOUNTED: Fault = { isCounted: false };

export const LIMITED_UPSTREAMS: readonly LimitedUpstream[] = [
  { name: 'plain', about: 'windows of the clock', plan: FREE },
  { name: 'sliding minute', about: 'each minute looks back', plan: { ...FREE, windows: 'sliding', days: 'fixed' } },
  {
    name: 'hidden 5 a second',
    about: 'more than 5 calls in a second are refused',
    plan: FREE,
    fault: () => perSecond(5, 1),
  },
  { name: '3 at a time', about: 'more than 3 calls at once are refused', plan: FREE, fault: () => atATime(3) },
  { name: 'others in bursts', about: 'others make 20 calls each third hour', plan: FREE, begin: othersEach(3, 20) },
  {
    name: 'three nodes',
    about: 'nodes that share their counts each 10 s',
    plan: { ...UNLIMITED, tells: 'nothing' },
    fault: () => threeNodes(),
  },
  { name: 'counted late', about: 'calls are counted 10 s late', plan: { ...FREE, countsLateMs: 10_000 } },
  {
    name: 'limit 20 at night',
    about: '20 a minute from 22:00 to 06:00',
    plan: FREE,
    begin(petApi, startMs, hours) {
      for (let hour = 0; hour <= hours; hour += 1) {
        const atMs = startMs + hour * HOUR_MS;
        const isNight = new Date(atMs).getUTCHours() >= 22 || new Date(atMs).getUTCHours() < 6;
        at(atMs, () => petApi.changePlan(KEY, { ...PLANS.free, perMinute: isNight ? 20 : 60 }));
      }
    },
  },
  {
    name: 'no Retry-After',
    about: 'hidden 5 a second, and no 429 says when to return',
    plan: FREE,
    fault: () => perSecond(5, undefined),
  },
  {
    name: 'a 429 counts',
    about: 'others in bursts, and refused calls count too',
    plan: { ...FREE, countsRefused: true },
    begin: othersEach(3, 20),
  },
  {
    name: 'storm of 429s',
    about: 'each call of 20 minutes is refused',
    plan: FREE,
    fault: () => storm([5 * HOUR_MS, 5 * HOUR_MS + 20 * MINUTE_MS]),
  },
  {
    name: 'the client restarts',
    about: 'three times, in the middle of a minute',
    plan: FREE,
    restartsAtMs: [2.01 * HOUR_MS, 6.01 * HOUR_MS, 25.01 * HOUR_MS],
  },
  { name: 'hidden 100 an hour', about: 'more than 100 in an hour are refused', plan: FREE, fault: () => perHour(100) },
  { name: 'GCRA', about: '10 at once, then one a second, as headers say', plan: FREE, fault: () => gcra(10) },
  {
    name: 'a greedy program',
    about: 'another program makes 60 calls at once each sixth hour',
    plan: FREE,
    begin: othersEach(6, 60),
  },
];

function at(atMs: number, run: () => void): void {
  setTimeout(run, atMs - Date.now());
}

function othersEach(hours: number, calls: number): Begin {
  return (petApi, startMs, until) => {
    for (let hour = 0.51; hour < until; hour += hours) {
      at(startMs + hour * HOUR_MS, () => petApi.countOthers(KEY, calls));
    }
  };
}

function refuse(retryAfter: number | undefined): Fault {
  return tooMany(retryAfter, UNCOUNTED);
}

/** Returns a rule that refuses more than so many calls in a second. */
export function perSecond(calls: number, retryAfter: number | undefined): FaultRule {
  let served: number[] = [];
  return ({ atMs }) => {
    served = served.filter((other) => other > atMs - SECOND_MS);
    if (served.length >= calls) return refuse(retryAfter);
    served.push(atMs);
    return undefined;
  };
}

/** Returns a rule that takes 300 ms for each call, and refuses more than so many at a time. */
export function atATime(calls: number): FaultRule {
  let servedAtMs: number[] = [];
  return ({ atMs }) => {
    servedAtMs = servedAtMs.filter((other) => other > atMs - 300);
    if (servedAtMs.length >= calls) return refuse(1);
    servedAtMs.push(atMs);
    return { delayMs: 300 };
  };
}

export function perHour(calls: number): FaultRule {
  let [hour, served] = [0, 0];
  return ({ atMs }) => {
    const now = Math.floor(atMs / HOUR_MS);
    if (now !== hour) [hour, served] = [now, 0];
    if (served >= calls) return refuse(Math.ceil(((now + 1) * HOUR_MS - atMs) / SECOND_MS));
    served += 1;
    return undefined;
  };
}

/** Returns a rule that refuses all calls between these times after the first one. */
export function storm([fromMs, untilMs]: readonly [number, number]): FaultRule {
  let startMs: number | undefined;
  return ({ atMs }: ArrivingCall) => {
    startMs ??= atMs;
    return atMs >= startMs + fromMs && atMs < startMs + untilMs ? refuse(15) : undefined;
  };
}

/** Returns a rule by a bucket of so many calls, into which one a second comes back. */
function gcra(size: number): FaultRule {
  let tokens = size;
  let filledAtMs: number | undefined;
  return ({ atMs }) => {
    tokens = Math.min(size, tokens + (atMs - (filledAtMs ?? atMs)) / SECOND_MS);
    filledAtMs = atMs;
    const isServed = tokens >= 1;
    if (isServed) tokens -= 1;
    const told = { limit: size, remaining: Math.floor(tokens), reset: Math.ceil(atMs / SECOND_MS + size - tokens) };
    return isServed ? { told } : { ...refuse(1), told };
  };
}

/** Returns a rule by three nodes, each of which knows the calls of the others 10 s late. */
function threeNodes(): FaultRule {
  const nodes: number[][] = [[], [], []];
  const random = createRandom(7);
  return ({ atMs }) => {
    const node = nodes[between(random, 0, 2)] as number[];
    const sharedMs = Math.floor(atMs / 10_000) * 10_000;
    const count = (sinceMs: number) =>
      nodes.reduce(
        (sum, other) => sum + other.filter((ms) => ms >= sinceMs && (other === node || ms < sharedMs)).length,
        0,
      );
    const windows = [MINUTE_MS, 24 * HOUR_MS].map((lengthMs, index) => {
      const sinceMs = Math.floor(atMs / lengthMs) * lengthMs;
      const limit = index === 0 ? PLANS.free.perMinute : PLANS.free.perDay;
      return { limit, left: limit - count(sinceMs), resetMs: sinceMs + lengthMs };
    });
    const tight = windows.reduce((one, other) => (other.left < one.left ? other : one));
    if (tight.left > 0) node.push(atMs);
    const told: Partial<ToldHeaders> = {
      limit: tight.limit,
      remaining: Math.max(0, tight.left - 1),
      reset: tight.resetMs / SECOND_MS,
      dateMs: Math.floor(atMs / SECOND_MS) * SECOND_MS,
    };
    return tight.left > 0 ? { told } : { ...refuse(Math.ceil((tight.resetMs - atMs) / SECOND_MS)), told };
  };
}
