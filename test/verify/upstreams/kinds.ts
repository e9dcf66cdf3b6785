import { PLANS } from '../../../src/common/plan.ts';
import type { Plan } from '../../../src/common/plan.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import type { Demand } from './demand.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from './traits.ts';
import type { UpstreamTraits } from './traits.ts';

/** What is odd about the upstreams of a kind, and what it may cost. */
export interface Kind {
  readonly name: string;
  readonly draw: (draw: Draw) => Partial<UpstreamTraits>;
  /** Incidents on the first day, and on each later one. Default 10 and 4. */
  readonly maxIncidents?: readonly [first: number, later: number];
  /** Whether no client can do better: it is shown, and has no goal. Default false. */
  readonly hasNoGoal?: boolean;
  /** Why petql misses the goals here: what it misses counts as explained. */
  readonly shortfall?: string;
}

/** What an upstream is drawn with. */
export interface Draw {
  readonly plan: Plan;
  readonly startMs: number;
  readonly hours: number;
  readonly pick: <T>(...choices: readonly T[]) => T;
  /** A whole number, both ends included. */
  readonly from: (low: number, high: number) => number;
  /** A moment of the walk, but for its first and its last hours. */
  readonly someTime: () => number;
}

/** An hour's limit has an end in each hour. */
const EACH_HOUR = [30, 26] as const;

const UNCOUNTED = 'petql counts a call that failed, which the upstream may have counted';

