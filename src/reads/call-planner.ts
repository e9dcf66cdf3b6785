import type { Int64 } from '../int64.ts';
import type { StoreSize } from './pet-cache.ts';
import { LISTS, isList } from './read-key.ts';
import type { ListName, ReadKey } from './read-key.ts';

/** A read that needs a call. */
export interface PlannedRead {
  readonly key: ReadKey;
  /** Calls that cannot answer it: lists that came without it, or failed, and its get where there was no such route. */
  readonly tried: ReadonlySet<ReadKey>;
  /** Whether it was called for by itself before: a repeated read is no reason to find out the size of the store. */
  readonly isRepeat: boolean;
}

export interface PlanFacts {
  readonly size: StoreSize;
  /** Whether part of the store was, or is being, called for while its size was not known. */
  readonly hasCalled: boolean;
  /** Whether a single pet may be called for. */
  readonly mayGet: boolean;
  /** Whether the list showed the pet when it was last called for. */
  hasShown(list: ListName, id: Int64): boolean;
}

export interface CallPlan<Read extends PlannedRead> {
  /** What to send, in this order, with the reads that wait for each call. */
  readonly calls: Map<ReadKey, Read[]>;
  /** Reads that no call can answer: every list was tried, and none proves that there is no such pet. */
  readonly unprovable: readonly Read[];
}

/** For so many pets that it has shown, a list is worth a call. */
const WORTH_A_LIST = 2;

/**
 * Plans the fewest calls for the reads that wait now. Each change makes another plan, so a plan only says what comes next:
 *
 * 1. A list of all pets replaces other calls where it answers them for sure, or where it finds out whether it does.
 * 2. Other lists are called where they are wanted, or where they have shown two of the pets (a greedy set cover).
 * 3. A pet waits for a list of this plan, or is a get; where there are no gets, it waits for the next list.
 *
 * Each list is tried once for a read, so a set of reads costs at most one call each and one for each list that is tried.
 */
export function planCalls<Read extends PlannedRead>(reads: readonly Read[], facts: PlanFacts): CallPlan<Read> {
  const calls = new Map<ReadKey, Read[]>();
  const unprovable: Read[] = [];
  const pets: Read[] = [];
  const listAll = isAllWorthACall(reads, facts);
  for (const read of reads) {
    if (listAll && !read.tried.has('all')) wait('all', read);
    else if (isList(read.key)) wait(read.key, read);
    else pets.push(read);
  }
  const lists = new Set<ListName>([...calls.keys()].filter(isList));
  for (const list of coverOf(pets, lists, facts)) lists.add(list);
  for (const read of pets) {
    const others = facts.mayGet ? [read.key, ...LISTS] : LISTS;
    const call = listFor(read, lists, facts) ?? others.find((key) => !read.tried.has(key));
    if (call === undefined) unprovable.push(read);
    else wait(call, read);
  }
  return { calls, unprovable };

  function wait(call: ReadKey, read: Read): void {
    const waiting = calls.get(call);
    if (waiting) waiting.push(read);
    else calls.set(call, [read]);
  }
}

/** Whether a list of all pets saves calls. That of a large store answers no other list, so it is called beside them. */
function isAllWorthACall(reads: readonly PlannedRead[], { size, hasCalled }: PlanFacts): boolean {
  const savable = reads.filter(({ tried }) => !tried.has('all'));
  if (size === 'large' || savable.length === 0) return false;
  if (size === 'small' || savable.length > 1 || savable[0]?.key === 'all') return true;
  return hasCalled && savable.some(({ isRepeat }) => !isRepeat);
}

/** The lists that are worth a call for the pets that they have shown, beside those that are called anyway. */
function* coverOf(pets: readonly PlannedRead[], wanted: ReadonlySet<ListName>, facts: PlanFacts): Iterable<ListName> {
  const isShownBy = (list: ListName, { key, tried }: PlannedRead) =>
    !tried.has(list) && facts.hasShown(list, key as Int64);
  let left = pets.filter((read) => ![...wanted].some((list) => isShownBy(list, read)));
  for (;;) {
    const counts = LISTS.map((list) => ({ list, count: left.filter((read) => isShownBy(list, read)).length }));
    const best = counts.reduce((one, other) => (other.count > one.count ? other : one));
    if (best.count < (facts.mayGet ? WORTH_A_LIST : 1)) return;
    yield best.list;
    left = left.filter((read) => !isShownBy(best.list, read));
  }
}

/** The list of the plan that has shown the pet, or else one that may. */
function listFor({ key, tried }: PlannedRead, lists: ReadonlySet<ListName>, facts: PlanFacts): ListName | undefined {
  const untried = [...lists].filter((list) => !tried.has(list));
  return untried.find((list) => facts.hasShown(list, key as Int64)) ?? untried[0];
}

/** Whether this call may answer the read. */
export function mayAnswer(call: ReadKey, { key, tried }: Pick<PlannedRead, 'key' | 'tried'>): boolean {
  return !tried.has(call) && (call === key || (isList(call) && (call === 'all' || !isList(key))));
}

/** Whether the call is likely to answer the read, as far as is known of the store. */
export function willAnswer(call: ReadKey, key: ReadKey, { size, hasShown }: PlanFacts): boolean {
  if (call === key) return true;
  if (call === 'all' && (size === 'small' || isList(key))) return size !== 'large';
  return isList(call) && !isList(key) && hasShown(call, key);
}
