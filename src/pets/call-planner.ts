import type { Int64 } from './int64.ts';
import { ALL_PETS, LISTS, WIDE_LISTS, isList, isWider, readOf } from './read-key.ts';
import type { CallKey, ListName, ReadKey } from './read-key.ts';

/** Whether one response shows the whole list, as the last one did. */
export type ListSize = 'large' | 'small' | 'unknown';

/** A read that needs a call. */
export interface PlannedRead {
  readonly key: ReadKey;
  /** Calls that cannot answer it: lists that came without it, or failed, and its get where there was no such route. */
  readonly tried: ReadonlySet<CallKey>;
}

/** What petql has seen of the pet store. */
export interface PlanFacts {
  /** Whether one response shows the whole list, as the last one did. */
  sizeOf(list: ListName): ListSize;
  /** Whether anything but this was called for, or is in flight. */
  hasCalledOther(call: CallKey): boolean;
  /** Whether a single pet may be called for. */
  readonly mayGet: boolean;
  /** Whether the list showed the pet when it was last called for; undefined where it never was. */
  hasShown(list: ListName, id: Int64): boolean | undefined;
}

export interface CallPlan<Read extends PlannedRead> {
  /** What to send, in this order, with the reads that wait for each call. */
  readonly calls: Map<CallKey, Read[]>;
  /** Reads that no call can answer: every list was tried, and none proves that there is no such pet. */
  readonly unprovable: readonly Read[];
}

/**
 * Rule 3: whether this call may answer the read, by what petql has seen of the store. A wider list answers the others unless
 * it is large. A list answers the pets that it has shown, and may answer any pet while it was never called for
 * or there is no get. The planner, the reads that wait, failures and refreshes all go by it.
 */
export function canAnswer(call: CallKey, { key, tried }: PlannedRead, facts: PlanFacts): boolean {
  if (tried.has(call)) return false;
  if (call === key) return true;
  if (!isList(call)) return false;
  const read = readOf(key);
  switch (read.kind) {
    case 'list':
      return isWider(call, read.list) && facts.sizeOf(call) !== 'large';
    case 'pet': {
      const isGetPossible = facts.mayGet && !tried.has(key);
      if (!isGetPossible || (call === ALL_PETS && facts.sizeOf(call) === 'small')) return true;
      return facts.hasShown(call, read.id) ?? true;
    }
  }
}

/**
 * Plans the fewest calls for the reads that wait now. Each change makes another plan, so a plan only says what comes next:
 *
 * 1. A wide list, all pets first, replaces other calls where it answers them for sure, or where it finds out whether it does.
 * 2. Other lists are called where they are wanted, or where they have shown pets that are (a greedy set cover).
 * 3. A pet waits for a list of this plan, or is a get; where there are no gets, it waits for the next list.
 *
 * Each list is tried once for a read, so a set of reads costs at most one call each and one for each list that is tried.
 */
export function planCalls<Wanted extends PlannedRead>(reads: readonly Wanted[], facts: PlanFacts): CallPlan<Wanted> {
  const calls = new Map<CallKey, Wanted[]>();
  const unprovable: Wanted[] = [];

  // 1. Wide lists.
  let left = reads;
  for (const list of WIDE_LISTS) {
    const answerable = left.filter((read) => mayReplace(list, read));
    if (!isWorthACall(list, answerable, facts)) continue;
    calls.set(list, answerable);
    left = left.filter((read) => !mayReplace(list, read));
  }

  // 2. Lists that are wanted, and those that have shown pets.
  const pets: Wanted[] = [];
  for (const read of left) {
    const { kind } = readOf(read.key);
    switch (kind) {
      case 'list':
        wait(read.key, read);
        break;
      case 'pet':
        pets.push(read);
        break;
      default:
        kind satisfies never;
    }
  }
  const lists = new Set<ListName>([...calls.keys()].filter(isList));
  for (const list of coverOf(pets, lists, facts)) lists.add(list);

  // 3. Pets.
  for (const read of pets) {
    const others = facts.mayGet ? [read.key, ...LISTS] : LISTS;
    const call = listFor(read, lists, facts) ?? others.find((key) => !read.tried.has(key));
    if (call === undefined) unprovable.push(read);
    else wait(call, read);
  }
  return { calls, unprovable };

  function wait(call: CallKey, read: Wanted): void {
    const waiting = calls.get(call);
    if (waiting) waiting.push(read);
    else calls.set(call, [read]);
  }
}

/**
 * Returns the maximum of calls that these reads can cost, retries aside: those of plan after plan while no list answers more than the
 * read that it is for, and while other operations call too.
 */
export function maxCalls(reads: readonly PlannedRead[], facts: PlanFacts): number {
  const worst = { ...facts, hasCalledOther: () => true };
  const called = new Set<CallKey>();
  let left = reads.map(({ key, tried }) => ({ key, tried: new Set(tried) }));
  while (left.length > 0) {
    left = [...planCalls(left, worst).calls].flatMap(([call, waiting]) => {
      called.add(call);
      return waiting.filter(({ key, tried }) => key !== call && tried.add(call));
    });
  }
  return called.size;
}

/** Whether the list is a candidate for a read, whatever its size: all pets for any read, others for the lists that they answer. */
function mayReplace(list: ListName, { key, tried }: PlannedRead): boolean {
  if (tried.has(list)) return false;
  const read = readOf(key);
  switch (read.kind) {
    case 'list':
      return list === read.list || isWider(list, read.list);
    case 'pet':
      return list === ALL_PETS;
  }
}

/** Whether a wide list saves calls. One that is large answers no other list, so it is called beside them. */
function isWorthACall(list: ListName, [first, ...others]: readonly PlannedRead[], facts: PlanFacts): boolean {
  const size = facts.sizeOf(list);
  if (size === 'large' || !first) return false;
  if (size === 'small' || others.length > 0 || first.key === list) return true;
  return list === ALL_PETS && facts.hasCalledOther(first.key);
}

/** The lists that are worth a call for the pets that they have shown, beside those that are called anyway. */
function* coverOf(pets: readonly PlannedRead[], wanted: ReadonlySet<ListName>, facts: PlanFacts): Iterable<ListName> {
  const isShownBy = (list: ListName, { key, tried }: PlannedRead) =>
    !tried.has(list) && facts.hasShown(list, key as Int64) === true;
  let left = pets.filter((read) => ![...wanted].some((list) => isShownBy(list, read)));
  for (;;) {
    const counts = LISTS.map((list) => ({ list, count: left.filter((read) => isShownBy(list, read)).length }));
    const best = counts.reduce((one, other) => (other.count > one.count ? other : one));
    if (best.count === 0) return;
    yield best.list;
    left = left.filter((read) => !isShownBy(best.list, read));
  }
}

/** The list of the plan that has shown the pet, or else one that may. */
function listFor(read: PlannedRead, lists: ReadonlySet<ListName>, facts: PlanFacts): ListName | undefined {
  const possible = [...lists].filter((list) => canAnswer(list, read, facts));
  return possible.find((list) => facts.hasShown(list, read.key as Int64)) ?? possible[0];
}
