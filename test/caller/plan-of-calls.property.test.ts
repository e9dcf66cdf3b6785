import fc from 'fast-check';
import { expect, test } from 'vitest';
import { callKey } from '../../src/caller/call.ts';
import type { Call, ListingName } from '../../src/caller/call.ts';
import { demandKey, ownCall } from '../../src/caller/demand.ts';
import type { Demand } from '../../src/caller/demand.ts';
import { animalFact, answerFrom, listingFact } from '../../src/caller/fact.ts';
import type { Fact } from '../../src/caller/fact.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import type { Knowledge } from '../../src/caller/knowledge.ts';
import { NONE_REST } from '../../src/caller/listing-rests.ts';
import { planCalls } from '../../src/caller/plan-of-calls.ts';
import type { OpenDemand } from '../../src/caller/plan-of-calls.ts';
import { anyDemand, anyListing, anyStore } from './model-store.ts';
import type { ModelStore } from './model-store.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 1_000);

interface Open extends OpenDemand {
  readonly seen: Set<ListingName>;
  readonly joins: Set<string>;
}

interface Outcome {
  readonly calls: readonly Call[];
  readonly answers: ReadonlyMap<string, readonly { id: string }[]>;
  readonly unprovable: readonly Demand[];
}

/** Carries out plans until nothing is open: `choose` says how many calls leave, and which of those under way lands. */
function carryOut(
  store: ModelStore,
  demands: readonly Demand[],
  choose: (most: number) => number,
  { singleReadsWork = true, knowledge = createKnowledge() } = {},
) {
  let open: Open[] = demands.map((demand) => ({
    demand,
    seen: new Set(),
    shownIn: demand.kind === 'animal' ? knowledge.lastShown(demand.id) : undefined,
    joins: new Set(),
  }));
  const underWay: Call[] = [];
  const calls: Call[] = [];
  const answers = new Map<string, readonly { id: string }[]>();
  const unprovable: Demand[] = [];
  while (open.length > 0) {
    const askedInParts = knowledge.askedInParts() || underWay.length > 0;
    const plan = planCalls(open, { size: knowledge.size(), askedInParts, singleReadsWork, resting: NONE_REST });
    for (const { demand } of plan.unprovable) unprovable.push(demand);
    open = open.filter((one) => !plan.unprovable.includes(one));
    const leave = plan.calls.slice(
      0,
      underWay.length === 0 ? 1 + choose(plan.calls.length) : choose(plan.calls.length),
    );
    for (const { call } of leave) {
      calls.push(call);
      underWay.push(call);
      for (const one of open) one.joins.add(callKey(call));
    }
    if (plan.calls.length > 0 && leave.length === 0 && underWay.length === 0) throw new Error('nothing ever happens');
    const [landed] = underWay.splice(choose(underWay.length), 1);
    if (landed) land(landed);
  }
  return { calls, answers, unprovable } satisfies Outcome;

  function land(call: Call): void {
    const fact = factOf(call, store);
    knowledge.learn(fact);
    open = open.filter((one) => {
      one.joins.delete(callKey(call));
      const pets = answerFrom(fact, one.demand);
      if (pets) answers.set(demandKey(one.demand), pets);
      else if (call.kind === 'list') one.seen.add(call.listing);
      return !pets;
    });
  }
}

function factOf(call: Call, store: ModelStore): Fact {
  if (call.kind === 'get') return animalFact(call.id, store.get(call.id) ?? null, 0);
  const { pets, complete } = store.list(call.listing);
  return listingFact(call.listing, pets, complete, 0);
}

function directAnswer(demand: Demand, store: ModelStore): readonly { id: string }[] {
  if (demand.kind === 'listing') return store.list(demand.listing).pets;
  const pet = store.get(demand.id);
  return pet ? [pet] : [];
}

const demandSets = fc.uniqueArray(anyDemand, { minLength: 1, maxLength: 60, selector: demandKey });
const choices = fc.infiniteStream(fc.nat());

function chooser(stream: Iterable<number>): (most: number) => number {
  const numbers = stream[Symbol.iterator]();
  return (most) => (most === 0 ? 0 : (numbers.next().value as number) % most);
}

test('whatever is asked for, the answers are those of direct calls, for one call a demand and one more at most', () => {
  fc.assert(
    fc.property(anyStore, demandSets, choices, (store, demands, stream) => {
      const { calls, answers, unprovable } = carryOut(store, demands, chooser(stream));
      expect(unprovable).toEqual([]);
      for (const demand of demands) expect(answers.get(demandKey(demand))).toEqual(directAnswer(demand, store));
      const tried = demands.some(
        ({ kind, ...rest }) => kind === 'listing' && 'listing' in rest && rest.listing === 'all',
      );
      expect(calls.length).toBeLessThanOrEqual(demands.length + (tried ? 0 : 1));
      expect(new Set(calls.map(callKey)).size).toBe(calls.length);
      // Besides the listing of all, nothing is called that nobody asked for.
      const own = new Set(['list all', ...demands.map((demand) => callKey(ownCall(demand)))]);
      for (const call of calls) expect(own).toContain(callKey(call));
    }),
    { numRuns: RUNS },
  );
});

