import type { Clock } from '../clock.ts';
import type { Int64 } from '../int64.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import type { Created } from './created.ts';
import type { TraceContext } from '../trace-context.ts';
import { createDemandLoader } from './demand-loader.ts';
import type { DemandLoader } from './demand-loader.ts';
import type { Demand } from './demand.ts';
import { demandKey } from './demand.ts';
import type { Freshness } from './freshness.ts';
import type { Reads, ServedAnswer } from './reads.ts';
import { createUsageMeter } from './usage.ts';
import type { Usage } from './usage.ts';
import type { Writes } from './writes.ts';

/** What one request reads and writes for its caller. Every failure is a PetqlError. */
export interface Pets {
  /** Up to `limit` animals with this status, or of all. */
  list(status: PetStatus | undefined, limit: number): MaybePromise<readonly Pet[]>;
  /** The animal, or null when there is none. */
  byId(id: Int64): MaybePromise<Pet | null>;
  /** @param idempotencyKey makes it one creation, however often it is submitted within a day. */
  create(pet: NewPet, idempotencyKey?: string): Promise<Created>;
  /** What it has cost so far. */
  usage(): Usage;
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
  readonly trace?: TraceContext | undefined;
  /** A call is charged to it, and sent in the same moment. */
  onCall?(): void;
}

export interface PetsOptions {
  readonly reads: Reads;
  readonly writes: Writes;
  readonly clock: Clock;
  readonly life: RequestLife;
}

/** For one request: it reads each thing once, however often it is asked for. */
export function createPets({ reads, writes, clock, life }: PetsOptions): Pets {
  const { deadlineMs, freshness } = life;
  const meter = createUsageMeter();
  const answered = new Set<string>();
  let waiting: DemandLoader<readonly Pet[]> | undefined;

  return {
    list(status, limit) {
      const demand: Demand = { kind: 'listing', listing: status ?? 'all' };
      return when(read(demand), (pets) => pets.slice(0, limit));
    },
    byId: (id) => when(read({ kind: 'animal', id }), ([pet]) => pet ?? null),
    create: (pet, idempotencyKey) =>
      writes.create(pet, {
        deadlineMs,
        signal: life.signal?.(),
        idempotencyKey,
        sending: () => life.onCall?.(),
        charge: meter.called,
      }),
    usage: meter.usage,
  };

  function called(): void {
    meter.called();
    life.onCall?.();
  }

  function read(demand: Demand): MaybePromise<readonly Pet[]> {
    const known = reads.known(demand, freshness);
    if (!known) {
      waiting ??= createDemandLoader(wait);
      return waiting.load(demand);
    }
    const key = demandKey(demand);
    if (!answered.has(key)) account(known, false);
    answered.add(key);
    return known.pets;
  }

  async function wait(demand: Demand): Promise<readonly Pet[]> {
    let paid = false;
    const answer = await reads.wait(demand, {
      deadlineMs,
      signal: life.signal?.(),
      freshness,
      charge() {
        paid = true;
        called();
      },
    });
    account(answer, paid);
    return answer.pets;
  }

  function account({ asOfMs, staleReason }: ServedAnswer, paid: boolean): void {
    meter.answered(clock.elapsed() - asOfMs, staleReason, paid);
  }
}

function when<T, U>(value: MaybePromise<T>, then: (value: T) => U): MaybePromise<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}
