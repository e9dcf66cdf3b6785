import type { CallerRequest } from '../common/caller-request.ts';
import type { NewPet, Pet } from '../pets/pet.ts';
import { petSnapshot } from '../pets/snapshot.ts';
import { graceLeftMs } from '../common/time-limit.ts';
import { readError } from '../upstream/upstream-errors.ts';
import { Idempotency } from './idempotency.ts';
import type { CreateOutcome, Created } from './create-outcome.ts';
import type { IdempotencySettings } from './idempotency.ts';
import { outcomeUnknownError } from './unknown-outcome.ts';
import { WriteCall } from './write-call.ts';
import type { Write, WriteParts } from './write-call.ts';

const MAY_BE_CREATED =
  'so the pet may have been created. Look for it before you create it again: lists show the first 100 pets only. To create it anyway, use a new idempotencyKey.';

/** The writes of one caller: what each operation makes of its outcome. */
export class Writes {
  readonly #parts: WriteParts;
  readonly #idempotency: Idempotency;
  /** Writes whose outcome is not known, or not stored. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(parts: WriteParts, idempotency: IdempotencySettings) {
    this.#parts = parts;
    this.#idempotency = new Idempotency(parts, idempotency);
  }

  get isBusy(): boolean {
    return this.#underWay.size > 0;
  }

  /**
   * Adds a pet. Rejects with a PetqlError; OUTCOME_UNKNOWN where the pet may have been added or not.
   *
   * @param key all creates with this idempotency key within a day are one.
   */
  async create(pet: NewPet, key: string | undefined, request: CallerRequest): Promise<Created> {
    const send = () => this.#create(pet, request);
    const outcome = await this.#run(request, () =>
      key === undefined ? send() : this.#idempotency.once(key, pet, request, send),
    );
    if ('unknown' in outcome) throw outcomeUnknownError(outcome.unknown.status, MAY_BE_CREATED);
    return outcome;
  }

  /** Settles once the outcome of every write that was sent is stored. */
  async close(): Promise<void> {
    this.#idempotency.close();
    await Promise.allSettled(this.#underWay);
  }

  /** Runs a write of any operation, in time and under the eyes of `isBusy` and `close`. */
  async #run<T>({ deadlineMs }: CallerRequest, write: () => Promise<T>): Promise<T> {
    const { clock, line } = this.#parts;
    // The writes of one operation run one after the other, and the first may have taken all the time.
    if (graceLeftMs(deadlineMs, clock) < 0) throw line.refusal('write', 'late').error();

    const writing = write();
    this.#underWay.add(writing);
    try {
      return await writing;
    } finally {
      this.#underWay.delete(writing);
    }
  }

  async #create(pet: NewPet, request: CallerRequest): Promise<CreateOutcome> {
    const { cache, quota } = this.#parts;
    const createPet: Write<Pet> = {
      operation: 'createPet',
      send: (petApi, call) => petApi.createPet(pet, call),
      snapshotOf: (added, sentAtMs) => petSnapshot(added.id, added, sentAtMs, cache),
    };
    const outcome = await new WriteCall(this.#parts, createPet, request).outcome();
    switch (outcome.kind) {
      case 'ok':
        return { pet: outcome.value };
      case 'invalid':
        return { refusal: outcome.error };
      case 'unknown':
        return { unknown: { status: outcome.status } };
      default:
        throw readError(outcome, createPet.operation, quota.ban);
    }
  }
}
