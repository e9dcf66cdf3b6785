import { LISTINGS, callKey } from './call.ts';
import type { Call, ListingName } from './call.ts';
import { ownCall } from './demand.ts';
import { enoughFor, listingToTry, planCalls, waitsForOneUnderWay } from './plan-of-calls.ts';
import type { StoreFacts } from './plan-of-calls.ts';
import { isResting } from './waiting-set.ts';
import type { Open, Waiting, WaitingSet } from './waiting-set.ts';

/**
 * The plan of calls for what waits, kept while little of it changes: a plan made anew looks at all that waits, and where thousands
 * do, that would take longer for each call than the call. What comes and goes one at a time, a single animal most of all, has a
 * place in the plan that can be given and taken; whatever else happens, it is made anew when it is next asked for.
 */
export interface KeptPlan<O> {
  /** As it is now. It changes as demands come and go, until another one is made. */
  now(): Plan<O>;
  /** How many calls come before the one that this waits for; -1 where it waits for none of them. */
  positionOf(one: O): number;
  /** This is open now, and was not. */
  joined(one: O): void;
  /** This was open, and is no more. */
  left(one: O): void;
  /** A call has left. */
  sent(call: Call): void;
  /** It is over, and whoever it helped has left. */
  answered(call: Call): void;
  /** Something else has happened to what is open. */
  changed(): void;
}

/** What `planCalls` says, by `callKey`. */
export interface Plan<O> {
  /** Plans are numbered from 1 as they are made. */
  readonly number: number;
  readonly calls: ReadonlyMap<string, PlannedCall<O>>;
  readonly unprovable: readonly O[];
}

export interface PlannedCall<O> {
  readonly call: Call;
  readonly waiting: ReadonlySet<O>;
}

interface Entry<O> extends PlannedCall<O> {
  readonly key: string;
  readonly waiting: Set<O>;
}

interface Kept<O> extends Plan<O> {
  readonly calls: Map<string, Entry<O>>;
  readonly entryOf: Map<O, Entry<O>>;
  readonly allStandsIn: boolean;
  readonly helps: Map<ListingName, number>;
  readonly facts: StoreFacts;
}

export function createKeptPlan<W extends Waiting>(
  waitingSet: WaitingSet<W>,
  facts: () => StoreFacts,
): KeptPlan<Open<W>> {
  /** Undefined where it is to be made anew. */
  let kept: Kept<Open<W>> | undefined;
  let number = 0;

  return {
    now,
    positionOf(one) {
      const { calls, entryOf } = now();
      const entry = entryOf.get(one);
      return entry ? positionIn(calls.values(), entry) : -1;
    },
    joined(one) {
      if (!kept) return;
      waitingSet.noteJoinsOf(one);
      if (waitsForOneUnderWay(one)) return;
      const entry = placeOf(one, kept);
      if (!entry) return changed();
      entry.waiting.add(one);
      kept.entryOf.set(one, entry);
    },
    left,
    sent(call) {
      if (call.kind === 'list') return changed();
      // They wait for this one now.
      for (const one of waitingSet.concernedBy(call)) left(one);
    },
    answered(call) {
      if (call.kind === 'list' || [...waitingSet.concernedBy(call)].some(isLeftOut)) changed();
    },
    changed,
  };

  function now(): Kept<Open<W>> {
    const factsNow = facts();
    if (!kept || !sayTheSame(kept.facts, factsNow)) kept = made(factsNow);
    return kept;
  }

  function changed(): void {
    kept = undefined;
  }

  function made(factsNow: StoreFacts): Kept<Open<W>> {
    waitingSet.noteJoins();
    const open = [...waitingSet.open].filter((one) => !isResting(one));
    const { calls, unprovable, ...helped } = planCalls(open, factsNow);
    number += 1;
    const plan: Kept<Open<W>> = {
      number,
      calls: new Map(),
      entryOf: new Map(),
      unprovable,
      ...helped,
      facts: factsNow,
    };
    for (const { call, waiting } of calls) {
      const entry: Entry<Open<W>> = { call, key: callKey(call), waiting: new Set(waiting) };
      plan.calls.set(entry.key, entry);
      for (const one of waiting) plan.entryOf.set(one, entry);
    }
    return plan;
  }

  function left(one: Open<W>): void {
    if (!kept) return;
    const entry = kept.entryOf.get(one);
    // It may be one that no call can satisfy. And where nothing waits, nothing is kept.
    if (kept.unprovable.length > 0 || waitingSet.open.size === 0) return changed();
    if (!entry) return;
    kept.entryOf.delete(one);
    entry.waiting.delete(one);
    if (entry.call.kind === 'get' && entry.waiting.size === 0) kept.calls.delete(entry.key);
    if (!staysAsItIs(one, entry, kept)) changed();
  }

  /** Whether it needs a call, and the plan has none for it. */
  function isLeftOut(one: Open<W>): boolean {
    if (isResting(one) || kept?.entryOf.has(one)) return false;
    waitingSet.noteJoinsOf(one);
    return !waitsForOneUnderWay(one);
  }
}

