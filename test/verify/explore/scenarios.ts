import { createKeyModel } from './key-model.ts';
import type { KeyOptions } from './key-state.ts';
import { createLineModel } from './line-model.ts';
import type { LineOptions } from './line-state.ts';
import { createReplicasModel } from './replicas-model.ts';
import type { ReplicasOptions } from './replicas-state.ts';
import { createRecordsModel } from './records-model.ts';
import type { RecordFaults } from './records-model.ts';
import { replay, search } from './search.ts';
import type { Model, Search, SearchLimits } from './search.ts';

export interface Scenario {
  /** Without spaces. */
  readonly name: string;
  readonly about: string;
  /** Actions on one way: in `npm run verify -- smoke`, and in `npm run verify -- explore`. */
  readonly maxDepth: { readonly short: number; readonly long: number };
  readonly search: (limits: SearchLimits) => Promise<Search>;
  /** Returns what is broken. */
  readonly replay: (actions: readonly string[], print: (text: string) => void) => Promise<readonly string[]>;
}

type Depths = Scenario['maxDepth'];

/** At the beginning of a slot of time, neither of a minute nor of ten. */
const MORNING_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const BEFORE_MIDNIGHT_MS = Date.UTC(2026, 10, 21, 23, 58, 59, 600);

/** The smallest plan in which a minute, a day, and a call beside another can be told apart. */
const SMALL = { perMinute: 2, perDay: 4, maxCalls: 2, startMs: MORNING_MS } as const;

/** A plan of which two replicas have a share that is not the whole. */
const SHARED = { replicas: 2, perMinute: 2, perDay: 4, maxCalls: 2, startMs: MORNING_MS } as const;

const NONE = { incidents: 0, responses: 0 } as const;
const ONE = { incidents: 1, responses: 1 } as const;
const TWO = { incidents: 2, responses: 2 } as const;
/** A 429 of a storm, and that of the call beside it. */
const STORM = { incidents: 1, responses: 2 } as const;
/** Shorter than any backoff. */
const STORM_MS = 3_000;

/** What each fault of Redis costs a replica at most: src/quota/README.md says why. */
const REDIS = {
  mute: { about: 'a reply of Redis is lost', faults: { mute: 1 }, max: ONE },
  away: { about: 'Redis fails, and returns', faults: { away: 1 }, max: TWO },
  emptied: { about: 'Redis loses all data', faults: { emptied: 1 }, max: TWO },
  restarted: { about: 'Redis fails, and returns without its data', faults: { away: 1, emptied: 1 }, max: TWO },
  older: { about: 'Redis goes on with an older copy', faults: { older: 1 }, max: TWO },
  // One for each pause: the third is 16 actions deep.
  cut: { about: 'one replica loses Redis', faults: { cut: 1 }, max: TWO },
} as const;

/** What an upstream may be: pet-api.md says neither how its windows begin, nor which one its headers describe. */
const UPSTREAMS = (['sliding', 'fixed', 'first'] as const).flatMap((windows) =>
  (['nothing', 'minute', 'day', 'changing'] as const).map((tells) => ({ windows, tells })),
);

