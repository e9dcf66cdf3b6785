import { z } from 'zod';
import type { Log } from '../common/log.ts';
import { waitAtMost, pause } from '../common/time-limit.ts';
import type { NameOf } from '../store/names.ts';
import { createDocumentReader } from '../store/read-document.ts';
import type { ReadDocument } from '../store/read-document.ts';
import type { Change, Changed, Store } from '../store/store.ts';
import { UnprovenDocuments } from '../store/unproven-documents.ts';
import { CREATE_OUTCOME, UNKNOWN_OUTCOME } from './create-outcome.ts';
import type { CreateOutcome } from './create-outcome.ts';
import { STORING_OUTCOMES_MS } from '../common/times.ts';
import { MAX_STORING_MS, RECORDS_LIVE_MS, STORE_AGAIN_MS } from '../common/call-times.ts';

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
  /** Names the lease. */
  id: z.string(),
  /** The hash of the input. */
  input: z.string(),
  /** A CreateOutcome as JSON. */
  outcome: z.string().optional(),
  /** After a 409 the pet may exist: the same input may be sent again with the name, and no other. */
  isConflict: z.boolean().optional(),
  openUntilMs: z.number(),
  endsAtMs: z.number(),
});
type StoredRecord = z.infer<typeof RECORD>;

/** It stays through upgrades, so that no retry creates a pet again: a test holds it to the format. */
const RECORD_NAME = 'record:2';
/** The `openUntilMs` of a record whose create has ended. */
const ENDED = 0;
/** Stored records of keys that are not proven, for each process. Each takes less than a kilobyte of Redis. */
const MAX_UNPROVEN = 1_000;

/** What this version cannot read may guard a create that was sent: nothing is sent, and nobody knows what came of it. */
const UNREADABLE: FoundRecord = { hasSameInput: true, outcome: UNKNOWN_OUTCOME, leaseLeftMs: 0 };

/** The document of a record, and what tells its lease from others. */
interface RecordName {
  readonly document: string;
  readonly id: string;
  /** The hash of the input. */
  readonly input: string;
}

/** What a record says once its create has ended. */
type RecordEnd = Pick<StoredRecord, 'isConflict' | 'outcome'>;

/**
 * Idempotency records: the input of a create under a name, and its outcome, for a day. A name is an API key, a space and the
 * idempotency key; the store gets names and inputs as hashes only.
 */
export class IdempotencyRecords {
  readonly #store: Store;
  readonly #nameOf: NameOf;
  readonly #read: ReadDocument<StoredRecord>;
  readonly #readOutcome: ReadDocument<CreateOutcome>;
  /** The leases under way of keys that are not proven, by their ids. */
  readonly #unprovenLeases = new UnprovenDocuments();
  /** What is stored for keys that are not proven, by the ids of their leases, oldest first. */
  readonly #unproven = new Map<string, RecordName>();
  /** Outcomes and releases that are being written. */
  readonly #writing = new Set<Promise<void>>();
  #isStopping = false;

  constructor(store: Store, nameOf: NameOf, log: Log) {
    this.#store = store;
    this.#nameOf = nameOf;
    this.#read = createDocumentReader('idempotency record', RECORD, store, log);
    this.#readOutcome = createDocumentReader('outcome of a create', CREATE_OUTCOME, store, log);
  }

  /** Whether there is room for another lease of an API key that is not proven: clients can make up keys. */
  hasRoomForUnproven(): boolean {
    return this.#unprovenLeases.hasRoom(this.#store.nowMs());
  }

