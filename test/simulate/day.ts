import { createCallers } from '../../src/caller/callers.ts';
import type { Caller } from '../../src/caller/callers.ts';
import type { Demand } from '../../src/caller/demand.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import type { Freshness, FreshnessDefaults } from '../../src/caller/freshness.ts';
import type { Clock } from '../../src/clock.ts';
import { steadyTime } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import { silentLog } from '../../src/log.ts';
import { PET_STATUSES } from '../../src/pet.ts';
import type { Pet } from '../../src/pet.ts';
import { PLANS } from '../../src/plan.ts';
import type { Plan } from '../../src/plan.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { PetApi, UpstreamAnswer, UpstreamOutcome } from '../../src/upstream/pet-api.ts';
import { createModelStore, found, listed } from '../caller/model-store.ts';
import type { ModelStore } from '../caller/model-store.ts';
import { createStrictPlan } from '../throttle/strict-plan.ts';
import type { StrictPlan } from '../throttle/strict-plan.ts';
import { startVirtualTime } from './virtual-time.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface DayOptions extends FreshnessDefaults {
  readonly plan: Plan;
  /** Animals in the store; every minute others change one of them. */
  readonly animals: number;
  readonly durationMs: number;
  /** What is asked, and when: each entry is one operation of one or more demands, again and again. */
  readonly load: readonly LoadEntry[];
  /** How long an operation may wait. Default 10 s. */
  readonly maxWaitMs?: number;
}

export interface LoadEntry {
  readonly demands: readonly Demand[];
  readonly firstMs: number;
  /** Infinity for once. */
  readonly everyMs: number;
}

export interface DayResult {
  readonly operations: number;
  readonly failed: number;
  readonly calls: number;
  /** 429s that the upstream gave. */
  readonly refused: number;
  /** The oldest age of each operation's answers, in milliseconds, in the order of the operations. */
  readonly agesMs: Float64Array;
  /** When each operation ran, in milliseconds since the start. */
  readonly askedAtMs: Float64Array;
  readonly callsAtMs: readonly number[];
}

const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const LATENCY_MS = 40;
const STEP_MS = 20;
const CHANGED_EVERY_MS = 60_000;

/** One key's day at the caller layer, on virtual time, over an upstream that counts strictly. */
export async function simulateDay(options: DayOptions): Promise<DayResult> {
  using time = startVirtualTime(START_MS);
  const upstream = createStrictPlan({ ...options.plan, windows: 'fixed', tells: 'minute' });
  const store = createChangingStore(options.animals);
  const callers = createCallers({
    petApi: createModelPetApi(store, upstream, time),
    ledger: createMemoryLedger({
      rules: { plan: { ...PLANS.free, known: false }, probeMs: 5_000 },
      now: steadyTime(time.clock),
      log: silentLog,
      firstEver: true,
    }),
    upstreamClock: createUpstreamClock(time.clock),
    clock: time.clock,
  });
  const run = createRunner(callers.withKey('the key'), time.clock, options);
  const askedAtMs: number[] = [];
  const agesMs: number[] = [];
  let failed = 0;
  const waiting = new Set<Promise<number>>();
  const due = options.load.map((entry) => ({ ...entry, atMs: entry.firstMs }));
  let changeAtMs = CHANGED_EVERY_MS;

  while (time.elapsedMs < options.durationMs) {
    for (; changeAtMs <= time.elapsedMs; changeAtMs += CHANGED_EVERY_MS) store.change();
    for (const entry of due) {
      for (; entry.atMs <= time.elapsedMs; entry.atMs += entry.everyMs) start(entry.demands);
    }
    if (waiting.size > 0) await time.advance(STEP_MS);
    else
      time.skip(Math.max(1, Math.min(options.durationMs, changeAtMs, ...due.map(({ atMs }) => atMs)) - time.elapsedMs));
  }
  while (waiting.size > 0) await time.advance(STEP_MS);
  const { arrivals } = upstream;
  return {
    operations: agesMs.length,
    failed,
    calls: arrivals.length,
    refused: arrivals.filter(({ status }) => status !== 200).length,
    agesMs: Float64Array.from(agesMs),
    askedAtMs: Float64Array.from(askedAtMs),
    callsAtMs: arrivals.map(({ atMs }) => atMs - START_MS),
  };

  function start(demands: readonly Demand[]): void {
    const operation = agesMs.length;
    askedAtMs.push(time.elapsedMs);
    agesMs.push(NaN);
    const settled = run(demands);
    if (typeof settled === 'number') {
      agesMs[operation] = settled;
      return;
    }
    waiting.add(settled);
    settled.then(
      (ageMs) => {
        agesMs[operation] = ageMs;
        waiting.delete(settled);
      },
      () => {
        failed += 1;
        waiting.delete(settled);
      },
    );
  }
}

