import { steadyTime } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { PetqlError } from '../errors.ts';
import type { Events } from '../events.ts';
import { PLANS } from '../plan.ts';
import { createSpans } from '../spans.ts';
import type { RequestWait, Spans } from '../spans.ts';
import { RECORDS_LIVE_MS } from '../store/records.ts';
import { openStateFile } from '../store/state-file.ts';
import { createCallerNames, newSecret } from '../throttle/caller-names.ts';
import type { CallerNames } from '../throttle/caller-names.ts';
import type { Ledger } from '../throttle/ledger.ts';
import { createThrottle } from '../throttle/throttle.ts';
import type { UpstreamClock } from '../throttle/upstream-clock.ts';
import type { TraceContext } from '../trace-context.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import { createBudget } from './budget.ts';
import type { Budget, BudgetView } from './budget.ts';
import { budgetFit } from './budget-fit.ts';
import type { BudgetFit } from './budget-fit.ts';
import { createCallerTable } from './caller-table.ts';
import type { Demand } from './demand.ts';
import { createFirstAnimals } from './first-animals.ts';
import type { FirstAnimals } from './first-animals.ts';
import type { Freshness } from './freshness.ts';
import { createGetRoute } from './get-route.ts';
import type { GetRoute } from './get-route.ts';
import { createIdempotency } from './idempotency.ts';
import type { Submits } from './idempotency.ts';
import { createKnowledge } from './knowledge.ts';
import type { Knowledge } from './knowledge.ts';
import { createKnowledgeRoom } from './knowledge-room.ts';
import type { KnowledgeRoom } from './knowledge-room.ts';
import { createLeftKnowledge } from './left-knowledge.ts';
import type { LeftKnowledge } from './left-knowledge.ts';
import { createNamedRecords } from './named-records.ts';
import { createPets } from './pets.ts';
import type { AccountedPets, RequestLife } from './pets.ts';
import { createReads } from './reads.ts';
import type { CallerReads, Reads, ReadsOptions } from './reads.ts';
import { createRefreshAllowance } from './refresh-allowance.ts';
import { createRefusedKey } from './refused-key.ts';
import { createRetryQuota } from './retry-quota.ts';
import type { RetryQuota } from './retry-quota.ts';
import type { SharedListings } from './shared-listings.ts';
import { tracedPetApi } from './traced-pet-api.ts';
import { worstCaseCalls } from './worst-case.ts';
import type { SavedCalls, SavedReason } from './usage.ts';
import { createWrites } from './writes.ts';
import type { Writes } from './writes.ts';

/** Whoever holds one API key. All state is kept per caller, and none of it is seen by another. */
export interface Caller {
  /** The reads and writes of one request. */
  pets(life: RequestLife): AccountedPets;
  readonly budget: Budget;
  /** See `Knowledge`: what was answered from memory alone is answered alike as long as this is the same object, and while it is fresh. */
  revision(): object;
  /** Why nothing of this caller's can run at the moment, or undefined. */
  refusal(): PetqlError | undefined;
  /** The most calls that reading all of these can take now, retries aside. */
  worstCase(demands: readonly Demand[], freshness: Freshness): number;
  /** Whether so many calls fit what is left of the plan, behind what waits; asked of the ledger anew. */
  fit(calls: number): Promise<BudgetFit>;
  /** Something of this caller's was answered, and saved so many calls. */
  saved(calls: SavedCalls): void;
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
  /** When the deprecated route goes, in milliseconds since the epoch; undefined while that is far away. */
  readonly nearSunsetMs: number | undefined;
  /** Those that have called, the latest first. */
  views(): CallerView[];
  /** With how many keys nothing is called at the moment. */
  gatesClosed(): number;
  /** Whether the upstream has `GET /pets/{petId}`, as far as is known. */
  readonly singleReadsWork: boolean;
  /** Refuses whoever waits and whoever comes, and settles once the calls under way are over and written down. */
  close(): Promise<void>;
}

export interface CallersOptions {
  readonly petApi: PetApi;
  readonly ledger: Ledger;
  readonly upstreamClock: UpstreamClock;
  readonly clock: Clock;
  /** Default: nothing is logged. */
  readonly log?: Log;
  /** A caller that nobody has asked for in so long is forgotten, but for what it spent; in milliseconds. 15 minutes, the default, at least. */
  readonly idleMs?: number;
  /** Among how many processes a plan is shared. Default: it is this one's alone. */
  readonly replicas?: () => number;
  /** What passes listings between them. Default: nothing. */
  readonly listings?: SharedListings;
  /** Where submits with an idempotency key are kept. Default: in memory, for the callers of this object. */
  readonly submits?: Submits;
  /** What callers are called where they are shown and kept. Default: with a secret of its own. */
  readonly nameOf?: CallerNames;
  /** Who counts what happens. Default: nobody. */
  readonly events?: Events | undefined;
  /** Default: those of the SDK that is set up in this process. */
  readonly spans?: Spans;
}

