import { LISTS, MAX_LISTED, isListed, valuesInTurn } from '../../support/pet-api/contract.ts';
import type { ListName } from '../../support/pet-api/contract.ts';
import { createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';

/** A list, or the number of a pet: the first one of the store is 1. */
export type Wanted = ListName | number;

/** What clients of one key do. Times are whole milliseconds since the start. */
export interface Trace {
  readonly pets: number;
  readonly operations: readonly TraceOperation[];
  /** When a pet is created. */
  readonly createsAtMs: readonly number[];
}

export interface TraceOperation {
  readonly atMs: number;
  readonly reads: readonly Wanted[];
}

export interface LoadOptions {
  /** Pets in the store, each value of each enum in turn. */
  readonly pets: number;
  /** `uniform`: popular ids are anywhere in the store. `listed`: four of five are ids that a list shows, as where users click on what it shows. */
  readonly ids: 'listed' | 'uniform';
  /** An operation reads a list or an id, or a list and two ids. */
  readonly shape: 'page' | 'single';
  readonly operationsPerSecond: number;
  readonly operations: number;
  /** Default 0. */
  readonly createsPerSecond?: number;
  readonly seed: number;
}

/** That of all pets is the most popular. */
const READ_LISTS: readonly ListName[] = ['all', ...LISTS];
const SHARE_OF_LISTS = 0.4;
const SHARE_OF_LISTED_IDS = 0.8;

/** Popularity falls by Zipf's law, exponent 1. Clients come at random moments (a Poisson process). */
export function createTrace(options: LoadOptions): Trace {
  const { pets, ids, shape, operationsPerSecond, createsPerSecond = 0 } = options;
  const random = createRandom(options.seed);
  const numbers = shuffled(
    Array.from({ length: pets }, (_, index) => index + 1),
    random,
  );
  const anywhere = zipf(numbers, random);
  const shown = zipf(
    numbers.filter((number) => LISTS.some((list) => isShownBy(list, number, pets))),
    random,
  );
  const chooseId = () => (ids === 'listed' && random() < SHARE_OF_LISTED_IDS ? shown() : anywhere());
  const chooseList = () => READ_LISTS[Math.floor(random() * READ_LISTS.length)] ?? 'all';
  let atMs = 0;
  const operations = Array.from({ length: options.operations }, (): TraceOperation => {
    atMs += (-Math.log(1 - random()) / operationsPerSecond) * 1_000;
    const reads =
      shape === 'page'
        ? [chooseList(), chooseId(), chooseId()]
        : [random() < SHARE_OF_LISTS ? chooseList() : chooseId()];
    return { atMs: Math.round(atMs), reads };
  });
  const creates = Math.floor((atMs / 1_000) * createsPerSecond);
  return {
    pets,
    operations,
    createsAtMs: Array.from({ length: creates }, () => Math.round(random() * atMs)).toSorted((a, b) => a - b),
  };
}

/** The numbers of the pets that each list shows of a store without an end. */
const SHOWN = new Map(LISTS.map((list) => [list, shownIn(list)]));

function shownIn(list: ListName): ReadonlySet<number> {
  const shown = new Set<number>();
  for (let number = 1; shown.size < MAX_LISTED; number += 1) {
    if (isListed(valuesInTurn(number - 1), list)) shown.add(number);
  }
  return shown;
}

/** Whether a list shows this pet of a store with so many pets, the lowest ids first. */
export function isShownBy(list: ListName, number: number, pets: number): boolean {
  return number <= pets && SHOWN.get(list)?.has(number) === true;
}

/** Whether a list shows all that a store with so many pets has of it. */
export function isWhole(list: ListName, pets: number): boolean {
  return [...(SHOWN.get(list) ?? [])].some((number) => number > pets);
}

function zipf(numbers: readonly number[], random: Random): () => number {
  let sum = 0;
  const sums = numbers.map((_, rank) => (sum += 1 / (rank + 1)));
  return () => {
    const at = random() * sum;
    let low = 0;
    for (let high = sums.length - 1; low < high;) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] ?? 0) > at) high = middle;
      else low = middle + 1;
    }
    return numbers[low] ?? 1;
  };
}

function shuffled(numbers: number[], random: Random): number[] {
  for (let at = numbers.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [numbers[at], numbers[other]] = [numbers[other] as number, numbers[at] as number];
  }
  return numbers;
}