/** Runs an operation; the oldest age of its answers, at once where memory answers. */
function createRunner(caller: Caller, clock: Clock, options: DayOptions) {
  const freshness: Freshness = readFreshness(undefined, options);
  const { maxWaitMs = 10_000 } = options;
  return (demands: readonly Demand[]): Promise<number> | number => {
    const pets = caller.pets({ deadlineMs: clock.elapsed() + maxWaitMs, freshness });
    const answers = demands.map((demand) =>
      demand.kind === 'animal'
        ? pets.byId(demand.id)
        : pets.list(demand.listing === 'all' ? undefined : demand.listing, 100),
    );
    if (!answers.some((answer) => answer instanceof Promise)) return pets.usage().oldestAgeMs ?? 0;
    return Promise.all(answers.map(async (answer) => answer)).then(() => pets.usage().oldestAgeMs ?? 0);
  };
}

interface ChangingStore extends ModelStore {
  change(): void;
}

function createChangingStore(animals: number): ChangingStore {
  const pets: Pet[] = Array.from({ length: animals }, (_, index) => ({
    id: String(index + 1) as Int64,
    name: `Pet ${index + 1}`,
    categoryId: '1' as Int64,
    status: PET_STATUSES[index % PET_STATUSES.length],
  }));
  let changes = 0;
  let model = createModelStore(pets);
  return {
    list: (listing) => model.list(listing),
    get: (id) => model.get(id),
    size: animals,
    change() {
      changes += 1;
      const index = (changes * 7) % animals;
      const pet = pets[index];
      if (pet) pets[index] = { ...pet, name: `Pet ${index + 1}, as of change ${changes}` };
      model = createModelStore([...pets]);
    },
  };
}

function createModelPetApi(store: ModelStore, upstream: StrictPlan, { clock }: VirtualTime): PetApi {
  return {
    listPets: (status) => answer(() => listed(store, status)),
    getPet: (id) => answer(() => found(store, id)),
    createPet: () => Promise.reject(new Error('nobody writes')),
  };

  async function answer<T>(outcome: () => UpstreamOutcome<T>): Promise<UpstreamAnswer<T>> {
    const { status, headers } = upstream.arrive(clock.now());
    const said: UpstreamOutcome<T> = status === 200 ? outcome() : { kind: 'rate-limited' };
    await new Promise((resolve) => {
      setTimeout(resolve, LATENCY_MS);
    });
    return { outcome: said, sent: true, rateLimit: headers };
  }
}

/** So many different queries, each asked so often: listings and single animals, in turn. */
export function steadyLoad(demands: readonly Demand[], everyMs: number): LoadEntry[] {
  return demands.map((demand, index) => ({
    demands: [demand],
    firstMs: Math.round((index * everyMs) / demands.length),
    everyMs,
  }));
}

/** All listings, and single animals spread over the store. */
export function mixedDemands(listings: number, ids: number, animals: number): Demand[] {
  const names = (['all', ...PET_STATUSES] as const).slice(0, listings);
  return [
    ...names.map((listing): Demand => ({ kind: 'listing', listing })),
    ...Array.from({ length: ids }, (_, index): Demand => ({
      kind: 'animal',
      id: String(1 + Math.floor((index * animals) / ids)) as Int64,
    })),
  ];
}