const SHORTEST_IDLE_MS = 900_000;

export function createCallers(options: CallersOptions): Callers {
  const {
    clock,
    upstreamClock,
    log = silentLog,
    idleMs = SHORTEST_IDLE_MS,
    nameOf = createCallerNames(newSecret()),
    submits = submitsInMemory(clock, nameOf),
    spans = createSpans(),
  } = options;
  const rememberedMs = Math.max(idleMs, SHORTEST_IDLE_MS);
  const callers = createCallerTable<KnownCaller>(clock, rememberedMs);
  const getRoute = createGetRoute({ clock, log, upstreamNow: () => upstreamClock.now() });
  const together = {
    getRoute,
    retryQuota: createRetryQuota(clock),
    firstAnimals: createFirstAnimals(),
    knowledgeRoom: createKnowledgeRoom(),
    leftKnowledge: createLeftKnowledge(),
    rememberedMs,
  };
  let closing = false;
  return {
    withKey(apiKey) {
      const caller = callers.get(apiKey, () => createCaller(apiKey, together, { ...options, nameOf, submits, spans }));
      if (closing) void caller.close();
      return caller;
    },
    get nearSunsetMs() {
      return getRoute.nearSunsetMs;
    },
    views: () => callers.all().flatMap((caller) => caller.view() ?? []),
    gatesClosed: () => callers.count((caller) => caller.isClosed()),
    get singleReadsWork() {
      return getRoute.works;
    },
    async close() {
      closing = true;
      callers.close();
      await Promise.all(callers.all().map((caller) => caller.close()));
    },
  };
}

interface KnownCaller extends Caller {
  view(): CallerView | undefined;
  isBusy(): boolean;
  /** Whether nothing is called with its key at the moment, after a 429. */
  isClosed(): boolean;
  /** It is forgotten, but for the calls that it spent. */
  leave(): void;
  close(): Promise<void>;
}

/** What is the same for every caller, and what outlives them. */
interface Together {
  readonly getRoute: GetRoute;
  readonly retryQuota: RetryQuota;
  readonly firstAnimals: FirstAnimals;
  readonly knowledgeRoom: KnowledgeRoom;
  readonly leftKnowledge: LeftKnowledge;
  /** What is older is of no use to anybody. */
  readonly rememberedMs: number;
}

