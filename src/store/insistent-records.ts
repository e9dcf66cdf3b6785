import type { Attempt, Records } from './records.ts';
import { StoreAway } from './store-away.ts';

/** A store that is back is told of what came of things meanwhile after this, at most. */
const TRY_AGAIN_MS = 250;
/** Unwritten ones at most; of one that is dropped, the store will tell that nobody knows what came of it. */
const MOST_UNWRITTEN = 10_000;

interface Unwritten {
  readonly name: string;
  readonly attempt: Attempt;
  /** Undefined where it is to be forgotten. */
  readonly outcome: string | undefined;
}

/**
 * Records whose `settle` and `release` never reject: what the store does not take at once is known here all the same,
 * and is written as soon as the store takes it.
 */
export function createInsistentRecords(records: Records): Records {
  /**
   * By name, each in its order: what came of one attempt says nothing of an earlier one, which the store may still hold. No
   * list is empty.
   */
  const unwritten = new Map<string, Unwritten[]>();
  let count = 0;
  let writing: NodeJS.Timeout | undefined;
  let closed = false;

  return {
    async find(name) {
      const settled = unwritten.get(name)?.find(({ outcome }) => outcome !== undefined);
      if (settled?.outcome !== undefined) {
        return { input: settled.attempt.input, outcome: settled.outcome, openForMs: 0 };
      }
      await write(name);
      return records.find(name);
    },
    async begin(name, attempt) {
      await write(name);
      return records.begin(name, attempt);
    },
    settle: (name, attempt, outcome) => keep({ name, attempt, outcome }),
    release: (name, attempt) => keep({ name, attempt, outcome: undefined }),
    async close() {
      closed = true;
      clearTimeout(writing);
      await writeAll();
      await records.close();
    },
  };

  async function keep(one: Unwritten): Promise<void> {
    const { name } = one;
    const others = unwritten.get(name);
    if (others) others.push(one);
    else unwritten.set(name, [one]);
    count += 1;
    try {
      await write(name);
    } catch (error) {
      if (!(error instanceof StoreAway)) throw error;
      const [[oldest] = []] = unwritten.values();
      if (oldest && count > MOST_UNWRITTEN) drop(oldest);
      writeLater();
    }
  }

  async function write(name: string): Promise<void> {
    for (let one = unwritten.get(name)?.[0]; one; one = unwritten.get(name)?.[0]) {
      const { attempt, outcome } = one;
      await (outcome === undefined ? records.release(name, attempt) : records.settle(name, attempt, outcome));
      drop(one);
    }
  }

  /** Somebody else may have written it meanwhile, and dropped it. */
  function drop(one: Unwritten): void {
    const all = unwritten.get(one.name) ?? [];
    const others = all.filter((other) => other !== one);
    count -= all.length - others.length;
    if (others.length > 0) unwritten.set(one.name, others);
    else unwritten.delete(one.name);
  }

  function writeLater(): void {
    if (closed) return;
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
