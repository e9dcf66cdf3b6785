import { inTime } from '../time-limit.ts';
import type { NameOf } from './key-secret.ts';
import { StoreUnavailableError } from './store.ts';
import type { Change, Changed, Store } from './store.ts';

/**
 * Idempotency records: the input that was submitted under a name, and its outcome, for a day. The store gets names and inputs
 * as hashes only.
 *
 * `find` and `begin` reject with StoreUnavailableError. `settle` and `release` never do: what the store does not take stays in
 * memory, where `find` sees it, and is written once the store is available.
 */
export interface Records {
  /**
   * @param name an API key, a space and the idempotency key.
   * @param input the input that is submitted now.
   */
  find(name: string, input: string): Promise<Kept | undefined>;
  /** Writes that an attempt begins, if there is no record of the name. */
  begin(name: string, attempt: Attempt): Promise<Begun>;
  /** Writes the outcome, also where the store lost the record, and never over another attempt. */
  settle(name: string, attempt: Attempt, outcome: string): Promise<void>;
  /** Deletes the attempt's record. */
  release(name: string, attempt: Attempt): Promise<void>;
  /** Writes what is unwritten, for at most a second. The store stays open. */
  close(): Promise<void>;
}

export interface Attempt {
  /** Unique among all attempts. */
  readonly id: string;
  /** The submitted input. */
  readonly input: string;
  /** In milliseconds. After this the process has settled or released it, or has ended. */
  readonly leaseMs: number;
}

export interface Kept {
  /** Whether the first input was the same. */
  readonly isSame: boolean;
  /** Undefined while it is not known. */
  readonly outcome: string | undefined;
  /** How long an outcome may still be written, in milliseconds; 0 once the process that began it has ended. */
  readonly openForMs: number;
}

export type Begun =
  | { readonly kind: 'begun' }
  /** The name has a record. */
  | { readonly kind: 'taken' }
  /** There are `maxRecords` records. */
  | { readonly kind: 'full'; readonly freeInMs: number };

export interface RecordsOptions {
  readonly store: Store;
  readonly nameOf: NameOf;
  /** Max records that this process begins in a day. Default: no limit. */
  readonly maxRecords?: number;
}

/** A document. */
interface StoredRecord {
  readonly id: string;
  readonly input: string;
  readonly outcome?: string;
  readonly openUntilMs: number;
  readonly endsAtMs: number;
}

export const RECORDS_LIVE_MS = 86_400_000;
const RETRY_MS = 250;
/** Records with unwritten changes, of less than a kilobyte each. */
const MAX_UNWRITTEN = 10_000;
const WRITTEN_AT_A_TIME = 100;
const CLOSE_TIMEOUT_MS = 1_000;

