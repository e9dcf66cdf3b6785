import { randomUUID } from 'node:crypto';
import { PetqlError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { inTime, graceLeftMs, pause } from '../time-limit.ts';
import type { NewPet, Pet } from '../pet.ts';
import type { Attempt, Kept, Records } from './records.ts';
import type { Clock } from '../clock.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { WireError } from '../upstream/wire.ts';

/** The pet that was added, or what the upstream finds wrong with it. */
export type Created = { readonly pet: Pet } | { readonly refusal: WireError };

/** The outcome of a create that was sent. */
export type CreateOutcome =
  | Created
  /** No clear response; with the status of the one that there was. */
  | { readonly unknown: { readonly status?: number | undefined } };

interface IdempotencyOptions {
  readonly apiKey: string;
  readonly clock: Clock;
  readonly throttle: Pick<Throttle, 'refusal'>;
}

interface Submit extends Pick<RequestTerms, 'deadlineMs' | 'signal'> {
  readonly key: string;
  readonly pet: NewPet;
}

export interface SubmitRecords {
  /** It hashes API keys and inputs. */
  readonly records: Records;
  /** How long a POST can take, from its permit to its stored outcome, in milliseconds. */
  readonly leaseMs: number;
}

/** A submit in flight is polled after this, then after twice this, and so on. */
const FIRST_POLL_MS = 20;
const MAX_POLL_MS = 100;
/** How long a response waits until its outcome is stored. */
const STORING_MS = 500;
/** A retry before this finds nothing changed. */
const RETRY_AFTER_MS = 1_000;
/** Idempotency keys that are remembered for a caller. */
const MAX_SEEN = 1_000;

/**
 * Makes all submits of one caller with one idempotency key one creation with one outcome, for a day.
 *
 * @param onNews is called when an outcome is replayed that may be news to this process: another one may have added a pet.
 */
export function createIdempotency(
  { records, leaseMs }: SubmitRecords,
  { apiKey, clock, throttle }: IdempotencyOptions,
  onNews: () => void,
) {
  /** The keys of pets that this process has made or replayed, oldest first. */
  const seen = new Set<string>();
  let isStopping = false;

  return {
    /**
     * Replays the stored outcome, waits for the submit in flight, or else leases the key and sends. Rejects with a PetqlError,
     * after which nothing is stored of this submit.
     *
     * @param send creates the pet; it rejects where that surely did not happen.
     */
    async once(submit: Submit, send: () => Promise<CreateOutcome>): Promise<CreateOutcome> {
      const { key, pet, deadlineMs } = submit;
      const { name, categoryId, status = null } = pet;
      const record = `${apiKey} ${key}`;
      const input = JSON.stringify([name, categoryId, status]);
      for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, MAX_POLL_MS)) {
        const waitMs = Math.max(0, graceLeftMs(deadlineMs, clock));
        const lease: Attempt = { id: randomUUID(), input, leaseMs: Math.ceil(waitMs + leaseMs) };
        const kept = await begin(record, lease);
        if (!kept) return perform({ key, record, lease }, send);
        if (!kept.isSame) {
          throw new PetqlError(
            'BAD_USER_INPUT',
            'input.idempotencyKey: this key came with another input in the last 24 h. Use a new key for each pet.',
            { details: { argument: 'input.idempotencyKey' } },
          );
        }
        if (kept.outcome !== undefined) return replay(key, JSON.parse(kept.outcome) as CreateOutcome);
        // The process that had the lease is gone, and it may have sent the POST.
        if (kept.openForMs === 0) return replay(key, { unknown: {} });
        await wait(Math.min(pollMs, kept.openForMs), submit);
      }
    },
    /** Ends the wait for other submits. */
    close() {
      isStopping = true;
    },
  };

  /** Leases the key, or returns the record of another submit. */
  async function begin(record: string, lease: Attempt): Promise<Kept | undefined> {
    try {
      return await records.begin(record, lease);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      // The store may have written it nevertheless.
      void records.release(record, lease);
      throw retryableError('IDEMPOTENCY_UNAVAILABLE', 'The idempotency store is unavailable, and nothing was sent.');
    }
  }

  async function perform(
    { key, record, lease }: { readonly key: string; readonly record: string; readonly lease: Attempt },
    send: () => Promise<CreateOutcome>,
  ): Promise<CreateOutcome> {
    try {
      const outcome = await send();
      if ('pet' in outcome) remember(key);
      await inTime(records.settle(record, lease, JSON.stringify(outcome)), STORING_MS);
      return outcome;
    } catch (error) {
      // After any other error it may have been sent: the lease runs out into an unknown outcome.
      if (error instanceof PetqlError) await inTime(records.release(record, lease), STORING_MS);
      throw error;
    }
  }

  function replay(key: string, outcome: CreateOutcome): CreateOutcome {
    // A pet whose outcome is unknown may be added at any time.
    if ('unknown' in outcome || ('pet' in outcome && !seen.has(key))) onNews();
    if ('pet' in outcome) remember(key);
    return outcome;
  }

  function remember(key: string): void {
    seen.add(key);
    const [oldest] = seen;
    if (oldest !== undefined && seen.size > MAX_SEEN) seen.delete(oldest);
  }

  /** Rejects at the deadline, when the client has left, or when petql stops. */
  async function wait(forMs: number, { deadlineMs, signal }: Submit): Promise<void> {
    const reason = isStopping ? 'stopping' : signal()?.aborted ? 'aborted' : undefined;
    if (reason) throw throttle.refusal(reason).error();
    const leftMs = deadlineMs - clock.elapsed();
    if (leftMs <= 0) {
      const why = 'An earlier submit with this idempotencyKey is still in flight, and nothing was sent for this one.';
      throw retryableError('OUTCOME_PENDING', why);
    }
    await pause(Math.min(forMs, leftMs));
  }

  function retryableError(code: ErrorCode, why: string): PetqlError {
    const retryAt = new Date(clock.now() + RETRY_AFTER_MS).toISOString();
    return new PetqlError(code, `${why} Retry with the same idempotencyKey.`, {
      details: { retryAfterMs: RETRY_AFTER_MS, retryAt },
    });
  }
}
