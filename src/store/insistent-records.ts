import type { Attempt, Records } from './records.ts';
import { StoreAway } from './store-away.ts';

/** A store that is back is told of what came of things meanwhile after this, at most. */
const TRY_AGAIN_MS = 250;
/** Unwritten ones at most; of one that is dropped, the store will tell that nobody knows what came of it. */
const MOST_UNWRITTEN = 10_000;

interface Unwritten {
  readonly attempt: Attempt;
  /** Undefined where it is to be forgotten. */
  readonly outcome: string | undefined;
}

/**
 * Records whose `settle` and `release` never reject: what the store does not take at once is known here all the same,
 * and is written as soon as the store takes it.
 */
export function createInsistentRecords(records: Records): Records {
  const unwritten = new Map<string, Unwritten>();
  let writing: NodeJS.Timeout | undefined;

  return {
    async find(name) {
      const { attempt, outcome } = unwritten.get(name) ?? {};
      if (attempt && outcome !== undefined) return { input: attempt.input, outcome, openForMs: 0 };
      if (attempt) await write(name);
      return records.find(name);
    },
    async begin(name, attempt) {
      if (unwritten.has(name)) await write(name);
      return records.begin(name, attempt);
    },
    settle: (name, attempt, outcome) => keep(name, { attempt, outcome }),
    release: (name, attempt) => keep(name, { attempt, outcome: undefined }),
    async close() {
      clearTimeout(writing);
      await writeAll();
      clearTimeout(writing);
      await records.close();
    },
  };

  async function keep(name: string, one: Unwritten): Promise<void> {
    unwritten.set(name, one);
    try {
      await write(name);
    } catch (error) {
      if (!(error instanceof StoreAway)) throw error;
      const [oldest = name] = unwritten.keys();
      if (unwritten.size > MOST_UNWRITTEN) unwritten.delete(oldest);
      writeLater();
    }
  }

  async function write(name: string): Promise<void> {
    const one = unwritten.get(name);
    if (!one) return;
    const { attempt, outcome } = one;
    await (outcome === undefined ? records.release(name, attempt) : records.settle(name, attempt, outcome));
    if (unwritten.get(name) === one) unwritten.delete(name);
  }

  function writeLater(): void {
    writing ??= setTimeout(() => {
      writing = undefined;
      void writeAll();
    }, TRY_AGAIN_MS).unref();
  }

  /** In their order, up to the first that the store does not take. */
  async function writeAll(): Promise<void> {
    try {
      for (const name of unwritten.keys()) await write(name);
    } catch {
      writeLater();
    }
  }
}
