import type { Clock } from '../clock.ts';
import type { NewPet, Pet } from '../pet.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { PetApi, UpstreamAnswer } from '../upstream/pet-api.ts';
import { UNSHARED } from './claim.ts';
import type { Claim } from './claim.ts';
import type { Created } from './created.ts';
import { animalFact } from './fact.ts';
import { mayHaveHappened, refusedError, writeError } from './failure-errors.ts';
import type { Idempotency } from './idempotency.ts';
import type { Reads } from './reads.ts';
import type { RefusedKey } from './refused-key.ts';

/** The writes of one caller. They go before its reads, and none that may have happened is sent again. */
export interface Writes {
  /** Rejects with a PetqlError; OUTCOME_UNKNOWN where the animal may have been added or not. */
  create(pet: NewPet, turn: WriteTurn): Promise<Created>;
  /** Settles once what came of every creation that was sent is written down. */
  close(): Promise<void>;
}

export interface WriteTurn {
  /** By `clock.elapsed()`: it is not sent later than this. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** Makes it one creation with all that are submitted under the same key within a day. */
  readonly idempotencyKey: string | undefined;
  /** A call was sent. */
  charge(): void;
  /** A call is about to be sent. */
  sending?(): void;
  /** Its turn in the plan has come; or it was refused one, with the code of its error. */
  waited?(waitedMs: number, refused?: string): void;
}

export interface WritesOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly throttle: Throttle;
  readonly reads: Reads;
  readonly refusedKey: RefusedKey;
  readonly idempotency: Idempotency;
  readonly clock: Clock;
  /** A call was sent. */
  onCall(): void;
}

/** After a connection that was never made, the next try waits so long; after the last of these there is none. */
const PAUSES_MS = [100, 300, 1_000];

export function createWrites(options: WritesOptions): Writes {
  const { apiKey, petApi, throttle, reads, refusedKey, idempotency, clock, onCall } = options;
  const underWay = new Set<Promise<unknown>>();
  return {
    create(pet, turn) {
      const key = turn.idempotencyKey;
      const creating =
        key === undefined
          ? post(pet, turn, UNSHARED)
          : idempotency.once({ ...turn, key, pet }, (claim) => post(pet, turn, claim));
      const end: Promise<unknown> = creating.then(
        () => underWay.delete(end),
        () => underWay.delete(end),
      );
      underWay.add(end);
      return creating;
    },
    async close() {
      idempotency.close();
      await Promise.all(underWay);
    },
  };

  /** Once more after what surely did not happen: a 429, and a connection that was never made. */
  async function post(pet: NewPet, turn: WriteTurn, claim: Claim): Promise<Created> {
    const { deadlineMs, signal } = turn;
    const pauses = PAUSES_MS.values();
    for (;;) {
      const askedAtMs = clock.elapsed();
      let stopped: Error | undefined;
      const claimAndSend = async () => {
        turn.waited?.(clock.elapsed() - askedAtMs);
        stopped = await claim.begin();
        return stopped ? NOTHING_SENT : send(pet, turn);
      };
      // Another call may have found out meanwhile that the upstream does not take this key.
      const mayBeSent = () => refusedKey.remainingMs() === 0;
      const passage = await throttle.pass({ kind: 'write', deadlineMs, signal }, () =>
        mayBeSent() ? claimAndSend() : undefined,
      );
      if (passage.kind === 'refused') {
        const error = refusedError(passage, clock.now());
        turn.waited?.(clock.elapsed() - askedAtMs, error.code);
        throw error;
      }
      if (passage.kind === 'unused') throw refusedKey.error();
      if (stopped) throw stopped;
      const { outcome, sent } = passage.answer;
      if (outcome.kind === 'ok') return settled(claim, { pet: outcome.value });
      if (outcome.kind === 'invalid') return settled(claim, { refusal: outcome.error });
      const error = writeError(outcome, sent, throttle.standing()?.refusedLately ?? false);
      if (mayHaveHappened(outcome, sent)) {
        await claim.settle({ unknown: 'status' in outcome ? { status: outcome.status } : {} });
        throw error;
      }
      await claim.release();
      if (outcome.kind === 'rate-limited') continue;
      const pauseMs = sent ? Infinity : (pauses.next().value ?? Infinity);
      if (clock.elapsed() + pauseMs > deadlineMs) throw error;
      await pause(pauseMs);
    }
  }

  async function send(pet: NewPet, turn: WriteTurn): Promise<UpstreamAnswer<Pet>> {
    const sentAtMs = clock.elapsed();
    turn.sending?.();
    const answer = await petApi.createPet(pet, { apiKey });
    const { outcome, sent } = answer;
    if (sent) {
      turn.charge();
      onCall();
    }
    if (outcome.kind === 'unauthenticated') refusedKey.refuse();
    else if (answer.rateLimit) refusedKey.accept();
    if (outcome.kind === 'ok') await reads.wrote(animalFact(outcome.value.id, outcome.value, sentAtMs));
    else if (mayHaveHappened(outcome, sent)) await reads.wrote(undefined);
    return answer;
  }
}

const NOTHING_SENT: UpstreamAnswer<Pet> = {
  outcome: { kind: 'no-answer', reason: 'aborted' },
  sent: false,
  rateLimit: undefined,
};

async function settled(claim: Claim, created: Created): Promise<Created> {
  await claim.settle(created);
  return created;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