export const KINDS: readonly Kind[] = [
  { name: 'exact', draw: () => ({}) },
  { name: 'sliding', draw: ({ pick }) => ({ minutes: 'sliding', days: pick('fixed', 'sliding', 'first') }) },
  {
    name: 'a day of its own',
    draw: ({ pick, from }) => ({ dayEndsMs: pick(5.5 * HOUR_MS, 18.5 * HOUR_MS, from(0, 24 * 60) * MINUTE_MS) }),
  },
  {
    name: 'a day of 23 or 25 hours',
    draw: ({ pick, startMs }) => ({
      days: 'fixed',
      dayEndsMs: 23 * HOUR_MS,
      summerTime: { atMs: startMs + 26 * HOUR_MS, byMs: pick(-HOUR_MS, HOUR_MS) },
    }),
  },
  {
    name: 'headers of one window',
    draw: ({ pick }) => ({ tells: pick('minute', 'day', 'any', 'fuller') }),
  },
  {
    name: 'other resets',
    draw: ({ pick }) => ({ resetAs: pick('delta', 'delta-ms', 'milliseconds', 'none', 'zone') }),
  },
  {
    name: 'another clock',
    draw: ({ pick }) => ({
      sendsDate: pick(true, false),
      aheadMs: pick(-HOUR_MS, -MINUTE_MS, -30_000, -476, 476, 30_000, HOUR_MS),
    }),
  },
  { name: 'counted late', draw: ({ from }) => ({ lateMs: from(500, 10_000) }) },
  { name: 'three nodes', draw: () => ({ nodes: 3 }) },
  {
    name: 'off by one',
    draw: ({ pick }) => pick({ offBy: 1 }, { offBy: -1 }, { slack: 1 }, { slack: -1 }),
  },
  {
    name: 'a custom plan',
    draw: ({ from, pick }) => {
      const perMinute = from(10, 400);
      return { plan: { perMinute, perDay: from(8, 60) * perMinute }, tells: pick('fewer', 'any', 'day', 'minute') };
    },
  },
  {
    name: 'a minute of 1,000',
    draw: ({ pick }) => {
      const plan = pick<Plan>(PLANS.business, { perMinute: 1_000, perDay: 50_000 });
      const isConfigured = pick(true, true, plan === PLANS.business);
      const resetAs = isConfigured ? pick('seconds', 'far', 'milliseconds') : 'seconds';
      return { plan, isConfigured, resetAs, tells: pick('minute', 'fewer') };
    },
  },
  {
    name: 'calls a second',
    draw: ({ from }) => ({ hidden: { calls: from(3, 20), inMs: SECOND_MS, shape: 'sliding' } }),
  },
  {
    name: 'calls a second, no Retry-After',
    draw: ({ from }) => ({ hidden: { calls: from(3, 20), inMs: SECOND_MS, shape: 'sliding' }, saysRetryAfter: false }),
  },
  { name: 'calls at a time', draw: ({ from }) => ({ atATime: from(3, 6), latencyMs: [200, 400] }) },
  {
    name: '10 in 10 s',
    draw: () => ({ hidden: { calls: 10, inMs: 10 * SECOND_MS, shape: 'sliding' } }),
    maxIncidents: [24, 4],
  },
  {
    name: 'an hour that is not told',
    draw: ({ from }) => ({ hidden: { calls: from(60, 200), inMs: HOUR_MS, shape: 'fixed' } }),
    maxIncidents: EACH_HOUR,
  },
  {
    name: 'headers of an hour',
    draw: ({ from }) => ({ hidden: { calls: from(60, 300), inMs: HOUR_MS, shape: 'fixed' }, tells: 'hour' }),
    maxIncidents: EACH_HOUR,
  },
  {
    name: 'others now and then',
    draw: ({ plan, from }) => ({
      others: [{ calls: from(1, plan.perMinute), everyMs: from(3, 16) * HOUR_MS, afterMs: from(0, 180) * MINUTE_MS }],
    }),
  },
  {
    name: 'others on the hour',
    draw: ({ plan, from }) => ({
      others: [{ calls: Math.ceil((plan.perMinute * from(20, 70)) / 100), everyMs: HOUR_MS, afterMs: 0 }],
    }),
    maxIncidents: EACH_HOUR,
  },
  {
    name: 'others each minute',
    draw: ({ plan, from }) => ({
      plan: { ...plan, perDay: 60 * plan.perMinute },
      isConfigured: true,
      others: [
        {
          calls: Math.ceil((plan.perMinute * from(10, 40)) / 100),
          everyMs: MINUTE_MS,
          afterMs: from(0, 59) * SECOND_MS,
        },
      ],
    }),
  },
  {
    name: 'a storm of 429s',
    draw: ({ from, pick, someTime }) => {
      const fromMs = someTime();
      const lengthMs = pick(SECOND_MS, from(1, 30) * MINUTE_MS);
      return { storms: [{ fromMs, untilMs: fromMs + lengthMs, retryAfterS: pick(15, 30, undefined) }] };
    },
    maxIncidents: [14, 14],
  },
  {
    name: 'a pause of 2 to 60 min',
    draw: ({ from, someTime }) => ({
      storms: [someTime(), someTime()]
        .toSorted((one, other) => one - other)
        .map((fromMs) => ({ fromMs, untilMs: fromMs + from(2, 60) * MINUTE_MS, retryAfterS: 'its end' as const })),
    }),
  },
  {
    name: '500s that are not counted',
    draw: ({ from }) => ({ failing: from(3, 15) / 100 }),
    shortfall: UNCOUNTED,
  },
  {
    name: 'outages',
    draw: ({ from, pick, someTime }) => {
      const fromMs = someTime();
      return { outages: [{ fromMs, untilMs: fromMs + from(1, 90) * MINUTE_MS, counts: pick(true, false) }] };
    },
  },
  {
    name: 'two bad minutes in twenty',
    draw: ({ hours, startMs, pick }) => {
      const counts = pick(true, false);
      return {
        outages: Array.from({ length: 3 * hours }, (_, index) => {
          const fromMs = startMs + (20 * index + 7) * MINUTE_MS;
          return { fromMs, untilMs: fromMs + 2 * MINUTE_MS, counts };
        }),
      };
    },
    shortfall: UNCOUNTED,
  },
  {
    name: 'restarts',
    draw: ({ someTime }) => ({ restartsMs: [someTime(), someTime()].toSorted((one, other) => one - other) }),
  },
  {
    name: 'a smaller plan',
    draw: ({ plan, from, someTime }) => ({
      plan: { perMinute: 3 * plan.perMinute, perDay: 3 * plan.perDay },
      change: { atMs: someTime(), plan: from(0, 1) === 0 ? plan : PLANS.free },
    }),
  },
  {
    name: 'a larger plan',
    draw: ({ plan, someTime }) => ({
      change: { atMs: someTime(), plan: plan.perMinute < PLANS.pro.perMinute ? PLANS.pro : PLANS.business },
    }),
    hasNoGoal: true,
  },
  { name: 'a proxy before it', draw: ({ from }) => ({ foreignEvery: from(50, 500) }) },
  { name: 'random 429s', draw: ({ from }) => ({ random429s: from(1, 5) / 100 }), hasNoGoal: true },
];

