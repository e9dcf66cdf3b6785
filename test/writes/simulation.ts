import { createCallers } from '../../src/caller/callers.ts';
import type { Caller } from '../../src/caller/callers.ts';
import type { Submits } from '../../src/caller/idempotency.ts';
import { systemClock } from '../../src/clock.ts';
import { PetqlError } from '../../src/errors.ts';
import { silentLog } from '../../src/log.ts';
import type { Int64 } from '../../src/int64.ts';
import type { NewPet, Pet } from '../../src/pet.ts';
import type { Records } from '../../src/store/records.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { PetApi, UpstreamAnswer, UpstreamOutcome } from '../../src/upstream/pet-api.ts';

/** What becomes of one POST. Those that end in `-stored` were carried out all the same. */
export type Fate =
  | '400'
  | '401'
  | '403'
  | '429'
  | '500'
  | '500-stored'
  | 'ok'
  | 'reset'
  | 'reset-stored'
  | 'timeout'
  | 'timeout-stored'
  | 'unreachable'
  | 'unreadable-stored';

export interface Journey {
  readonly fate: Fate;
  readonly thereMs: number;
  readonly backMs: number;
}

/** An upstream in this process, for fake time. */
export interface SimulatedUpstream {
  /** Every animal that was stored, in their order. */
  readonly stored: readonly Pet[];
  /** The POSTs that arrived, or would have. */
  readonly posts: readonly { readonly pet: NewPet; readonly apiKey: string; readonly fate: Fate }[];
  readonly petApi: PetApi;
}

export function createSimulatedUpstream(journey: () => Journey): SimulatedUpstream {
  const stored: Pet[] = [];
  const posts: { pet: NewPet; apiKey: string; fate: Fate }[] = [];
  const unasked = () => Promise.reject(new Error('nobody reads here'));
  return {
    stored,
    posts,
    petApi: {
      listPets: unasked,
      getPet: unasked,
      async createPet(pet, { apiKey }) {
        const { fate, thereMs, backMs } = journey();
        posts.push({ pet, apiKey, fate });
        await later(thereMs);
        const added: Pet = { ...pet, id: String(stored.length + 1) as Int64 };
        if (fate === 'ok' || fate.endsWith('-stored')) stored.push(added);
        await later(backMs);
        return answer(outcomeOf(fate, added), fate !== 'unreachable');
      },
    },
  };
}

function outcomeOf(fate: Fate, added: Pet): UpstreamOutcome<Pet> {
  switch (fate) {
    case 'ok':
      return { kind: 'ok', value: added };
    case '400':
      return { kind: 'invalid', error: { code: 'bad_request', message: 'not like this' } };
    case '401':
      return { kind: 'unauthenticated' };
    case '403':
      return { kind: 'forbidden' };
    case '429':
      return { kind: 'rate-limited' };
    case '500':
    case '500-stored':
      return { kind: 'failed', status: 500, code: undefined };
    case 'timeout':
    case 'timeout-stored':
      return { kind: 'no-answer', reason: 'timeout' };
    case 'reset':
    case 'reset-stored':
      return { kind: 'no-answer', reason: 'broken' };
    case 'unreachable':
      return { kind: 'no-answer', reason: 'unreachable' };
    case 'unreadable-stored':
      return { kind: 'unreadable', status: 201, problem: 'the body: expected JSON', foreign: true };
  }
}

function answer(outcome: UpstreamOutcome<Pet>, sent: boolean): UpstreamAnswer<Pet> {
  const retryAfterMs = outcome.kind === 'rate-limited' ? 1_000 : undefined;
  const headers = { limit: undefined, remaining: undefined, reset: undefined, retryAfterMs, dateMs: undefined };
  return { outcome, sent, rateLimit: outcome.kind === 'no-answer' ? undefined : headers };
}

/** One process of many, which may be killed at any moment: then nothing that it waits for ever comes. */
export interface SimulatedReplica {
  withKey(apiKey: string): Caller;
  readonly killed: boolean;
  kill(): void;
}

export function startReplica({ petApi }: SimulatedUpstream, submits: Submits): SimulatedReplica {
  let killed = false;
  const alive = <T>(promise: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      promise.then(
        (value) => killed || resolve(value),
        (error: unknown) => killed || reject(error as Error),
      );
    });
  const ask = <T>(call: () => Promise<T>): Promise<T> => alive(killed ? new Promise<T>(() => {}) : call());
  const { records } = submits;
  const mine: Records = {
    find: (name, input) => ask(() => records.find(name, input)),
    begin: (name, attempt) => ask(() => records.begin(name, attempt)),
    settle: (name, attempt, outcome) => ask(() => records.settle(name, attempt, outcome)),
    release: (name, attempt) => ask(() => records.release(name, attempt)),
    close: () => records.close(),
  };
  const callers = createCallers({
    petApi: { ...petApi, createPet: (pet, call) => ask(() => petApi.createPet(pet, call)) },
    ledger: createMemoryLedger({
      rules: { plan: { perMinute: 1_000, perDay: 100_000, known: true }, probeMs: 5_000 },
      now: () => Date.now(),
      log: silentLog,
      firstEver: true,
    }),
    upstreamClock: createUpstreamClock(systemClock),
    clock: systemClock,
    submits: { ...submits, records: mine },
  });
  return {
    withKey: (apiKey) => callers.withKey(apiKey),
    get killed() {
      return killed;
    },
    kill: () => {
      killed = true;
    },
  };
}

/** What a client is told, in a word; animals by their ids. */
export async function submit(
  caller: Caller,
  pet: NewPet,
  { key, waitMs = 10_000, signal }: { key?: string; waitMs?: number; signal?: AbortSignal } = {},
): Promise<string> {
  const freshness = { maxAgeMs: 0, maxStaleMs: 0, joinsSentMs: 0 };
  const deadlineMs = systemClock.elapsed() + waitMs;
  const life = { deadlineMs, signal: () => signal, freshness } as Parameters<Caller['pets']>[0];
  try {
    const created = await caller.pets(life).create(pet, key);
    return 'pet' in created ? `animal ${created.pet.id}` : created.refusal.code;
  } catch (error) {
    if (error instanceof PetqlError) return error.code;
    throw error;
  }
}

export function later(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