test('a store that one listing shows is asked once for any number of ids and filters that come together', () => {
  const several = fc.uniqueArray(anyDemand, { minLength: 2, maxLength: 60, selector: demandKey });
  fc.assert(
    fc.property(anyStore, several, choices, (store, demands, stream) => {
      fc.pre(store.size < 100);
      expect(carryOut(store, demands, chooser(stream)).calls.map(callKey)).toEqual(['list all']);
    }),
    { numRuns: RUNS },
  );
});

test('without gets, ids are looked for in listings alone, and only what those prove is said', () => {
  fc.assert(
    fc.property(anyStore, demandSets, choices, (store, demands, stream) => {
      const { calls, answers, unprovable } = carryOut(store, demands, chooser(stream), { singleReadsWork: false });
      expect(calls.every(({ kind }) => kind === 'list')).toBe(true);
      expect(calls.length).toBeLessThanOrEqual(4);
      expect(unprovable.filter((demand) => provable(demand, store))).toEqual([]);
      const proved = demands.filter((demand) => !unprovable.includes(demand));
      for (const demand of proved) expect(answers.get(demandKey(demand))).toEqual(directAnswer(demand, store));
    }),
    { numRuns: RUNS },
  );
});

/** Whether any listing shows the animal, or one shows all of them. */
function provable(demand: Demand, store: ModelStore): boolean {
  if (demand.kind === 'listing' || store.list('all').complete) return true;
  return (['all', 'available', 'pending', 'sold'] as const).some((listing) =>
    store.list(listing).pets.some(({ id }) => id === demand.id),
  );
}

test('whatever listings have shown before, the answers are those of direct calls, and each is tried once at most', () => {
  const seenBefore = fc.tuple(fc.boolean(), anyStore, fc.uniqueArray(anyListing));
  fc.assert(
    fc.property(anyStore, seenBefore, demandSets, choices, (store, [singleReadsWork, ...before], demands, stream) => {
      const knowledge = knowledgeOf(...before);
      const { calls, answers, unprovable } = carryOut(store, demands, chooser(stream), { singleReadsWork, knowledge });
      expect(unprovable.filter((demand) => singleReadsWork || provable(demand, store))).toEqual([]);
      const answered = demands.filter((demand) => !unprovable.includes(demand));
      for (const demand of answered) expect(answers.get(demandKey(demand))).toEqual(directAnswer(demand, store));
      expect(new Set(calls.map(callKey)).size).toBe(calls.length);
      const tried = calls.filter(({ kind }) => kind === 'list').length;
      expect(calls.length - tried).toBeLessThanOrEqual(demands.length);
      expect(calls.length).toBeLessThanOrEqual(demands.length + 4);
    }),
    { numRuns: RUNS },
  );
});

test('of a large store, animals that a listing has shown and still shows cost that listing, however many they are', () => {
  const large = anyStore.filter(({ size }) => size > 110);
  fc.assert(
    fc.property(large, anyListing, choices, fc.integer({ min: 2, max: 100 }), (store, listing, stream, count) => {
      const shown = store.list(listing).pets.slice(0, count);
      fc.pre(shown.length > 1);
      const knowledge = knowledgeOf(store, ['all', listing]);
      knowledge.outdate();
      const demands = shown.map(({ id }) => ({ kind: 'animal', id }) as const);
      const { calls } = carryOut(store, demands, chooser(stream), { knowledge });
      // One of them may be the only one that another listing has shown.
      expect(calls.filter(({ kind }) => kind === 'list').length).toBeGreaterThan(0);
      expect(calls.length).toBeLessThanOrEqual(2);
    }),
    { numRuns: RUNS },
  );
});

function knowledgeOf(store: ModelStore, listings: readonly ListingName[]): Knowledge {
  const knowledge = createKnowledge();
  for (const listing of listings) knowledge.learn(factOf({ kind: 'list', listing }, store));
  return knowledge;
}

test('once a store is known to be large, so many ids are never more than so many calls', () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyDemand, { minLength: 1, maxLength: 60, selector: demandKey }), (demands) => {
      const open = demands.map((demand) => ({ demand, seen: new Set<ListingName>(), joins: new Set<string>() }));
      const { calls } = planCalls(open, {
        size: 'large',
        askedInParts: true,
        singleReadsWork: true,
        resting: NONE_REST,
      });
      expect(calls.length).toBeLessThanOrEqual(demands.length);
      const own = new Set(demands.map((demand) => callKey(ownCall(demand))));
      for (const { call } of calls) expect(own).toContain(callKey(call));
    }),
    { numRuns: RUNS },
  );
});
