import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import type { PetqlError } from '../errors.ts';
import type { Events } from '../events.ts';
import { PLANS } from '../plan.ts';
import type { Ledger } from '../throttle/ledger.ts';
import { observedThrottle } from '../throttle/observed-throttle.ts';
import { createThrottle } from '../throttle/throttle.ts';
import type { UpstreamClock } from '../throttle/upstream-clock.ts';
import type { TraceContext } from '../trace-context.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import { createBudget } from './budget.ts';
import type { Budget, BudgetView } from './budget.ts';
import { budgetFit } from './budget-fit.ts';
import type { BudgetFit } from './budget-fit.ts';
import type { Demand } from './demand.ts';
import type { Freshness } from './freshness.ts';
import { createGetRoute } from './get-route.ts';
import type { GetRoute } from './get-route.ts';
import { createKnowledge } from './knowledge.ts';
import { createPets } from './pets.ts';
import type { Pets, RequestLife } from './pets.ts';
import { createReads } from './reads.ts';
import { createRefreshAllowance } from './refresh-allowance.ts';
import { createRefusedKey } from './refused-key.ts';
import { tracedPetApi } from './traced-pet-api.ts';
import { worstCaseCalls } from './worst-case.ts';
import { createWrites } from './writes.ts';

/** Callers remembered at most; a caller without one of these places starts anew, but for the calls that it spent. */
const MOST_CALLERS = 100_000;

/** Whoever holds one API key. All state is kept per caller, and none of it is seen by another. */
export interface Caller {
  /** The reads and writes of one request. */
  pets(life: RequestLife): Pets;
  readonly budget: Budget;
  /** Why nothing of this caller's can run at the moment, or undefined. */
  refusal(): PetqlError | undefined;
  /** The most calls that reading all of these can take now, retries aside. */
  worstCase(demands: readonly Demand[], freshness: Freshness): number;
  /** Whether so many calls fit what is left of the plan, behind what waits; asked of the ledger anew. */
  fit(calls: number): Promise<BudgetFit>;
  /** Something of this caller's was answered with so many calls saved. */
  saved(calls: number): void;
}

/** A caller as those may see it who run the gateway: never by its key. */
export interface CallerView {
  /** A keyed hash of its API key. Rejects where the secret for it cannot be had. */
  name(): Promise<string>;
  readonly budget: BudgetView;
  /** Calls made and saved in this process, since it last forgot the caller. */
  readonly made: number;
  readonly saved: number;
}

export interface Callers {
  /** The caller with this API key; the same one for the same key. */
  withKey(apiKey: string): Caller;
  /** Those that have called, the latest first. */
  views(): CallerView[];
  /** Whether the upstream still has `GET /pets/{petId}`. */
  readonly getWorks: boolean;
  /** Refuses whoever waits and whoever comes, and settles once the calls under way are over and written down. */
  close(): Promise<void>;
}

export interface CallersOptions {
  readonly petApi: PetApi;
  readonly ledger: Ledger;
  readonly upstreamClock: UpstreamClock;
  readonly clock: Clock;
  /** Among how many processes a plan is shared. Default: it is this one's alone. */
  readonly replicas?: () => number;
  /** What a caller is called where its key must not stand. */
  nameOf(apiKey: string): Promise<string> | string;
  /** Who counts what happens. Default: nobody. */
  readonly events?: Events | undefined;
}

type ClosableCaller = Caller & { view(): CallerView | undefined; close(): Promise<void> };

export function createCallers(options: CallersOptions): Callers {
  const { clock, upstreamClock } = options;
  const callers = new LRUCache<string, ClosableCaller>({ max: MOST_CALLERS });
  const getRoute = createGetRoute(clock, () => upstreamClock.now());
  let closing = false;
  return {
    withKey(apiKey) {
      const known = callers.get(apiKey) ?? createCaller(apiKey, getRoute, options);
      callers.set(apiKey, known);
      if (closing) void known.close();
      return known;
    },
    views: () => [...callers.values()].flatMap((caller) => caller.view() ?? []),
    get getWorks() {
      return getRoute.works;
    },
    async close() {
      closing = true;
      await Promise.all([...callers.values()].map((caller) => caller.close()));
    },
  };
}

function createCaller(apiKey: string, getRoute: GetRoute, options: CallersOptions): ClosableCaller {
  const { petApi, clock, events, replicas = () => 1 } = options;
  const refusedKey = createRefusedKey(clock);
  const plain = createThrottle({ apiKey, ...options, onChange: () => reads.review() });
  const throttle = events ? observedThrottle(plain, clock, events) : plain;
  const knowledge = createKnowledge();
  const allowance = createRefreshAllowance({
    elapsed: () => clock.elapsed(),
    day: () => throttle.standing()?.day ?? UNTOLD_DAY,
    replicas,
    oneCallIsEnough: () => knowledge.size === 'small',
    asOfMs: (demand) => knowledge.find(demand)?.asOfMs,
  });
  let made = 0;
  let saved = 0;
  const spend = () => {
    made += 1;
    allowance.spend();
  };
  let payer: TraceContext | undefined;
  const traced = tracedPetApi(petApi, () => payer);
  const shared = { apiKey, petApi: traced, throttle, refusedKey, clock };
  const reads = createReads({ ...shared, getRoute, knowledge, allowance: { ...allowance, spend } });
  const writes = createWrites({ ...shared, reads, onCall: spend });
  const budget = createBudget(throttle, clock);
  return {
    pets(life) {
      const onCall = () => {
        payer = life.trace;
      };
      return createPets({ reads, writes, clock, life: { ...life, onCall } });
    },
    budget,
    refusal: () => (refusedKey.remainingMs() > 0 ? refusedKey.error() : undefined),
    worstCase(demands, { maxAgeMs, mayCall }) {
      if (!mayCall) return 0;
      const sinceMs = clock.elapsed() - maxAgeMs;
      return worstCaseCalls(demands, {
        knows: (demand) => (knowledge.find(demand)?.asOfMs ?? -Infinity) >= sinceMs,
        listed: knowledge.listed(sinceMs),
        size: knowledge.size,
        askedInParts: knowledge.askedInParts || reads.busy,
        getWorks: getRoute.works,
      });
    },
    fit: async (calls) => budgetFit(await throttle.refreshed(), calls === 0 ? 0 : calls + throttle.waiting),
    saved(calls) {
      saved += calls;
    },
    view() {
      const latest = budget.latest();
      return latest && { name: async () => options.nameOf(apiKey), budget: latest, made, saved };
    },
    close: () => throttle.close(),
  };
}

/** Before a first call nothing is known that could be refreshed. */
const UNTOLD_DAY = { limit: PLANS.free.perDay, remaining: PLANS.free.perDay };
