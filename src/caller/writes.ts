import type { Clock } from '../clock.ts';
import type { NewPet, Pet } from '../pet.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import type { WireError } from '../upstream/wire.ts';
import { animalFact } from './fact.ts';
import { mayHaveHappened, refusedError, writeError } from './failure-errors.ts';
import type { Reads } from './reads.ts';
import type { RefusedKey } from './refused-key.ts';

/** The animal that was added, or what the upstream finds wrong with it. */
export type Created = { readonly pet: Pet } | { readonly refusal: WireError };

/** The writes of one caller. They go before its reads, and none is ever sent twice. */
export interface Writes {
  /** Rejects with a PetqlError; OUTCOME_UNKNOWN where the animal may have been added or not. */
  create(pet: NewPet, turn: WriteTurn): Promise<Created>;
}

export interface WriteTurn {
  /** By `clock.elapsed()`: it is not sent later than this. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** A call is sent. */
  charge(): void;
}

export interface WritesOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly throttle: Throttle;
  readonly reads: Reads;
  readonly refusedKey: RefusedKey;
  readonly clock: Clock;
  /** A call is sent. */
  onCall(): void;
}

export function createWrites({ apiKey, petApi, throttle, reads, refusedKey, clock, onCall }: WritesOptions): Writes {
  return {
    async create(pet, turn) {
      // Once more after a 429: the upstream refused that one, so it did not happen.
      for (;;) {
        const passage = await throttle.pass({ kind: 'write', deadlineMs: turn.deadlineMs, signal: turn.signal }, () => {
          // Another call may have found out meanwhile that the upstream does not take this key.
          if (refusedKey.remainingMs() > 0) return undefined;
          turn.charge();
          onCall();
          return send(pet);
        });
        if (passage.kind === 'refused') throw refusedError(passage, clock.now());
        if (passage.kind === 'unused') throw refusedKey.error();
        const { outcome, sent } = passage.answer;
        if (outcome.kind === 'ok') return { pet: outcome.value };
        if (outcome.kind === 'invalid') return { refusal: outcome.error };
        if (outcome.kind !== 'rate-limited')
          throw writeError(outcome, sent, throttle.standing()?.refusedLately ?? false);
      }
    },
  };

  async function send(pet: NewPet) {
    const sentAtMs = clock.elapsed();
    const answer = await petApi.createPet(pet, { apiKey });
    const { outcome } = answer;
    if (outcome.kind === 'unauthenticated') refusedKey.refuse();
    else if (answer.rateLimit) refusedKey.accept();
    if (outcome.kind === 'ok') await reads.wrote(animalFact(outcome.value.id, outcome.value, sentAtMs));
    else if (mayHaveHappened(outcome, answer.sent)) await reads.wrote(undefined);
    return answer;
  }
}
