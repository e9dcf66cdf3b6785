import { LISTS, STATUSES, isListed, valuesInTurn } from '../../support/pet-api/contract.ts';
import type { ListName } from '../../support/pet-api/contract.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import type { Trace, Wanted } from '../oracle/trace.ts';

/**
 * One line of a trace. Lines of one moment and one visitor are one operation.
 * `ms` since the start; `of` is the list (`all` or a status), the id of the pet, or the status of a pet to create.
 */
export interface TrafficRow {
  readonly ms: number;
  readonly visitor: number;
  readonly kind: 'create' | 'list' | 'pet';
  readonly of: string;
  /** Of a list alone. */
  readonly limit: number | undefined;
}

/** What one visitor wants at one moment. */
export interface TrafficOperation {
  readonly atMs: number;
  readonly rows: readonly TrafficRow[];
}

export interface TrafficOptions {
  readonly seed: number;
  readonly minutes: number;
}

export const COLUMNS = ['ms', 'visitor', 'kind', 'id or status', 'limit'] as const;
/** Pets of the store, each status in turn: a list shows 100, so that one in four is on none. */
export const PETS = 400;

const MINUTE_MS = 60_000;
const VISITORS_PER_MINUTE = 4;
/** From the third to the fifth part of twelve, a link brings so many times the visitors. */
const PEAK = 5;
const LIMITS = [20, 20, 20, 100];
const MEAN_PAGES = 4;
const MEAN_THINKING_MS = 15_000;
const MIN_THINKING_MS = 2_000;
const CREATES_PER_HOUR = 6;
/** How popular each list is: one that is missing does not compile. */
const POPULARITY: Readonly<Record<ListName, number>> = { available: 3, all: 1, pending: 1, sold: 1 };
const READ_LISTS = Object.entries(POPULARITY).flatMap(([list, times]) =>
  Array.from({ length: times }, () => list as ListName),
);

/**
 * The visitors of an adoption page behind one API key. They come at random moments (a Poisson process), with a peak. Each one
 * looks at a list, and then at pets of it, at three of them beside each other, at another list, or at a pet from a link.
 */
export function createTraffic({ seed, minutes }: TrafficOptions): TrafficRow[] {
  const random = createRandom(seed);
  const durationMs = minutes * MINUTE_MS;
  const rows: TrafficRow[] = [];
  let visitor = 0;
  for (let atMs = 0; ;) {
    const isPeak = atMs >= durationMs / 4 && atMs < (durationMs * 5) / 12;
    atMs += exponential(random, MINUTE_MS / (VISITORS_PER_MINUTE * (isPeak ? PEAK : 1)));
    if (atMs >= durationMs) break;
    rows.push(...visitOf((visitor += 1), atMs, random));
  }
  const creates = Math.round((CREATES_PER_HOUR * minutes) / 60);
  for (let index = 0; index < creates; index += 1) {
    const of = STATUSES[index % STATUSES.length] ?? 'available';
    const ms = Math.round(((index + random()) / creates) * durationMs);
    rows.push({ ms, visitor: 0, kind: 'create', of, limit: undefined });
  }
  // A visit may be longer than the trace.
  return rows.filter(({ ms }) => ms < durationMs).toSorted((a, b) => a.ms - b.ms || a.visitor - b.visitor);
}

export function operationsOf(rows: readonly TrafficRow[]): TrafficOperation[] {
  const operations = Map.groupBy(rows, ({ ms, visitor }) => `${ms} ${visitor}`);
  return [...operations.values()].map((own) => ({ atMs: own[0]?.ms ?? 0, rows: own }));
}

/** Returns the trace as the integer program takes it. */
export function oracleTraceOf(rows: readonly TrafficRow[]): Trace {
  const isCreate = ({ rows: [first] }: TrafficOperation) => first?.kind === 'create';
  const operations = operationsOf(rows);
  const reads = operations.filter((operation) => !isCreate(operation));
  return {
    pets: PETS,
    operations: reads.map(({ atMs, rows: own }) => ({ atMs, reads: own.map(wantedOf) })),
    createsAtMs: operations.filter(isCreate).map(({ atMs }) => atMs),
  };
}

function wantedOf({ kind, of }: TrafficRow): Wanted {
  return kind === 'pet' ? Number(of) : (of as Wanted);
}

function visitOf(visitor: number, startMs: number, random: Random): TrafficRow[] {
  const rows: TrafficRow[] = [];
  let list = choose(READ_LISTS, random);
  let limit = choose(LIMITS, random);
  const look = () => rows.push({ ms, visitor, kind: 'list', of: list, limit });
  const lookAt = (id: number) => rows.push({ ms, visitor, kind: 'pet', of: String(id), limit: undefined });
  let ms = Math.round(startMs);
  look();
  while (random() < 1 - 1 / (MEAN_PAGES + 1)) {
    ms += MIN_THINKING_MS + Math.round(exponential(random, MEAN_THINKING_MS - MIN_THINKING_MS));
    const next = random();
    if (next < 0.6) {
      lookAt(shownBy(list, position(limit, random)));
    } else if (next < 0.75) {
      const first = position(limit - 2, random);
      for (const index of [first, first + 1, first + 2]) lookAt(shownBy(list, index));
    } else if (next < 0.92) {
      list = choose(READ_LISTS, random);
      limit = choose(LIMITS, random);
      look();
    } else {
      lookAt(between(random, 1, PETS));
    }
  }
  return rows;
}

/** The ids of the pets of each list, in its order. */
const SHOWN = new Map(
  LISTS.map((list) => {
    const numbers = Array.from({ length: PETS }, (_, index) => index + 1);
    return [list, numbers.filter((number) => isListed(valuesInTurn(number - 1), list))];
  }),
);

/** The id at this position of a list, from 0. */
function shownBy(list: ListName, index: number): number {
  return SHOWN.get(list)?.[index] ?? PETS;
}

/** The first ones of a list get most looks. */
function position(count: number, random: Random): number {
  return Math.floor(count ** random()) - 1;
}

function choose<Value>(values: readonly Value[], random: Random): Value {
  return values[Math.floor(random() * values.length)] as Value;
}

function exponential(random: Random, mean: number): number {
  return -Math.log(1 - random()) * mean;
}
