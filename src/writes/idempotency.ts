import { randomUUID } from 'node:crypto';
import type { CallerRequest } from '../common/caller-request.ts';
import { PetqlError, retryIn } from '../common/errors.ts';
import type { ErrorCode } from '../common/errors.ts';
import { setNewest } from '../common/memory.ts';
import type { NewPet } from '../pets/pet.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { SOON_MS, graceLeftMs, pause, waitAtMost } from '../common/time-limit.ts';
import { UNKNOWN_OUTCOME, inputOf } from './create-outcome.ts';
import type { CreateOutcome } from './create-outcome.ts';
import type { FoundRecord, IdempotencyRecords, Lease } from './records.ts';
import type { WriteParts } from './write-call.ts';
import { FIRST_RECORD_POLL_MS, MAX_RECORD_POLL_MS, STORING_MS } from '../common/call-times.ts';

/** What the creates of all callers share. */
export interface IdempotencySettings {
  /** It hashes API keys and inputs. */
  readonly records: IdempotencyRecords;
  /** How long a create may take from its permit to its stored outcome, in milliseconds. Its lease covers its wait too. */
  readonly sendingMs: number;
}

/** Idempotency keys that are remembered for a caller. */
const MAX_SEEN = 1_000;

const TOO_MANY_UNPROVEN =
  'Too many creates of API keys that the pet API has not accepted yet are under way; nothing was sent, so query pets with this key first.';
/** The upstream answers so where the create contradicts what it has: the pet may exist. */
const CONFLICT = 409;

/** Makes all creates of one caller with one idempotency key one create with one outcome, for a day. */
export class Idempotency {
  readonly #parts: WriteParts;
  readonly #settings: IdempotencySettings;
  /** The outcomes that this process has added or replayed, oldest first; refusals are not news. */
  readonly #seen = new Map<string, 'pet' | 'unknown'>();
  #isStopping = false;

  constructor(parts: WriteParts, settings: IdempotencySettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /**
   * Replays the stored outcome, waits for the create in flight, or else leases the key and sends. Rejects with a PetqlError,
   * after which nothing is stored of this create.
   *
   * @param send adds the pet; it rejects where that surely did not happen.
   */
  async once(
    key: string,
    pet: NewPet,
    request: CallerRequest,
    send: () => Promise<CreateOutcome>,
  ): Promise<CreateOutcome> {
    const name = `${this.#parts.quota.apiKey} ${key}`;
    for (let pollMs = FIRST_RECORD_POLL_MS; ; pollMs = Math.min(pollMs * 2, MAX_RECORD_POLL_MS)) {
      const lease = this.#newLease(pet, request);
      const found = await this.#lease(name, lease);
      if (!found) return this.#sendOnce(send, { key, name, lease });
      if (found === 'full') throw this.#retryableError('IDEMPOTENCY_UNAVAILABLE', TOO_MANY_UNPROVEN);

      if (!found.hasSameInput) throw otherInputError();
      if (found.outcome !== undefined) return this.#replay(key, found.outcome);
      // The process that had the lease is gone, and it may have sent the POST.
      if (found.leaseLeftMs === 0) return this.#replay(key, UNKNOWN_OUTCOME);
      await this.#wait(Math.min(pollMs, found.leaseLeftMs), request);
    }
  }

  /** Ends the waits for other creates. */
  close(): void {
    this.#isStopping = true;
  }

  #newLease(pet: NewPet, { deadlineMs }: CallerRequest): Lease {
    const waitMs = Math.max(0, graceLeftMs(deadlineMs, this.#parts.clock));
    return { id: randomUUID(), input: inputOf(pet), ms: Math.ceil(waitMs + this.#settings.sendingMs) };
  }

  /** Leases the key, or returns the record of another create. */
  async #lease(name: string, lease: Lease): Promise<FoundRecord | 'full' | undefined> {
    const { quota } = this.#parts;
    const { records } = this.#settings;
    // Another replica may know that the key is proven.
    if (!quota.isProven && !records.hasRoomForUnproven()) await quota.account.read();
    try {
      return await records.lease(name, lease, quota.isProven);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      if (error.mayBeWritten) void records.release(name, lease);
      throw this.#retryableError(
        'IDEMPOTENCY_UNAVAILABLE',
        'The idempotency store is unavailable, and nothing was sent.',
      );
    }
  }

  async #sendOnce(
    send: () => Promise<CreateOutcome>,
    { key, name, lease }: { readonly key: string; readonly name: string; readonly lease: Lease },
  ): Promise<CreateOutcome> {
    const { quota } = this.#parts;
    const { records } = this.#settings;
    try {
      const outcome = await send();
      const isProven = 'pet' in outcome || quota.isProven;
      if ('pet' in outcome) setNewest(this.#seen, [key, 'pet'], MAX_SEEN);
      const stored = records.storeOutcome(name, lease, outcome, isProven);
      await waitAtMost(stored, STORING_MS);
      return outcome;
    } catch (error) {
      // After any other error it may have been sent: the lease runs out into an unknown outcome.
      if (error instanceof PetqlError) await waitAtMost(this.#endRejected(error, name, lease), STORING_MS);
      throw error;
    }
  }

  /** Nothing was added: the key is free again, but after a 409 for the same input alone. */
  #endRejected({ details, message }: PetqlError, name: string, lease: Lease): Promise<void> {
    const { records } = this.#settings;
    const { status, code = 'conflict' } = (details['upstream'] ?? {}) as { status?: number; code?: string };
    if (status !== CONFLICT) return records.release(name, lease);
    return records.storeConflict(name, lease, { refusal: { code, message } }, this.#parts.quota.isProven);
  }

  /** The first replay of an outcome invalidates the cache, later ones do not: clients that repeat it must not empty it each time. */
  #replay(key: string, outcome: CreateOutcome): CreateOutcome {
    if ('refusal' in outcome) return outcome;
    const kind = 'pet' in outcome ? 'pet' : 'unknown';
    if (this.#seen.get(key) === kind) return outcome;

    setNewest(this.#seen, [key, kind], MAX_SEEN);
    const isCertain = kind === 'pet';
    void this.#parts.reads.invalidate({ isCertain, isShared: isCertain || this.#parts.quota.isProven });
    return outcome;
  }

  /** Rejects at the deadline, when the client has left, or when petql stops. */
  async #wait(forMs: number, { deadlineMs, signal }: CallerRequest): Promise<void> {
    const { clock, line } = this.#parts;
    if (this.#isStopping) throw line.refusal('write', 'stopping').error();
    if (signal()?.aborted) throw line.refusal('write', 'aborted').error();

    const leftMs = deadlineMs - clock.elapsed();
    if (leftMs <= 0) {
      const why = 'An earlier submit with this idempotencyKey is still in flight, and nothing was sent for this one.';
      throw this.#retryableError('OUTCOME_PENDING', why);
    }
    await pause(Math.min(forMs, leftMs));
  }

  #retryableError(code: ErrorCode, why: string): PetqlError {
    return new PetqlError(code, `${why} Retry with the same idempotencyKey.`, {
      details: retryIn(SOON_MS, this.#parts.clock.now()),
    });
  }
}

function otherInputError(): PetqlError {
  return new PetqlError(
    'BAD_USER_INPUT',
    'input.idempotencyKey: this key came with another input in the last 24 h, which may have added a pet. Use a new key for each pet.',
    { details: { argument: 'input.idempotencyKey' } },
  );
}
