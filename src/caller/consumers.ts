import { cutText } from '../common/cut-text.ts';
import type { OperationEvent } from '../common/events.ts';
import { entriesFor } from '../common/memory.ts';
import { DAY_MS } from '../common/plan.ts';
import type { Consumer, Consumers, ConsumersOf } from './key-report.ts';
import { CONSUMER_STEP_MS } from '../common/times.ts';

interface Count {
  readonly callsMade: number;
  readonly callsSaved: number;
  readonly refused: number;
}

type Counts = Map<string, { -readonly [Counted in keyof Count]: Count[Counted] }>;

/** The counts of some minutes or of a day. */
interface Period {
  readonly number: number;
  readonly operations: Counts;
  readonly clients: Counts;
}

const UNNAMED = '(unnamed)';
const OTHERS = '(others)';
/** Names of operations, and of clients, that are counted apart in one period. */
const MAX_NAMES = 100;
const MAX_CONSUMER_NAME_LENGTH = 100;
/** A name of middle length and its counts. */
const ROW_BYTES = 250;
const STEPS_OF_AN_HOUR = 6;

/** How many names all callers of a gateway may keep together: clients make them up. */
export class ConsumerRows {
  #left = entriesFor('consumers', ROW_BYTES);

  /** Returns whether there is room for one more. */
  take(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  free({ operations, clients }: Period): void {
    for (const name of [...operations.keys(), ...clients.keys()])
      if (name !== UNNAMED && name !== OTHERS) this.#left += 1;
  }
}

/** Counts what the operations of one API key use, by their names and clients: in steps of ten minutes, and by the day. */
export class ConsumerCounts {
  readonly #rows: ConsumerRows;
  /** The last hour, the latest one last. */
  #steps: Period[] = [];
  #day: Period | undefined;

  constructor(rows: ConsumerRows) {
    this.#rows = rows;
  }

  /** @param nowMs by the wall clock. */
  record({ name, client, outcome, upstreamCalls, savedCalls }: OperationEvent, nowMs: number): void {
    this.#expire(nowMs);
    const step = Math.floor(nowMs / CONSUMER_STEP_MS);
    if (this.#steps.at(-1)?.number !== step) this.#steps.push(newPeriod(step));
    this.#day ??= newPeriod(Math.floor(nowMs / DAY_MS));

    const use = { callsMade: upstreamCalls, callsSaved: savedCalls, refused: outcome === 'RATE_LIMITED' ? 1 : 0 };
    for (const { operations, clients } of [this.#steps.at(-1) as Period, this.#day]) {
      this.#add(operations, name, use);
      this.#add(clients, client, use);
    }
  }

  view(nowMs: number): Consumers {
    this.#expire(nowMs);
    return { lastHour: consumersOf(this.#steps), today: consumersOf(this.#day ? [this.#day] : []) };
  }

  /** Frees its names. */
  free(): void {
    for (const period of [...this.#steps, ...(this.#day ? [this.#day] : [])]) this.#rows.free(period);
    this.#steps = [];
    this.#day = undefined;
  }

  #expire(nowMs: number): void {
    const first = Math.floor(nowMs / CONSUMER_STEP_MS) - STEPS_OF_AN_HOUR + 1;
    while (this.#steps[0] && this.#steps[0].number < first) this.#rows.free(this.#steps.shift() as Period);
    if (this.#day && this.#day.number !== Math.floor(nowMs / DAY_MS)) {
      this.#rows.free(this.#day);
      this.#day = undefined;
    }
  }

  #add(counts: Counts, given: string | undefined, { callsMade, callsSaved, refused }: Count): void {
    const name = given ? cutText(given, MAX_CONSUMER_NAME_LENGTH) : UNNAMED;
    const counted = counts.get(name) ?? this.#newCount(counts, name);
    counted.callsMade += callsMade;
    counted.callsSaved += callsSaved;
    counted.refused += refused;
  }

  #newCount(counts: Counts, name: string): ReturnType<typeof newCount> {
    const hasRoom = name === UNNAMED || name === OTHERS || (counts.size < MAX_NAMES && this.#rows.take());
    if (!hasRoom) return counts.get(OTHERS) ?? this.#newCount(counts, OTHERS);
    const count = newCount();
    counts.set(name, count);
    return count;
  }
}

function newPeriod(number: number): Period {
  return { number, operations: new Map(), clients: new Map() };
}

function newCount() {
  return { callsMade: 0, callsSaved: 0, refused: 0 };
}

function consumersOf(periods: readonly Period[]): ConsumersOf {
  return {
    operations: sorted(periods.map(({ operations }) => operations)),
    clients: sorted(periods.map(({ clients }) => clients)),
  };
}

function sorted(parts: readonly Counts[]): Consumer[] {
  const sums: Counts = new Map();
  for (const [name, count] of parts.flatMap((counts) => [...counts])) {
    const sum = sums.get(name) ?? newCount();
    sum.callsMade += count.callsMade;
    sum.callsSaved += count.callsSaved;
    sum.refused += count.refused;
    sums.set(name, sum);
  }

  const all = [...sums.values()].reduce((sum, { callsMade }) => sum + callsMade, 0);
  return [...sums]
    .map(([name, count]) => ({ name, ...count, share: all === 0 ? 0 : count.callsMade / all }))
    .toSorted((a, b) => b.callsMade - a.callsMade || b.callsSaved - a.callsSaved);
}
