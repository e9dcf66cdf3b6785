import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { Int64 } from '../int64.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import type { Created } from './created.ts';
import type { RequestWait } from '../spans.ts';
import type { TraceContext } from '../trace-context.ts';
import { createDemandLoader } from './demand-loader.ts';
import type { DemandLoader } from './demand-loader.ts';
import type { Demand } from './demand.ts';
import { demandKey } from './demand.ts';
import type { FirstAnimals } from './first-animals.ts';
import type { Freshness } from './freshness.ts';
import type { ReadTurn, Reads, ServedAnswer } from './reads.ts';
import { createUsageMeter } from './usage.ts';
import type { FreshReads, SavedCalls, SavedReason, Usage } from './usage.ts';
import type { Writes } from './writes.ts';

/** What one request reads and writes for its caller. Every failure is a PetqlError. */
export interface Pets {
  /** Up to `limit` animals with this status, or of all. */
  list(status: PetStatus | undefined, limit: number): MaybePromise<readonly Pet[]>;
  /** The animal, or null when there is none. */
  byId(id: Int64): MaybePromise<Pet | null>;
  /** @param idempotencyKey makes it one creation, however often it is submitted within a day. */
  create(pet: NewPet, idempotencyKey?: string): Promise<Created>;
}

/** The same, with the account of it. */
export interface AccountedPets extends Pets {
  /** What it has cost so far. */
  usage(): Usage;
  /** What it has saved so far. */
  saved(): SavedCalls;
  /** See `UsageMeter`. */
  freshReads(): FreshReads | undefined;
}

/** At once where memory answers, which spares every layer above a turn of the event loop. */
export type MaybePromise<T> = Promise<T> | T;

/** How long a request's calls may wait, how it can be given up, and how old its answers may be. */
export interface RequestLife {
  /** By `clock.elapsed()`. */
  readonly deadlineMs: number;
  /** Found or made only where there is something to give up. */
  readonly signal?: (() => AbortSignal | undefined) | undefined;
  readonly freshness: Freshness;
  /** The trace that its calls belong to. */
  readonly trace?: (() => TraceContext | undefined) | undefined;
  /** A call is charged to it, and sent in the same moment. */
  onCall?(): void;
  /** It has waited for its turn in the plan, which came or was refused. */
  onWaited?(wait: RequestWait): void;
}

export interface PetsOptions {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly firstAnimals: FirstAnimals;
  readonly clock: Clock;
  readonly life: RequestLife;
}

/** For one request: it reads each thing once, however often it is asked for. */
export function createPets({ reads, writes, firstAnimals, clock, life }: PetsOptions): AccountedPets {
  const { deadlineMs, freshness } = life;
  const meter = createUsageMeter(clock);
  const answered = new Set<string>();
  let waiting: DemandLoader<readonly Pet[]> | undefined;
  let refusalTold = false;

  return {
    list(status, limit) {
      const demand: Demand = { kind: 'listing', listing: status ?? 'all' };
      return when(read(demand), (pets) => firstAnimals(pets, limit));
    },
    byId: (id) => when(read({ kind: 'animal', id }), (pets) => pets[0] ?? null),
    create: (pet, idempotencyKey) =>
      writes.create(pet, {
        deadlineMs,
        signal: life.signal?.(),
        idempotencyKey,
        sending: () => life.onCall?.(),
        waited: (waitedMs, refused) => life.onWaited?.({ kind: 'write', waitedMs, refused }),
        charge: meter.called,
      }),
    usage: meter.usage,
    saved: meter.saved,
    freshReads: meter.freshReads,
  };

  function read(demand: Demand): MaybePromise<readonly Pet[]> {
    const known = reads.known(demand, freshness);
    if (!known) {
      waiting ??= createDemandLoader(wait);
      return waiting.load(demand);
    }
    const key = demandKey(demand);
    if (!answered.has(key)) account(known, known.staleReason ?? 'FRESH');
    answered.add(key);
    return known.pets;
  }

  async function wait(demand: Demand): Promise<readonly Pet[]> {
    const askedAtMs = clock.elapsed();
    let hadItsTurn = false;
    let paid = 0;
    const waited = (refused?: string) =>
      life.onWaited?.({ kind: 'read', waitedMs: clock.elapsed() - askedAtMs, refused });
    const refuse = (why: string) => {
      // What is refused is refused to all demands of a request together.
      if (!hadItsTurn && !refusalTold) waited(why);
      refusalTold = true;
    };
    const turn: ReadTurn = {
      deadlineMs,
      signal: life.signal?.(),
      freshness,
      charge() {
        if (!hadItsTurn) waited();
        hadItsTurn = true;
        paid += 1;
        meter.called();
        life.onCall?.();
      },
      refund() {
        paid -= 1;
        meter.refunded();
      },
    };
    const answer = await reads.wait(demand, turn).catch((error: unknown) => {
      if (error instanceof PetqlError && error.code === 'RATE_LIMITED') refuse(error.code);
      throw error;
    });
    const { staleReason } = answer;
    if (staleReason === 'PLAN_USED_UP' || staleReason === 'GATE_CLOSED') refuse(staleReason);
    account(answer, paid > 0 ? undefined : (staleReason ?? 'SHARED_CALL'));
    return answer.pets;
  }

  function account({ asOfMs, staleReason }: ServedAnswer, saved: SavedReason | undefined): void {
    meter.answered(asOfMs, staleReason, saved);
  }
}

function when<T, U>(value: MaybePromise<T>, then: (value: T) => U): MaybePromise<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}
