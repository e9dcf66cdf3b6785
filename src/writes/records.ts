import { z } from 'zod';
import type { Log } from '../log.ts';
import { inTime, pause } from '../time-limit.ts';
import type { NameOf } from '../store/names.ts';
import { createDocumentReader } from '../store/read-document.ts';
import type { ReadDocument } from '../store/read-document.ts';
import type { Change, Changed, Store } from '../store/store.ts';

export interface Attempt {
  /** Unique among all attempts. */
  readonly id: string;
  /** The submitted input. */
  readonly input: string;
  /** In milliseconds. After this the process has ended the attempt, or was killed. */
  readonly leaseMs: number;
}

export interface Kept {
  /** Whether the stored input equals this one. */
  readonly isSame: boolean;
  /** Undefined while it is not known. */
  readonly outcome: string | undefined;
  /** How long an outcome may still be written, in milliseconds; 0 once the process that began it was killed. */
  readonly openForMs: number;
}

const RECORD = z.object({
  /** Of the attempt. */
  id: z.string(),
  /** The hash of the input. */
  input: z.string(),
  outcome: z.string().optional(),
  openUntilMs: z.number(),
  endsAtMs: z.number(),
});
type StoredRecord = z.infer<typeof RECORD>;

/** The version in a document's name is raised with its format. */
const NAME = 'record:2';
const RECORDS_LIVE_MS = 86_400_000;
const RETRY_MS = 250;
/** How long an outcome is written again and again while the store is unavailable. */
const MAX_SETTLING_MS = 600_000;
const CLOSE_TIMEOUT_MS = 1_000;

export type Records = ReturnType<typeof createRecords>;

/**
 * Idempotency records: the input that was submitted under a name, and its outcome, for a day. A name is an API key, a space and
 * the idempotency key; the store gets names and inputs as hashes only.
 */
export function createRecords(store: Store, nameOf: NameOf, log: Log) {
  const read = createDocumentReader('idempotency record', RECORD, store, log);
  const ending = new Set<Promise<void>>();
  let isClosed = false;

  return {
    /**
     * Writes that an attempt begins, or returns the record that there is of the name.
     *
     * @throws StoreUnavailableError
     */
    async begin(name: string, attempt: Attempt): Promise<Kept | undefined> {
      const [document, input] = hashesOf(name, attempt.input);
      return store.update(document, beginChange(attempt, input, read));
    },
    /** Writes the outcome once the store takes it, also where the store lost the record, and never over another attempt. */
    settle: (name: string, attempt: Attempt, outcome: string) =>
      end(name, attempt, { outcome, forMs: MAX_SETTLING_MS }),
    /** Deletes the attempt's record. */
    release: (name: string, attempt: Attempt) => end(name, attempt, { forMs: attempt.leaseMs }),
    /** Waits for what is not written yet, for at most a second. The store stays open. */
    async close() {
      isClosed = true;
      await inTime(Promise.all(ending), CLOSE_TIMEOUT_MS);
    },
  };

  function end(name: string, attempt: Attempt, result: { readonly outcome?: string; readonly forMs: number }) {
    const ended = endInStore(name, attempt, result).finally(() => ending.delete(ended));
    ending.add(ended);
    return ended;
  }

  async function endInStore(
    name: string,
    { id, input }: Attempt,
    { outcome, forMs }: { readonly outcome?: string; readonly forMs: number },
  ): Promise<void> {
    const [document, hashedInput] = hashesOf(name, input);
    for (let leftMs = forMs; ; leftMs -= RETRY_MS) {
      try {
        return await store.update(document, endChange(id, hashedInput, outcome, read));
      } catch {
        // The store may be available later.
      }
      if (isClosed || leftMs <= 0) return;
      await pause(RETRY_MS);
    }
  }

  function hashesOf(name: string, input: string): [document: string, input: string] {
    // API keys have no spaces.
    const apiKey = name.slice(0, name.indexOf(' '));
    return [`${NAME}:${nameOf(apiKey)}:${nameOf(name)}`, nameOf(`${name} ${input}`)];
  }
}

function beginChange(
  { id, leaseMs }: Attempt,
  input: string,
  read: ReadDocument<StoredRecord>,
): Change<Kept | undefined> {
  return (found, nowMs) => {
    const record = read(found);
    if (!record) {
      return changedTo({ id, input, openUntilMs: nowMs + leaseMs, endsAtMs: nowMs + RECORDS_LIVE_MS }, nowMs);
    }
    const openForMs = Math.max(0, record.openUntilMs - nowMs);
    return unchanged(found, { isSame: record.input === input, outcome: record.outcome, openForMs });
  };
}

/** @param outcome undefined deletes the record. */
function endChange(
  id: string,
  input: string,
  outcome: string | undefined,
  read: ReadDocument<StoredRecord>,
): Change<void> {
  return (found, nowMs) => {
    const record = read(found);
    if (record && record.id !== id) return unchanged(found, undefined);
    if (outcome === undefined) return unchanged(undefined, undefined);
    const endsAtMs = record?.endsAtMs ?? nowMs + RECORDS_LIVE_MS;
    return changedTo({ id, input, outcome, openUntilMs: 0, endsAtMs }, nowMs);
  };
}

function unchanged<Result>(text: string | undefined, result: Result): Changed<Result> {
  return { text, ttlMs: 0, result };
}

function changedTo(record: StoredRecord, nowMs: number): Changed<undefined> {
  return { text: JSON.stringify(record), ttlMs: record.endsAtMs - nowMs, result: undefined };
}
