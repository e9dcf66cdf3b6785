import { z } from 'zod';
import type { Log } from '../log.ts';
import { DAY_MS } from '../plan.ts';
import { waitAtMost, pause } from '../time-limit.ts';
import type { NameOf } from '../store/names.ts';
import { createDocumentReader } from '../store/read-document.ts';
import type { ReadDocument } from '../store/read-document.ts';
import type { Change, Changed, Store } from '../store/store.ts';
import { UnprovenDocuments } from '../store/unproven-documents.ts';
import { CREATE_OUTCOME, UNKNOWN_OUTCOME } from './create-outcome.ts';
import type { CreateOutcome } from './create-outcome.ts';

/** The right to send the one create of an idempotency key. */
export interface Lease {
  /** Unique among all leases. */
  readonly id: string;
  /** The input of the create. */
  readonly input: string;
  /** How long it holds, in milliseconds: after this the process has stored the outcome, or was killed. */
  readonly ms: number;
}

/** The record of another create with the same name. */
export interface FoundRecord {
  readonly hasSameInput: boolean;
  /** Undefined while it is not known. */
  readonly outcome: CreateOutcome | undefined;
  /** How long an outcome may still be stored, in milliseconds; 0 once the process with the lease was killed. */
  readonly leaseLeftMs: number;
}

export const RECORD = z.object({
  /** Of the lease. */
  id: z.string(),
  /** The hash of the input. */
  input: z.string(),
  /** A CreateOutcome as JSON. */
  outcome: z.string().optional(),
  openUntilMs: z.number(),
  endsAtMs: z.number(),
});
type StoredRecord = z.infer<typeof RECORD>;

/** It stays through upgrades, so that no retry creates a pet again: a test holds it to the format. */
const NAME = 'record:2';
const RECORDS_LIVE_MS = DAY_MS;
const RETRY_MS = 250;
/** How long petql tries to store an outcome while the store is unavailable. */
const MAX_STORING_MS = 600_000;
const CLOSE_TIMEOUT_MS = 1_000;

/** What this version cannot read may guard a create that was sent: nothing is sent, and nobody knows what came of it. */
const UNREADABLE: FoundRecord = { hasSameInput: true, outcome: UNKNOWN_OUTCOME, leaseLeftMs: 0 };

/**
 * Idempotency records: the input of a create under a name, and its outcome, for a day. A name is an API key, a space and the
 * idempotency key; the store gets names and inputs as hashes only.
 */
export class IdempotencyRecords {
  readonly #store: Store;
  readonly #nameOf: NameOf;
  readonly #read: ReadDocument<StoredRecord>;
  readonly #readOutcome: ReadDocument<CreateOutcome>;
  /** By the ids of their leases: the records of keys that were not proven when their creates ended. */
  readonly #unproven = new UnprovenDocuments();
  /** Outcomes and releases that are being written. */
  readonly #writing = new Set<Promise<void>>();
  #isClosed = false;

  constructor(store: Store, nameOf: NameOf, log: Log) {
    this.#store = store;
    this.#nameOf = nameOf;
    this.#read = createDocumentReader('idempotency record', RECORD, store, log);
    this.#readOutcome = createDocumentReader('outcome of a create', CREATE_OUTCOME, store, log);
  }

  /** Whether there is room for the record of an API key that is not proven: clients can make up keys. */
  hasRoomForUnproven(): boolean {
    return this.#unproven.hasRoom(this.#store.nowMs());
  }

  /**
   * Stores a lease, or returns the record that there is of the name. Returns `full` where there is no record of the name, and no
   * room for one of a key that is not proven: a record that guards a create is never dropped for another.
   *
   * @throws StoreUnavailableError
   */
  async lease(name: string, lease: Lease, isProven: boolean): Promise<FoundRecord | 'full' | undefined> {
    const [document, input] = this.#hashesOf(name, lease.input);
    const nowMs = this.#store.nowMs();
    const hasRoom = isProven || this.#unproven.add(lease.id, nowMs + RECORDS_LIVE_MS, nowMs);
    const found = await this.#store.update(document, this.#leaseChange(lease, input, hasRoom));
    if (found !== undefined) this.#unproven.delete(lease.id);
    return found;
  }

