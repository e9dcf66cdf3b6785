import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import { inTime, leftMs } from '../in-time.ts';
import { pause } from '../pause.ts';
import type { NewPet } from '../pet.ts';
import type { Attempt, Records } from '../store/records.ts';
import { StoreAway } from '../store/store-away.ts';
import { createBoundedWait } from './bounded-wait.ts';
import type { Patience } from './bounded-wait.ts';
import type { Claim } from './claim.ts';
import type { CreateOutcome, Created } from './created.ts';
import { outcomeUnknownError, refusedError } from './failure-errors.ts';
import { fullError, otherInputError, pendingError, unavailableError } from './idempotency-errors.ts';
import { keptOutcome, outcomeAgain } from './kept-outcome.ts';

/** Of one caller: makes all submits under one idempotency key one POST with one outcome, for a day. */
export interface Idempotency {
  /**
   * Gives the outcome that is kept, waits for the one that is under way, or else sends. Rejects with a PetqlError:
   * OUTCOME_UNKNOWN is an outcome like the others; after any other one nothing is kept of this submit.
   *
   * @param send uses the claim: it begins it before the POST, and settles or releases it after.
   */
  once(submit: Submit, send: (claim: Claim) => Promise<Created>): Promise<Created>;
  /** Ends the wait for others. */
  close(): void;
}

export interface Submit extends Patience {
  readonly key: string;
  readonly pet: NewPet;
}

/** Where submits are kept, for all callers. */
export interface Submits {
  /** They are given API keys and animals as they are, and keep neither so. */
  readonly records: Records;
  /** How long a POST can take, from its record to its answer, in milliseconds. */
  readonly leaseMs: number;
}

export interface IdempotencyOptions extends Submits {
  readonly apiKey: string;
  readonly clock: Clock;
  /** An animal may have been added elsewhere. */
  onForeign(): void;
}

/** A submit under way in this process. */
interface Running {
  readonly input: string;
  readonly ended: Promise<{ readonly created: Created } | { readonly error: unknown }>;
}

/** A submit under way in another process is looked after in this, then in twice this, and so on. */
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 200;
/** How long a store is asked again, from when it was away first. */
const PATIENCE_MS = 400;
const BETWEEN_TRIES_MS = 50;
/** Outcomes that this process is remembered to have made or given. */
const MOST_FAMILIAR = 1_000;
/** These are about the request that got them, and no answer to another one. */
const OF_ONE_REQUEST: ReadonlySet<string> = new Set(['OUTCOME_PENDING', 'RATE_LIMITED']);
const LATE = Symbol('late');

/** Made once: an error holds what was under way where it was made, and each caller's would hold its first request. */
const TAKEN = new Error('another submit began meanwhile');

export function createIdempotency(options: IdempotencyOptions): Idempotency {
  const { apiKey, records, leaseMs, clock, onForeign } = options;
  const running = new Map<string, Running>();
  // Every caller has one, and most never create anything: a cache that takes its room beforehand would be most of a caller.
  const familiar = new Set<string>();
  let awaySinceMs: number | undefined;
  const waiting = createBoundedWait(clock, {
    deadline: () => pendingError(clock.now()),
    aborted: () => givenUp('aborted'),
    stopping: () => givenUp('stopping'),
  });

  return {
    async once(submit, send) {
      const { name, categoryId, status = null } = submit.pet;
      const input = JSON.stringify([name, categoryId, status]);
      for (;;) {
        const other = running.get(submit.key);
        if (!other) return lead(submit, input, send);
        if (other.input !== input) throw otherInputError();
        const end = await waiting.until(other.ended, submit);
        if ('created' in end) return end.created;
        if (!(end.error instanceof PetqlError && OF_ONE_REQUEST.has(end.error.code))) throw end.error;
      }
    },
    close: () => waiting.close(),
  };

  /** For all in this process that submit the same meanwhile. */
  function lead(submit: Submit, input: string, send: (claim: Claim) => Promise<Created>): Promise<Created> {
    const leading = decide(submit, input, send).finally(() => running.delete(submit.key));
    const ended = leading.then(
      (created) => ({ created }),
      (error: unknown) => ({ error }),
    );
    running.set(submit.key, { input, ended });
    return leading;
  }

  async function decide(submit: Submit, input: string, send: (claim: Claim) => Promise<Created>): Promise<Created> {
    try {
      // What it is called in the store may change while it is under way; here it has one name.
      return await sendOnce(`${apiKey} ${submit.key}`, input, { submit, send });
    } catch (error) {
      throw error instanceof StoreAway ? unavailableError(clock.now()) : error;
    }
  }

  async function sendOnce(
    name: string,
    input: string,
    { submit, send }: { submit: Submit; send: (claim: Claim) => Promise<Created> },
  ): Promise<Created> {
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LONGEST_POLL_MS)) {
      const kept = await patiently(submit, () => records.find(name, input));
      awaySinceMs = undefined;
      if (kept && !kept.isSame) throw otherInputError();
      if (kept?.outcome !== undefined) return given(name, outcomeAgain(kept.outcome, submit.pet));
      // Whoever began it is gone, and nobody else knows whether it was sent.
      if (kept?.openForMs === 0) return given(name, { unknown: {} });
      if (kept) await waiting.until(pause(Math.min(pollMs, kept.openForMs)), submit);
      else {
        try {
          return await send(claim(name, input, submit.pet));
        } catch (error) {
          if (error !== TAKEN) throw error;
        }
      }
    }
  }

  /** No longer than the submit has. */
  async function patiently<T>({ deadlineMs }: Submit, ask: () => Promise<T>): Promise<T> {
    const answer = await inTime(insistently(ask), leftMs(deadlineMs, clock), LATE);
    if (answer === LATE) throw givenUp('late');
    return answer;
  }

  /** A store that is away for a moment, as at the start of a process, costs nobody a refusal. */
  async function insistently<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof StoreAway)) throw error;
        awaySinceMs ??= clock.elapsed();
        if (clock.elapsed() >= awaySinceMs + PATIENCE_MS) throw error;
      }
      await pause(BETWEEN_TRIES_MS);
    }
  }

  /** Each begin is an attempt of its own, so that what was late for one cannot undo another. */
  function claim(name: string, input: string, pet: NewPet): Claim {
    let attempt: Attempt = { id: '', input, leaseMs };
    return {
      async begin() {
        attempt = { ...attempt, id: randomUUID() };
        try {
          const begun = await records.begin(name, attempt);
          if (begun.kind === 'begun') return undefined;
          return begun.kind === 'taken' ? TAKEN : fullError(begun.freeInMs, clock.now());
        } catch (error) {
          // It may have been written all the same.
          void records.release(name, attempt);
          return error as Error;
        }
      },
      async settle(outcome) {
        remember(name);
        await records.settle(name, attempt, keptOutcome(outcome, pet));
      },
      release: () => records.release(name, attempt),
    };
  }

  function given(name: string, outcome: CreateOutcome): Created {
    if (!('refusal' in outcome) && !familiar.has(name)) {
      remember(name);
      onForeign();
    }
    if ('unknown' in outcome) throw outcomeUnknownError(outcome.unknown.status);
    return outcome;
  }

  function remember(name: string): void {
    familiar.add(name);
    const [oldest] = familiar;
    if (familiar.size > MOST_FAMILIAR && oldest !== undefined) familiar.delete(oldest);
  }

  function givenUp(reason: 'aborted' | 'late' | 'stopping'): PetqlError {
    return refusedError({ kind: 'refused', reason, retryAfterMs: 1_000, window: 'MINUTE' }, clock.now());
  }
}