export const SCENARIOS: readonly Scenario[] = [
  ...UPSTREAMS.map(({ windows, tells }) =>
    // Only headers of a sliding day say what its reset has freed, and they may be about the minute.
    scenario(
      `${windows}-${tells}`,
      'all goes well',
      { windows, tells, faults: {}, maxTries: windows === 'sliding' && tells === 'changing' ? 1 : 0 },
      { short: 10, long: 24 },
    ),
  ),
  scenario(
    'midnight',
    'a day ends',
    {
      windows: 'fixed',
      tells: 'changing',
      startMs: BEFORE_MIDNIGHT_MS,
      faults: { slow: 1 },
    },
    { short: 8, long: 18 },
  ),
  scenario('late', 'the upstream counts 400 ms late, and responses take their time', {
    windows: 'sliding',
    tells: 'nothing',
    stampsLateMs: 400,
    faults: { slow: 1 },
  }),
  scenario('slow', 'responses take their time', { windows: 'sliding', tells: 'changing', faults: { slow: 2 } }),
  scenario('very-slow', 'responses take two seconds', {
    windows: 'sliding',
    tells: 'nothing',
    latencyMs: 2_000,
    faults: { slow: 1 },
  }),
  scenario('lost', 'two calls get no response', { windows: 'sliding', tells: 'changing', faults: { lost: 2 } }),
  scenario('lost-fixed', 'two calls get no response', { windows: 'fixed', tells: 'minute', faults: { lost: 2 } }),
  scenario('crash', 'the process ends, and a call gets no response', {
    windows: 'first',
    tells: 'minute',
    faults: { crash: 1, lost: 1 },
  }),
  scenario('unused', 'permits are not used, and a call fails', {
    windows: 'sliding',
    tells: 'changing',
    faults: { unused: 2, failed: 1 },
  }),
  scenario('back', 'the clock goes back', { windows: 'sliding', tells: 'nothing', faults: { back: 1 } }),
  scenario(
    'other',
    'another client uses the key',
    {
      windows: 'fixed',
      tells: 'changing',
      faults: { other: 2, slow: 1 },
    },
    { short: 7, long: 14 },
  ),
  scenario(
    'storm',
    'the upstream refuses calls that the plan allows',
    { windows: 'sliding', tells: 'nothing', faults: { limited: 1 } },
    { short: 11, long: 22 },
  ),
  scenario(
    'storms',
    'the same twice, and a probe fails',
    {
      windows: 'sliding',
      tells: 'nothing',
      faults: { limited: 2, slow: 1, failed: 1 },
    },
    { short: 8, long: 15 },
  ),
  scenario(
    'curt-storms',
    'the same without Retry-After',
    {
      windows: 'sliding',
      tells: 'nothing',
      faults: { curt: 2, slow: 1, lost: 1 },
    },
    { short: 8, long: 15 },
  ),

  replicas('replicas', 'replicas share a plan, and a call gets no response', { faults: { lost: 1 }, max: NONE }),
  replicas('replica-crash', 'a replica ends and starts again', { faults: { crash: 1 }, max: NONE }),
  replicas(
    'replicas-storm',
    'the upstream refuses calls of replicas that the plan allows',
    { refusesForMs: STORM_MS, faults: {}, max: STORM },
    { short: 8, long: 15 },
  ),
  replicas('redis-storm', 'the same, and Redis goes on with an older copy', {
    refusesForMs: STORM_MS,
    faults: { older: 1 },
    max: STORM,
  }),
  ...upgrades(),
  replicas(
    'shares',
    'Redis is away for minutes, and no replica knows less than another',
    { isAtomic: true, isTogether: true, faults: { away: 1 }, max: NONE },
    { short: 10, long: 20 },
  ),
  ...Object.entries(REDIS).flatMap(([name, { about, faults, max }]) => [
    replicas(`redis-${name}`, about, { faults, max }),
    replicas(`outage-${name}`, `${about}, for minutes`, { isAtomic: true, faults, max }, { short: 6, long: 14 }),
  ]),

  records('records', 'submits of one idempotency key over a store that fails', {
    refused: 1,
    mute: 1,
    killed: 1,
    unclear: 1,
  }),
  records('records-emptied', 'the store loses the record', { emptied: 1, mute: 1 }),
  records('records-unreadable', 'another version of petql writes the record', { unreadable: 1, mute: 1 }),

  line(
    'line',
    'calls of all kinds come and leave',
    { kinds: ['write', 'read', 'patient', 'greedy', 'refresh', 'background'], arrivals: 4, limited: 1 },
    { short: 6, long: 30 },
  ),
  line('line-late', 'petql is late', { kinds: ['write', 'patient'], arrivals: 4, delays: 1 }, { short: 9, long: 16 }),
  line(
    'line-paused',
    'calls wait for the end of a long pause',
    { kinds: ['write', 'steadfast'], arrivals: 5, limited: 1, retryAfterMs: 90_000 },
    { short: 7, long: 30 },
  ),
  line(
    'line-races',
    'calls come and leave while petql is at work',
    { kinds: ['write', 'refresh'], arrivals: 3, limited: 1, races: 2 },
    { short: 5, long: 30 },
  ),
  line(
    'line-visitors',
    'visitors share a key',
    { kinds: ['write', 'greedy', 'honest'], arrivals: 6 },
    { short: 6, long: 12 },
  ),
];

function scenario(
  name: string,
  about: string,
  options: Partial<KeyOptions> & Pick<KeyOptions, 'faults' | 'tells' | 'windows'>,
  maxDepth: Depths = { short: 10, long: 18 },
): Scenario {
  return { name, about, maxDepth, ...runsOf(() => createKeyModel({ ...SMALL, ...options })) };
}

function replicas(
  name: string,
  about: string,
  options: Partial<ReplicasOptions> & Pick<ReplicasOptions, 'faults' | 'max'>,
  maxDepth: Depths = { short: 6, long: 12 },
): Scenario {
  const all: ReplicasOptions = { ...SHARED, windows: 'sliding', tells: 'nothing', ...options };
  return { name, about, maxDepth, ...runsOf(() => createReplicasModel(all)) };
}

/** Replicas of version 0.3 and new ones on one Redis, for ten minutes of the plan: an old one that ends starts as a new one. */
function upgrades(): Scenario[] {
  // Every order of ten calls and the ends of their minutes.
  const minutes = { isAtomic: true, isTogether: true, perMinute: 1, perDay: 20 };
  return [
    replicas('upgrade', 'an old and a new replica share a plan', { old: 1, faults: { crash: 1, lost: 1 }, max: NONE }),
    replicas(
      'upgrade-minutes',
      'the same for ten minutes',
      { old: 1, ...minutes, faults: { crash: 1 }, max: NONE },
      { short: 20, long: 36 },
    ),
    replicas(
      'upgrade-storm',
      'the same, and the upstream refuses calls that the plan allows',
      { old: 1, refusesForMs: STORM_MS, faults: {}, max: STORM },
      { short: 8, long: 15 },
    ),
    replicas(
      'upgrade-headers',
      'the same by headers of either window',
      { old: 1, tells: 'changing', faults: { crash: 1 }, max: NONE },
      { short: 6, long: 12 },
    ),
  ];
}

function records(name: string, about: string, faults: Partial<RecordFaults>): Scenario {
  const model = () => createRecordsModel({ submits: 3, startMs: MORNING_MS, faults });
  return { name, about, maxDepth: { short: 8, long: 40 }, ...runsOf(model) };
}

function line(
  name: string,
  about: string,
  options: Omit<LineOptions, 'perDay' | 'perMinute' | 'startMs'>,
  maxDepth: Depths,
): Scenario {
  const all = { perMinute: 3, perDay: 8, startMs: MORNING_MS, ...options };
  return { name, about, maxDepth, ...runsOf(() => createLineModel(all)) };
}

/** Hides what the states of a model are. */
export function runsOf<State>(model: () => Model<State>): Pick<Scenario, 'replay' | 'search'> {
  return {
    search: (limits) => search(model(), limits),
    replay: (actions, print) => replay(model(), actions, print),
  };
}