  /**
   * Stores the outcome as soon as the store is available, also where the store lost the record, and never over another lease.
   */
  storeOutcome(name: string, lease: Lease, outcome: CreateOutcome, isProven: boolean): Promise<void> {
    if (isProven) this.#unproven.delete(lease.id);
    return this.#end(name, lease, JSON.stringify(outcome));
  }

  /** Deletes the record of the lease. */
  release(name: string, lease: Lease): Promise<void> {
    return this.#end(name, lease, undefined);
  }

  /** Waits for the writes under way, for at most a second. The store stays open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await waitAtMost(Promise.all(this.#writing), CLOSE_TIMEOUT_MS);
  }

  #end(name: string, lease: Lease, outcome: string | undefined): Promise<void> {
    const writing = this.#write(name, lease, outcome).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    return writing;
  }

  async #write(name: string, { id, input, ms }: Lease, outcome: string | undefined): Promise<void> {
    const [document, hashedInput] = this.#hashesOf(name, input);
    let leftMs = outcome === undefined ? ms : MAX_STORING_MS;
    for (; ; leftMs -= RETRY_MS) {
      try {
        await this.#store.update(document, this.#endChange(id, hashedInput, outcome));
        if (outcome === undefined) this.#unproven.delete(id);
        return;
      } catch {
        // The store may be available later.
      }
      if (this.#isClosed || leftMs <= 0) return;
      await pause(RETRY_MS);
    }
  }

  #hashesOf(name: string, input: string): [document: string, input: string] {
    // API keys have no spaces.
    const apiKey = name.slice(0, name.indexOf(' '));
    return [`${NAME}:${this.#nameOf(apiKey)}:${this.#nameOf(name)}`, this.#nameOf(`${name} ${input}`)];
  }

  #leaseChange({ id, ms }: Lease, input: string, hasRoom: boolean): Change<FoundRecord | 'full' | undefined> {
    return (found, nowMs) => {
      const record = this.#read(found);
      if (record) return unchanged(found, this.#foundRecord(record, input, nowMs));
      if (found !== undefined) return unchanged(found, UNREADABLE);
      if (!hasRoom) return unchanged(found, 'full');
      return changedTo({ id, input, openUntilMs: nowMs + ms, endsAtMs: nowMs + RECORDS_LIVE_MS }, nowMs);
    };
  }

  #foundRecord({ input, outcome, openUntilMs }: StoredRecord, wanted: string, nowMs: number): FoundRecord {
    return {
      hasSameInput: input === wanted,
      outcome: outcome === undefined ? undefined : (this.#readOutcome(outcome) ?? UNKNOWN_OUTCOME),
      leaseLeftMs: Math.max(0, openUntilMs - nowMs),
    };
  }

  /** @param outcome undefined deletes the record. */
  #endChange(id: string, input: string, outcome: string | undefined): Change<void> {
    return (found, nowMs) => {
      const record = this.#read(found);
      const isOther = found !== undefined && record?.id !== id;
      if (isOther) return unchanged(found, undefined);
      if (outcome === undefined) return unchanged(undefined, undefined);
      const endsAtMs = record?.endsAtMs ?? nowMs + RECORDS_LIVE_MS;
      return changedTo({ id, input, outcome, openUntilMs: 0, endsAtMs }, nowMs);
    };
  }
}

function unchanged<Result>(text: string | undefined, result: Result): Changed<Result> {
  return { text, ttlMs: 0, result };
}

function changedTo(record: StoredRecord, nowMs: number): Changed<undefined> {
  return { text: JSON.stringify(record), ttlMs: record.endsAtMs - nowMs, result: undefined };
}
