import type { Clock } from '../clock.ts';
import { inTime, leftMs } from '../in-time.ts';
import { pause } from '../pause.ts';
import type { NewPet, Pet } from '../pet.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { PetApi, UpstreamAnswer } from '../upstream/pet-api.ts';
import { UNSHARED } from './claim.ts';
import type { Claim } from './claim.ts';
import type { Created, CreateOutcome } from './created.ts';
import { animalFact } from './fact.ts';
import { mayHaveHappened, refusedError, writeError } from './failure-errors.ts';
import type { Idempotency } from './idempotency.ts';
import type { CallerReads } from './reads.ts';
import type { RefusedKey } from './refused-key.ts';

/** The writes of one caller. They go before its reads, and none that may have happened is sent again. */
export interface Writes {
  /** Rejects with a PetqlError; OUTCOME_UNKNOWN where the animal may have been added or not. */
  create(pet: NewPet, turn: WriteTurn): Promise<Created>;
  /** Whether any creation is not over. */
  isBusy(): boolean;
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
  readonly reads: Pick<CallerReads, 'wrote'>;
  readonly refusedKey: RefusedKey;
  readonly idempotency: Idempotency;
  readonly clock: Clock;
  /** A call was sent. */
  onCall(): void;
}

/** After a connection that was never made, the next try waits so long; after the last of these there is none. */
const PAUSES_MS = [100, 300, 1_000];
/** What came of a call is told the other replicas and written down before it is answered, unless that takes longer. */
const TELLING_MS = 500;

export function createWrites(options: WritesOptions): Writes {
  const { apiKey, petApi, throttle, reads, refusedKey, idempotency, clock, onCall } = options;
  const underWay = new Set<Promise<unknown>>();
  return {
    create(pet, turn) {
      const key = turn.idempotencyKey;
      // Those of one operation go one after the other, and the calls of the first may have taken all its time.
      if (leftMs(turn.deadlineMs, clock) < 0) return Promise.reject(lateError());
      const creating =
        key === undefined
          ? post(pet, turn, UNSHARED)
          : idempotency.once({ ...turn, key, pet }, (claim) => post(pet, turn, claim));
      track(creating);
      return creating;
    },
    isBusy: () => underWay.size > 0,
    async close() {
      idempotency.close();
      await Promise.all(underWay);
    },
  };

  function track(promise: Promise<unknown>): void {
    const end: Promise<unknown> = promise.then(
      () => underWay.delete(end),
      () => underWay.delete(end),
    );
    underWay.add(end);
  }

  /** Once more after what surely did not happen: a 429, and a connection that was never made. */
  async function post(pet: NewPet, turn: WriteTurn, claim: Claim): Promise<Created> {
    const { deadlineMs, signal } = turn;
    const pauses = PAUSES_MS.values();
    for (;;) {
      const askedAtMs = clock.elapsed();
      let stopped: Error | undefined;
      let told: Promise<void> | undefined;
      const claimAndSend = async () => {
        turn.waited?.(clock.elapsed() - askedAtMs);
        stopped = await begin(claim, deadlineMs);
        if (stopped) return NOTHING_SENT;
        const sentAtMs = clock.elapsed();
        const answer = await send(pet, turn);
        told = tell(answer, sentAtMs);
        return answer;
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
      if (outcome.kind === 'ok') return settled(claim, { pet: outcome.value }, told);
      if (outcome.kind === 'invalid') return settled(claim, { refusal: outcome.error }, told);
      const error = writeError(outcome, sent, throttle.standing()?.refusedLately ?? false);
      if (mayHaveHappened(outcome, sent)) {
        await settled(claim, { unknown: 'status' in outcome ? { status: outcome.status } : {} }, told);
        throw error;
      }
      await inTime(claim.release(), leftMs(deadlineMs, clock), undefined);
      if (outcome.kind === 'rate-limited') continue;
      const pauseMs = sent ? Infinity : (pauses.next().value ?? Infinity);
      if (clock.elapsed() + pauseMs > deadlineMs) throw error;
      await pause(pauseMs);
    }
  }

  /** Where the store takes too long to write it down, nothing is sent, and it is undone once it is written. */
  async function begin(claim: Claim, deadlineMs: number): Promise<Error | undefined> {
    const beginning = claim.begin();
    const stopped = await inTime(beginning, leftMs(deadlineMs, clock), LATE);
    if (stopped !== LATE) return stopped;
    track(beginning.then((failed) => (failed ? undefined : claim.release())));
    return lateError();
  }

  async function send(pet: NewPet, turn: WriteTurn): Promise<UpstreamAnswer<Pet>> {
    turn.sending?.();
    const answer = await petApi.createPet(pet, { apiKey });
    const { outcome, sent } = answer;
    if (sent) {
      turn.charge();
      onCall();
    }
    if (outcome.kind === 'unauthenticated') refusedKey.refuse();
    else if (answer.rateLimit) refusedKey.accept();
    return answer;
  }

  /** Whatever follows here knows of it at once; settles when the other replicas do. */
  async function tell({ outcome, sent }: UpstreamAnswer<Pet>, sentAtMs: number): Promise<void> {
    if (outcome.kind === 'ok') await reads.wrote(animalFact(outcome.value.id, outcome.value, sentAtMs));
    else if (mayHaveHappened(outcome, sent)) await reads.wrote(undefined);
  }

  async function settled<Outcome extends CreateOutcome>(
    claim: Claim,
    outcome: Outcome,
    told: Promise<void> | undefined,
  ): Promise<Outcome> {
    const telling = Promise.all([told, claim.settle(outcome)]);
    track(telling);
    await inTime(telling, TELLING_MS, undefined);
    return outcome;
  }

  function lateError(): Error {
    return refusedError({ ...throttle.outlook(0).refused, reason: 'late' }, clock.now());
  }
}

const LATE = Symbol('late');
const NOTHING_SENT: UpstreamAnswer<Pet> = {
  outcome: { kind: 'no-answer', reason: 'unreachable' },
  sent: false,
  rateLimit: undefined,
};