export function createRecords({ store, nameOf, maxRecords = Infinity }: RecordsOptions): Records {
  /** By document, the settlements and releases that the store has not taken, in order. */
  const unwritten = new Map<string, Change<void>[]>();
  let retry: NodeJS.Timeout | undefined;
  let isClosed = false;
  /** When the records that this process began expire, oldest first. */
  const expiries: number[] = [];

  return {
    async find(name, input) {
      const [document, hashedInput] = await hashesOf(name, input);
      const text = unwrittenText(document);
      const change = findChange(hashedInput);
      return text === undefined ? update(document, change) : change(text, store.nowMs()).result;
    },
    async begin(name, { id, input, leaseMs }) {
      const [document, hashedInput] = await hashesOf(name, input);
      const begun = await update(document, beginChange(id, hashedInput, leaseMs));
      if (begun.kind === 'begun') expiries.push(store.nowMs() + RECORDS_LIVE_MS);
      return begun;
    },
    settle: (name, { id, input }, outcome) => end(name, input, (hashedInput) => endChange(id, hashedInput, outcome)),
    async release(name, { id, input }) {
      expiries.pop();
      await end(name, input, (hashedInput) => endChange(id, hashedInput, undefined));
    },
    async close() {
      isClosed = true;
      clearTimeout(retry);
      await inTime(writeAll(), CLOSE_TIMEOUT_MS, undefined);
    },
  };

  /** Hashes for each step: after a loss of data, processes may agree on another secret during an attempt. */
  async function hashesOf(name: string, input: string): Promise<[document: string, input: string]> {
    // API keys have no spaces.
    const apiKey = name.slice(0, name.indexOf(' '));
    const [caller, record, hashedInput] = await Promise.all(
      [apiKey, name, `${name} ${input}`].map(async (text) => nameOf(text)),
    );
    return [`record:${caller}:${record}`, hashedInput ?? ''];
  }

  /** Returns the record that the unwritten changes make where the store has none. */
  function unwrittenText(document: string): string | undefined {
    const changes = unwritten.get(document);
    return changes && inOrder(changes)(undefined, store.nowMs()).text;
  }

  function beginChange(id: string, input: string, leaseMs: number): Change<Begun> {
    return (found, nowMs) => {
      if (found !== undefined) return unchanged(found, { kind: 'taken' });
      while (expiries[0] !== undefined && expiries[0] <= nowMs) expiries.shift();
      if (expiries.length >= maxRecords) {
        return unchanged(found, { kind: 'full', freeInMs: (expiries[0] ?? nowMs) - nowMs });
      }
      const record = { id, input, openUntilMs: nowMs + leaseMs, endsAtMs: nowMs + RECORDS_LIVE_MS };
      return changedTo(record, nowMs, { kind: 'begun' });
    };
  }

  /** Writes now, or later where the store does not take it. */
  async function end(name: string, input: string, changeOf: (hashedInput: string) => Change<void>): Promise<void> {
    try {
      const [document, hashedInput] = await hashesOf(name, input);
      unwritten.set(document, [...(unwritten.get(document) ?? []), changeOf(hashedInput)]);
      await writeLate(document);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      const [oldest] = unwritten.keys();
      // A retry of that create is OUTCOME_UNKNOWN.
      if (unwritten.size > MAX_UNWRITTEN && oldest !== undefined) unwritten.delete(oldest);
      retryLater();
    }
  }

  /** Updates a document after its unwritten changes. */
  async function update<Result>(document: string, change: Change<Result>): Promise<Result> {
    await writeLate(document);
    return store.update(document, change);
  }

  /** Two calls at once may write a change twice; the second time it does nothing. */
  async function writeLate(document: string): Promise<void> {
    const changes = unwritten.get(document);
    if (!changes) return;
    await store.update(document, inOrder(changes));
    const rest = (unwritten.get(document) ?? []).filter((change) => !changes.includes(change));
    if (rest.length > 0) unwritten.set(document, rest);
    else unwritten.delete(document);
  }

  function retryLater(): void {
    if (isClosed) return;
    retry ??= setTimeout(() => {
      retry = undefined;
      void writeAll();
    }, RETRY_MS).unref();
  }

  /** Stops at the first failure. */
  async function writeAll(): Promise<void> {
    const documents = [...unwritten.keys()];
    try {
      for (let first = 0; first < documents.length; first += WRITTEN_AT_A_TIME) {
        const some = documents.slice(first, first + WRITTEN_AT_A_TIME);
        await Promise.all(some.map(writeLate));
      }
    } catch {
      retryLater();
    }
  }
}

function findChange(input: string): Change<Kept | undefined> {
  return (found, nowMs) => {
    if (found === undefined) return unchanged(found, undefined);
    const { outcome, openUntilMs, ...record } = JSON.parse(found) as StoredRecord;
    return unchanged(found, { isSame: record.input === input, outcome, openForMs: Math.max(0, openUntilMs - nowMs) });
  };
}

/** @param outcome undefined deletes the record. */
function endChange(id: string, input: string, outcome: string | undefined): Change<void> {
  return (found, nowMs) => {
    const record = found === undefined ? undefined : (JSON.parse(found) as StoredRecord);
    if (record && record.id !== id) return nothing(found);
    if (outcome === undefined) return nothing(undefined);
    const endsAtMs = record?.endsAtMs ?? nowMs + RECORDS_LIVE_MS;
    return changedTo({ id, input, outcome, openUntilMs: 0, endsAtMs }, nowMs, undefined);
  };
}

/** Makes one change of several. */
function inOrder(changes: readonly Change<void>[]): Change<void> {
  return (found, nowMs) =>
    changes.reduce((changed, change) => {
      const next = change(changed.text, nowMs);
      return next.text === changed.text ? changed : next;
    }, nothing(found));
}

function nothing(found: string | undefined): Changed<void> {
  return unchanged(found, undefined);
}

function unchanged<Result>(text: string | undefined, result: Result): Changed<Result> {
  return { text, ttlMs: 0, result };
}

function changedTo<Result>(record: StoredRecord, nowMs: number, result: Result): Changed<Result> {
  return { text: JSON.stringify(record), ttlMs: record.endsAtMs - nowMs, result };
}
