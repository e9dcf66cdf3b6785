import { inTime } from '../in-time.ts';
import type { Attempt, Records } from './records.ts';
import { StoreAway } from './store-away.ts';

/** A store that is back is told of what came of things meanwhile after this, at most. */
const TRY_AGAIN_MS = 250;
/** Unwritten ones at most; of one that is dropped, the store will tell that nobody knows what came of it. */
const MOST_UNWRITTEN = 10_000;
/** What is kept of them in memory at most, some 60 MB: an animal's name may be as long as a request. */
const MOST_CHARACTERS = 30_000_000;
const WRITING_AT_A_TIME = 100;
/**
 * For how long, at most, whoever closes them waits until all is written: where the store is slow, what was spent is to be
 * written too before the process is killed.
 */
const FAREWELL_MS = 1_000;

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
  /** By name, what is being written of it: one after the other, whoever asks. */
  const underWay = new Map<string, Promise<void>>();
  let count = 0;
  let characters = 0;
  let writing: NodeJS.Timeout | undefined;
  let closed = false;

  return {
    async find(name, input) {
      const settled = unwritten.get(name)?.find(({ outcome }) => outcome !== undefined);
      if (settled?.outcome !== undefined) {
        return { isSame: settled.attempt.input === input, outcome: settled.outcome, openForMs: 0 };
      }
      await write(name);
      return records.find(name, input);
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
      await inTime(writeAll(), FAREWELL_MS, undefined);
      await records.close();
    },
  };

  async function keep(one: Unwritten): Promise<void> {
    const { name } = one;
    const others = unwritten.get(name);
    if (others) others.push(one);
    else unwritten.set(name, [one]);
    count += 1;
    characters += lengthOf(one);
    try {
      await write(name);
    } catch (error) {
      if (!(error instanceof StoreAway)) throw error;
      makeRoom();
      writeLater();
    }
  }

  async function write(name: string): Promise<void> {
    if (!unwritten.has(name)) return;
    const ending = underWay.get(name) ?? writeInOrder(name);
    underWay.set(name, ending);
    await ending;
  }

  async function writeInOrder(name: string): Promise<void> {
    try {
      for (let one = unwritten.get(name)?.[0]; one; one = unwritten.get(name)?.[0]) {
        const { attempt, outcome } = one;
        await (outcome === undefined ? records.release(name, attempt) : records.settle(name, attempt, outcome));
        drop(one);
      }
    } finally {
      underWay.delete(name);
    }
  }

  /** For which the oldest go. */
  function makeRoom(): void {
    for (const all of unwritten.values()) {
      for (const one of all) {
        if (count <= MOST_UNWRITTEN && characters <= MOST_CHARACTERS) return;
        drop(one);
      }
    }
  }

  /** Somebody else may have written it meanwhile, and dropped it. */
  function drop(one: Unwritten): void {
    const all = unwritten.get(one.name) ?? [];
    const others = all.filter((other) => other !== one);
    if (others.length === all.length) return;
    count -= 1;
    characters -= lengthOf(one);
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

  /** In their order, many at a time, up to the first that the store does not take. */
  async function writeAll(): Promise<void> {
    const names = [...unwritten.keys()];
    try {
      for (let first = 0; first < names.length; first += WRITING_AT_A_TIME) {
        await Promise.all(names.slice(first, first + WRITING_AT_A_TIME).map(write));
      }
    } catch {
      writeLater();
    }
  }
}

function lengthOf({ name, attempt, outcome }: Unwritten): number {
  return name.length + attempt.input.length + (outcome?.length ?? 0);
}