/** Three kinds at once. */
export const MIXED: Kind = { name: 'several of these', draw: () => ({}), maxIncidents: EACH_HOUR };

export interface DrawOptions {
  readonly startMs: number;
  readonly hours: number;
  /** Whether the plan is Free's where the kind has none of its own: its walks are short. Default: it may be Pro's. */
  readonly isFree?: boolean | undefined;
}

/** Draws an upstream of a kind. */
export function drawTraits(kind: Kind, seed: number, { startMs, hours, isFree = false }: DrawOptions): UpstreamTraits {
  const random = createRandom(1_000 * [...KINDS, MIXED].indexOf(kind) + seed);
  const pick = <T>(...choices: readonly T[]) => choices[between(random, 0, choices.length - 1)] as T;
  const from = (low: number, high: number) => between(random, low, high);
  const someTime = () => startMs + from(60, 60 * (hours - 4)) * MINUTE_MS;
  const plan = isFree ? PLANS.free : pick<Plan>(PLANS.free, PLANS.free, PLANS.pro);
  const usual = usualTraits(plan, pick);
  const draw = { plan, startMs, hours, pick, from, someTime };

  const judged = KINDS.filter(({ hasNoGoal, shortfall }) => !hasNoGoal && shortfall === undefined);
  const parts = kind === MIXED ? [pick(...judged), pick(...judged), pick(...judged)] : [kind];
  const traits = Object.assign({}, usual, ...parts.map((part) => part.draw(draw))) as UpstreamTraits;
  const largest = [traits.plan, traits.change?.plan ?? traits.plan].toSorted(
    (one, other) => other.perDay - one.perDay,
  )[0];
  return { ...traits, demand: drawDemand(largest ?? traits.plan, random) };
}

function usualTraits(plan: Plan, pick: Draw['pick']): Omit<UpstreamTraits, 'demand'> {
  return {
    plan,
    isConfigured: pick(true, false),
    minutes: pick('fixed', 'first', 'sliding'),
    days: pick('fixed', 'fixed', 'first', 'sliding'),
    dayEndsMs: 0,
    summerTime: undefined,
    tells: 'fewer',
    resetAs: 'seconds',
    sendsDate: true,
    aheadMs: 0,
    lateMs: 0,
    nodes: 1,
    offBy: 0,
    slack: 0,
    hidden: undefined,
    atATime: undefined,
    saysRetryAfter: true,
    others: [],
    foreignEvery: undefined,
    outages: [],
    failing: 0,
    random429s: 0,
    storms: [],
    change: undefined,
    restartsMs: [],
    latencyMs: pick([5, 20], [20, 80], [50, 400]),
  };
}

function drawDemand({ perMinute, perDay }: Plan, random: Random): Demand {
  const kind = random();
  // More would take minutes.
  if (kind < 0.4 && perDay <= 12_000) return { kind: 'always', clients: 10 };
  const part = Math.min(perMinute, 300);
  const calls = Math.ceil(part * (0.3 + random()));
  const everyMs = between(random, 10, 60) * MINUTE_MS * (perMinute > 500 ? 3 : 1);
  return kind < 0.7
    ? { kind: 'bursts', calls, everyMs }
    : { kind: 'job', each3Minutes: Math.ceil(part / (perDay > 12_000 ? 60 : 20)), eachHour: Math.ceil(0.75 * part) };
}
