import { randomUUID } from 'node:crypto';
import { PetqlError } from '../errors.ts';
import { inTime, graceLeftMs, pause } from '../time-limit.ts';
import type { NewPet, Pet } from '../pet.ts';
import type { Attempt, Records } from '../store/records.ts';
import type { CallerParts } from '../reads/caller-parts.ts';
import type { RequestTerms } from '../reads/pending-reads.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { refusedError } from '../throttle/refused-error.ts';
import type { CreateOutcome } from './create-pet.ts';
import { otherInputError, pendingError, unavailableError } from './idempotency-errors.ts';

export interface Submit extends Pick<RequestTerms, 'deadlineMs' | 'signal'> {
  readonly key: string;
  readonly pet: NewPet;
}

export interface SubmitRecords {
  /** They are given API keys and pets as they are, and store neither so. */
  readonly records: Records;
  /** How long a POST can take, from its permit to its stored outcome, in milliseconds. */
  readonly leaseMs: number;
}

/** A submit in flight in this process, for all that submit the same meanwhile. */
interface Running {
  readonly input: string;
  readonly outcome: Promise<CreateOutcome>;
}

/** A submit in flight in another process is polled after this, then after twice this, and so on. */
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 200;
/** How long an unavailable store is retried: it is unavailable for a moment when a process starts. */
const RETRY_STORE_MS = 400;
const RETRY_STORE_EVERY_MS = 50;
/** How long a response waits until its outcome is stored. */
const STORING_MS = 500;
/** Errors of one request, which are no answer to another one. */
const OF_ONE_REQUEST: ReadonlySet<string> = new Set(['OUTCOME_PENDING', 'RATE_LIMITED']);
const LATE = Symbol('late');

/**
 * Makes all submits of one caller with one idempotency key one creation with one outcome, for a day.
 *
 * @param onReplay is called when an outcome is replayed: another process may have added a pet.
 */