/** Whether nothing changes for the others now that this one is gone, which waited for this call; it is counted no more. */
function staysAsItIs<O extends Open<Waiting>>(
  one: O,
  { call, waiting }: Entry<O>,
  { facts, allStandsIn, helps }: Pick<Kept<O>, 'allStandsIn' | 'facts' | 'helps'>,
): boolean {
  if (call.kind === 'list') {
    if (one.demand.kind === 'listing' || one.metNoRoute) return false;
    // Fewer may be better off without it.
    if (waiting.size < enoughFor(call.listing, facts)) return false;
  }
  const listing = listingToTry(one);
  if (!listing || (allStandsIn && !one.seen.has('all'))) return true;
  const count = helps.get(listing) ?? 0;
  if (!facts.singleReadsWork || count === enoughFor(listing, facts)) return false;
  helps.set(listing, count - 1);
  return true;
}

/** What a newcomer waits for, where it changes nothing for the others; undefined where it may. It follows `planCalls`. */
function placeOf<O extends Open<Waiting>>(
  one: O,
  { calls, facts, allStandsIn, helps }: Pick<Kept<O>, 'allStandsIn' | 'calls' | 'facts' | 'helps'>,
): Entry<O> | undefined {
  const { demand, seen } = one;
  // Without gets, each animal may want another listing, and any listing may show it.
  if (!facts.singleReadsWork) return undefined;
  if (!seen.has('all')) {
    if (allStandsIn) return calls.get(ALL);
    // With one more that it may save, it may be worth a call.
    if (facts.size !== 'large' || (facts.resting.has('all') && calls.has(ALL))) return undefined;
  }
  // With a listing more, animals may wait for that instead.
  if (demand.kind === 'listing') return undefined;
  const shownIn = listingToTry(one);
  if (shownIn) {
    const count = (helps.get(shownIn) ?? 0) + 1;
    const enough = enoughFor(shownIn, facts);
    // With this one, it is.
    if (count === enough) return undefined;
    helps.set(shownIn, count);
    if (count > enough) return calls.get(listKey(shownIn));
  }
  for (const listing of LISTINGS) {
    const listed = seen.has(listing) ? undefined : calls.get(listKey(listing));
    // Or it is somebody's own call, and nothing that others wait for.
    if (listed && (helps.get(listing) ?? 0) >= enoughFor(listing, facts)) return listed;
  }
  const call = ownCall(demand);
  const key = callKey(call);
  const entry = calls.get(key) ?? { call, key, waiting: new Set() };
  calls.set(key, entry);
  return entry;
}

function positionIn<T>(all: Iterable<T>, wanted: T): number {
  let position = 0;
  for (const one of all) {
    if (one === wanted) return position;
    position += 1;
  }
  return -1;
}

function listKey(listing: ListingName): string {
  return callKey({ kind: 'list', listing });
}

const ALL = listKey('all');

/** What was asked for in parts counts only where the size is not known, and else changes with each call. */
function sayTheSame(one: StoreFacts, other: StoreFacts): boolean {
  return (
    one.size === other.size &&
    one.singleReadsWork === other.singleReadsWork &&
    one.resting === other.resting &&
    (one.size !== 'unknown' || one.askedInParts === other.askedInParts)
  );
}