function createCaller(
  apiKey: string,
  { getRoute, retryQuota, firstAnimals, knowledgeRoom, leftKnowledge, rememberedMs }: Together,
  options: CallersOptions & Required<Pick<CallersOptions, 'nameOf' | 'spans' | 'submits'>>,
): KnownCaller {
  const { petApi, clock, listings, events, spans, replicas = () => 1 } = options;
  const refusedKey = createRefusedKey(clock);
  const throttle = createThrottle({
    apiKey,
    ...options,
    onChange: () => reading?.reads.review(),
    onTurn: (event) => events?.waited(event),
  });
  const budget = createBudget({ throttle, clock, waiting });
  // Made when they are asked for, since strangers come in crowds, and each is remembered for a while: hardly any of them writes.
  let reading: Reading | undefined;
  let writing: Writes | undefined;
  /** The revision of what a caller knows that has read nothing: an object of its own, so that no two are equal. */
  const nothingRead = {};
  let closed = false;
  let made = 0;
  let saved = 0;
  /** Of the request that the call which is being sent is charged to. */
  let payersTrace: TraceContext | undefined;
  const reads: Reads = {
    known: (demand, freshness) => toRead().reads.known(demand, freshness),
    wait: (demand, turn) => toRead().reads.wait(demand, turn),
  };
  const writes: Writes = {
    create: (pet, turn) => toWrite().create(pet, turn),
    isBusy: () => writing?.isBusy() ?? false,
    close: async () => writing?.close(),
  };
  return {
    pets(life) {
      const { trace } = life;
      const onCall = () => {
        payersTrace = trace?.();
      };
      const onWaited = (wait: RequestWait) => spans.waited(wait, trace?.());
      return createPets({ reads, writes, firstAnimals, clock, life: { ...life, onCall, onWaited } });
    },
    budget,
    refusal: () => (refusedKey.remainingMs() > 0 ? refusedKey.error() : undefined),
    revision: () => reading?.knowledge.revision() ?? nothingRead,
    isBusy: () => throttle.isBusy() || writes.isBusy(),
    isClosed: () => (throttle.standing()?.pausedForMs ?? 0) > 0,
    leave,
    worstCase(demands, { maxAgeMs, mayCall }) {
      if (!mayCall) return 0;
      const sinceMs = clock.elapsed() - maxAgeMs;
      const { reads: known, knowledge } = toRead();
      return worstCaseCalls(demands, {
        ...known.facts(),
        singleReadsRest: getRoute.rests,
        knows: (demand) => (knowledge.find(demand)?.asOfMs ?? -Infinity) >= sinceMs,
        lastShown: (id) => knowledge.lastShown(id),
        listed: knowledge.listed(sinceMs),
      });
    },
    fit: async (calls) => budgetFit(await throttle.refreshed(), calls === 0 ? 0 : calls + waiting()),
    saved(calls) {
      for (const reason in calls) {
        const count = calls[reason as SavedReason] ?? 0;
        saved += count;
        events?.saved({ reason, calls: count });
      }
    },
    view() {
      const latest = budget.latest();
      return latest && { name: async () => options.nameOf(apiKey), budget: latest, made, saved };
    },
    async close() {
      closed = true;
      reading?.reads.close();
      await Promise.all([throttle.close(), writes.close()]);
    },
  };

  /** Of the reads only some have asked the throttle for a place, and those are planned, too. */
  function waiting(): number {
    return throttle.waiting('write') + (reading?.reads.planned() ?? 0);
  }

  function leave(): void {
    if (!reading) return;
    const { knowledge, reads: own } = reading;
    own.leave();
    const sinceMs = clock.elapsed() - rememberedMs;
    const facts = knowledge.facts().filter(({ asOfMs }) => asOfMs >= sinceMs);
    // It would hold its place in the room.
    knowledge.forget();
    // Of the writes of other replicas, whoever has left hears nothing. What they have listed is in Redis, too.
    if (!listings) leftKnowledge.keep(apiKey, facts);
  }

  function toRead(): Reading {
    if (reading) return reading;
    const knowledge = createKnowledge(knowledgeRoom);
    for (const fact of leftKnowledge.take(apiKey)) knowledge.learn(fact);
    const allowance = createRefreshAllowance({
      elapsed: () => clock.elapsed(),
      day: () => throttle.standing()?.day ?? UNTOLD_DAY,
      replicas,
      oneCallIsEnough: () => knowledge.size() === 'small',
      asOfMs: (demand) => knowledge.find(demand)?.asOfMs,
    });
    const spend = () => {
      made += 1;
      allowance.spend();
    };
    const refund = () => {
      made -= 1;
      allowance.refund();
    };
    reading = {
      knowledge,
      spend,
      reads: createReads({
        ...shared(),
        getRoute,
        knowledge,
        share: listings && ((listener) => listings.join(apiKey, listener)),
        allowance: { ...allowance, spend, refund },
        retryQuota,
        onRetry: ({ kind }) => events?.retried({ operation: kind === 'list' ? 'listPets' : 'getPet' }),
      }),
    };
    if (closed) reading.reads.close();
    return reading;
  }

  function toWrite(): Writes {
    if (writing) return writing;
    const { reads: own, spend } = toRead();
    const idempotency = createIdempotency({
      ...options.submits,
      apiKey,
      clock,
      onForeign: () => void own.wrote(undefined),
    });
    const onCall = () => {
      spend();
      retryQuota.called();
    };
    writing = createWrites({ ...shared(), reads: own, idempotency, onCall });
    if (closed) void writing.close();
    return writing;
  }

  function shared(): Pick<ReadsOptions, 'apiKey' | 'clock' | 'petApi' | 'refusedKey' | 'throttle'> {
    return { apiKey, petApi: tracedPetApi(petApi, spans, () => payersTrace), throttle, refusedKey, clock };
  }
}

/** What a caller has that has asked for animals. */
interface Reading {
  readonly knowledge: Knowledge;
  readonly reads: CallerReads;
  /** A call is sent, whatever it is for. */
  spend(): void;
}

function submitsInMemory(clock: Clock, nameOf: CallerNames): Submits {
  const { records } = openStateFile(':memory:', steadyTime(clock));
  return { records: createNamedRecords(records, nameOf), leaseMs: RECORDS_LIVE_MS };
}

/** Before a first call nothing is known that could be refreshed. */
const UNTOLD_DAY = { limit: PLANS.free.perDay, remaining: PLANS.free.perDay };