export function createIdempotency(
  { records, leaseMs }: SubmitRecords,
  { apiKey, clock }: Pick<CallerParts, 'apiKey' | 'clock'>,
  onReplay: () => void,
) {
  const running = new Map<string, Running>();
  const stopping = new AbortController();

  return {
    /**
     * Replays the stored outcome, waits for the submit in flight, or else leases the key and sends. Rejects with a PetqlError,
     * after which nothing is stored of this submit.
     *
     * @param send creates the pet; it rejects where that surely did not happen.
     */
    async once(submit: Submit, send: () => Promise<CreateOutcome>): Promise<CreateOutcome> {
      const { name, categoryId, status = null } = submit.pet;
      const input = JSON.stringify([name, categoryId, status]);
      for (;;) {
        const other = running.get(submit.key);
        if (!other) return lead(submit, input, send);
        if (other.input !== input) throw otherInputError();
        const [end] = await whileWaiting(Promise.allSettled([other.outcome]), submit);
        if (end.status === 'fulfilled') return end.value;
        if (!(end.reason instanceof PetqlError && OF_ONE_REQUEST.has(end.reason.code))) throw end.reason;
      }
    },
    /** Ends the wait for other submits. */
    close: () => stopping.abort(),
  };

  function lead(submit: Submit, input: string, send: () => Promise<CreateOutcome>): Promise<CreateOutcome> {
    const outcome = submitOnce(submit, input, send).finally(() => running.delete(submit.key));
    running.set(submit.key, { input, outcome });
    return outcome;
  }

  async function submitOnce(submit: Submit, input: string, send: () => Promise<CreateOutcome>): Promise<CreateOutcome> {
    const record = `${apiKey} ${submit.key}`;
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, MAX_POLL_MS)) {
      const kept = await inStore(submit, () => records.find(record, input));
      if (kept && !kept.isSame) throw otherInputError();
      if (kept?.outcome !== undefined) return replay(JSON.parse(kept.outcome) as StoredOutcome, submit.pet);
      // The process that had the lease is gone, and it may have sent the POST.
      if (kept?.openForMs === 0) return replay({ unknown: {} }, submit.pet);
      if (kept) {
        await whileWaiting(pause(Math.min(pollMs, kept.openForMs)), submit);
        continue;
      }
      const waitMs = Math.max(0, graceLeftMs(submit.deadlineMs, clock));
      const lease: Attempt = { id: randomUUID(), input, leaseMs: Math.ceil(waitMs + leaseMs) };
      if (await acquire(record, lease, submit)) return perform(record, lease, { submit, send });
    }
  }

  /** Whether the lease is acquired; false where another submit was sooner. */
  async function acquire(record: string, lease: Attempt, submit: Submit): Promise<boolean> {
    try {
      const begun = await inTime(records.begin(record, lease), graceLeftMs(submit.deadlineMs, clock), LATE);
      if (begun === LATE) throw endedError('late');
      return begun;
    } catch (error) {
      // The store may have written it nevertheless.
      void records.release(record, lease);
      throw error instanceof StoreUnavailableError ? unavailableError(clock.now()) : error;
    }
  }

  async function perform(
    record: string,
    lease: Attempt,
    { submit, send }: { submit: Submit; send: () => Promise<CreateOutcome> },
  ): Promise<CreateOutcome> {
    try {
      const outcome = await send();
      await inTime(records.settle(record, lease, JSON.stringify(stored(outcome, submit.pet))), STORING_MS, undefined);
      return outcome;
    } catch (error) {
      // After any other error it may have been sent: the lease runs out into an unknown outcome.
      if (error instanceof PetqlError) {
        await inTime(records.release(record, lease), graceLeftMs(submit.deadlineMs, clock), undefined);
      }
      throw error;
    }
  }

  function replay(outcome: StoredOutcome, submitted: NewPet): CreateOutcome {
    if (!('refusal' in outcome)) onReplay();
    return 'pet' in outcome ? { pet: { name: submitted.name, ...outcome.pet } } : outcome;
  }

  /** Retries an unavailable store for a moment, and no longer than the submit may wait. */
  async function inStore<T>({ deadlineMs }: Submit, ask: () => Promise<T>): Promise<T> {
    for (const untilMs = clock.elapsed() + RETRY_STORE_MS; ;) {
      try {
        const answer = await inTime(ask(), graceLeftMs(deadlineMs, clock), LATE);
        if (answer === LATE) throw endedError('late');
        return answer;
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        if (clock.elapsed() >= Math.min(untilMs, deadlineMs)) throw unavailableError(clock.now());
      }
      await pause(RETRY_STORE_EVERY_MS);
    }
  }

  /** Rejects at the deadline, when the client has left, or when petql stops. */
  function whileWaiting<T>(promise: Promise<T>, { deadlineMs, ...request }: Submit): Promise<T> {
    const signal = request.signal?.();
    const ended = AbortSignal.any(signal ? [signal, stopping.signal] : [stopping.signal]);
    return new Promise((resolve, reject) => {
      const onEnd = () => reject(endedError(signal?.aborted ? 'aborted' : 'stopping'));
      const timer = setTimeout(() => reject(pendingError(clock.now())), Math.max(0, deadlineMs - clock.elapsed()));
      ended.addEventListener('abort', onEnd, { once: true });
      if (ended.aborted) onEnd();
      promise.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        ended.removeEventListener('abort', onEnd);
      });
    });
  }

  function endedError(reason: 'aborted' | 'late' | 'stopping'): PetqlError {
    return refusedError({ reason, retryAfterMs: 1_000, window: 'MINUTE' }, { nowMs: clock.now() });
  }
}

/** An outcome as it is stored: without the pet's name where that is the submitted one. */
type StoredOutcome =
  | Exclude<CreateOutcome, { readonly pet: Pet }>
  | { readonly pet: Omit<Pet, 'name'> & { readonly name?: string } };

function stored(outcome: CreateOutcome, submitted: NewPet): StoredOutcome {
  if (!('pet' in outcome)) return outcome;
  const { name, ...pet } = outcome.pet;
  return name === submitted.name ? { pet } : outcome;
}