  /** Keeps the records of an API key for their whole day, now that the upstream has accepted it. */
  recordProven(apiKey: string): void {
    if (this.#unproven.size === 0) return;
    const prefix = this.#prefixOf(apiKey);
    for (const [id, { document }] of this.#unproven) if (document.startsWith(prefix)) this.#unproven.delete(id);
  }

  /**
   * Stores a lease, or returns the record that there is of the name. Returns `full` where nothing is sent, since too many creates of
   * keys that are not proven are under way.
   *
   * @throws StoreUnavailableError
   */
  async lease(name: string, lease: Lease, isProven: boolean): Promise<FoundRecord | 'full' | undefined> {
    const record = this.#recordName(name, lease);
    const nowMs = this.#store.nowMs();
    const hasRoom = isProven || this.#unprovenLeases.add(lease.id, nowMs + RECORDS_LIVE_MS, nowMs);
    const found = await this.#store.update(record.document, this.#leaseChange(record, lease.ms, hasRoom));
    if (found !== undefined) this.#unprovenLeases.delete(lease.id);
    return found;
  }

  /**
   * Stores the outcome as soon as the store is available, also where the store lost the record, and never over another lease.
   */
  storeOutcome(name: string, lease: Lease, outcome: CreateOutcome, isProven: boolean): Promise<void> {
    return this.#storeEnd(this.#recordName(name, lease), { outcome: JSON.stringify(outcome) }, isProven);
  }

  /** Stores that a create met a 409. Versions before 0.4 read the outcome alone. */
  storeConflict(name: string, lease: Lease, outcome: CreateOutcome, isProven: boolean): Promise<void> {
    return this.#storeEnd(
      this.#recordName(name, lease),
      { outcome: JSON.stringify(outcome), isConflict: true },
      isProven,
    );
  }

  /** Deletes the record of the lease. */
  release(name: string, lease: Lease): Promise<void> {
    return this.#end(this.#recordName(name, lease), undefined, lease.ms);
  }

  /** Waits for the writes under way, for at most a second. The store stays open. */
  async close(): Promise<void> {
    this.#isStopping = true;
    await waitAtMost(Promise.all(this.#writing), STORING_OUTCOMES_MS);
  }

  #storeEnd(record: RecordName, end: RecordEnd, isProven: boolean): Promise<void> {
    if (!isProven) this.#keepUnproven(record);
    return this.#end(record, end, MAX_STORING_MS);
  }

  /** Drops the oldest record of such keys: they have a room of their own, so those of valid keys are never dropped. */
  #keepUnproven(record: RecordName): void {
    for (const [id, oldest] of this.#unproven) {
      if (this.#unproven.size < MAX_UNPROVEN) break;
      this.#unproven.delete(id);
      void this.#end(oldest, undefined, 0);
    }
    this.#unproven.set(record.id, record);
  }

  #end(record: RecordName, end: RecordEnd | undefined, tryForMs: number): Promise<void> {
    const writing = this.#write(record, end, tryForMs).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    return writing;
  }

  async #write(record: RecordName, end: RecordEnd | undefined, tryForMs: number): Promise<void> {
    for (let leftMs = tryForMs; ; leftMs -= STORE_AGAIN_MS) {
      try {
        await this.#store.update(record.document, this.#endChange(record, end));
        break;
      } catch {
        // The store may be available later.
      }
      if (this.#isStopping || leftMs <= 0) return;
      await pause(STORE_AGAIN_MS);
    }
    this.#unprovenLeases.delete(record.id);
  }

  #prefixOf(apiKey: string): string {
    return `${RECORD_NAME}:${this.#nameOf(apiKey)}:`;
  }

  #recordName(name: string, { id, input }: Lease): RecordName {
    // API keys have no spaces.
    const apiKey = name.slice(0, name.indexOf(' '));
    return { document: this.#prefixOf(apiKey) + this.#nameOf(name), id, input: this.#nameOf(`${name} ${input}`) };
  }

  #leaseChange({ id, input }: RecordName, ms: number, hasRoom: boolean): Change<FoundRecord | 'full' | undefined> {
    return (found, nowMs) => {
      const record = this.#read(found);
      if (record && !this.#mayFollow(record, input)) return unchanged(found, this.#foundRecord(record, input, nowMs));
      if (!record && found !== undefined) return unchanged(found, UNREADABLE);
      if (!hasRoom) return unchanged(found, 'full');
      const isConflict = record?.isConflict && { isConflict: true };
      return changedTo({ id, input, ...isConflict, openUntilMs: nowMs + ms, endsAtMs: nowMs + RECORDS_LIVE_MS }, nowMs);
    };
  }

  /** Whether a create with this input may be sent with the name of a record: surely nothing was added for it. */
  #mayFollow({ input, outcome, isConflict = false, openUntilMs }: StoredRecord, wanted: string): boolean {
    if (openUntilMs !== ENDED) return false;
    if (isConflict) return input === wanted;
    const stored = outcome === undefined ? undefined : this.#readOutcome(outcome);
    return stored !== undefined && 'refusal' in stored && input !== wanted;
  }

  #foundRecord({ input, outcome, openUntilMs }: StoredRecord, wanted: string, nowMs: number): FoundRecord {
    return {
      hasSameInput: input === wanted,
      outcome: outcome === undefined ? undefined : (this.#readOutcome(outcome) ?? UNKNOWN_OUTCOME),
      leaseLeftMs: Math.max(0, openUntilMs - nowMs),
    };
  }

  /** @param end undefined deletes the record. */
  #endChange({ id, input }: RecordName, end: RecordEnd | undefined): Change<void> {
    return (found, nowMs) => {
      const record = this.#read(found);
      const isOther = found !== undefined && record?.id !== id;
      if (isOther) return unchanged(found, undefined);
      // A try that added nothing leaves the conflict of an earlier one.
      const left = end ?? (record?.isConflict ? { isConflict: true } : undefined);
      if (!left) return unchanged(undefined, undefined);
      const endsAtMs = record?.endsAtMs ?? nowMs + RECORDS_LIVE_MS;
      return changedTo({ id, input, ...left, openUntilMs: ENDED, endsAtMs }, nowMs);
    };
  }
}

function unchanged<Result>(text: string | undefined, result: Result): Changed<Result> {
  return { text, ttlMs: 0, result };
}

function changedTo(record: StoredRecord, nowMs: number): Changed<undefined> {
  return { text: JSON.stringify(record), ttlMs: record.endsAtMs - nowMs, result: undefined };
}
