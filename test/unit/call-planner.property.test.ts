import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canAnswer, planCalls } from '../../src/pets/call-planner.ts';
import type { ListSize, PlanFacts, PlannedRead } from '../../src/pets/call-planner.ts';
import { LISTS, WIDE_LISTS, isList } from '../../src/pets/read-key.ts';
import type { ListName, ReadKey } from '../../src/pets/read-key.ts';
import { answerFrom, listSnapshot, petSnapshot } from '../../src/pets/snapshot.ts';
import type { Found, Snapshot } from '../../src/pets/snapshot.ts';
import { anyList, anyRead, anyStore } from './model-store.ts';
import type { ModelStore } from './model-store.ts';
import { chooseSeed } from '../support/seed.ts';

const NOTHING = { findEarlier: () => undefined, doubtAt: () => 'none' as const, shownBefore: () => [] };
const parameters = { numRuns: 500, seed: chooseSeed() };

/** What was seen of a store before: which lists were called for, and what they showed. */
interface Before {
  readonly store: ModelStore;
  readonly lists: readonly ListName[];
}

interface Pending extends PlannedRead {
  readonly tried: Set<ListName>;
}

/** Carries plans out until nothing is pending: `choose` says how many calls leave, and which one lands. */
function carryOut(
  store: ModelStore,
  keys: readonly ReadKey[],
  choose: (most: number) => number,
  { mayGet = true, before = { store, lists: [] as readonly ListName[] } }: { mayGet?: boolean; before?: Before } = {},
) {
  const shown = new Map<ListName, Snapshot>(before.lists.map((list) => [list, snapshotOf(list, before.store)]));
  const called = new Set<ReadKey>(before.lists);
  let pending: Pending[] = keys.map((key) => ({ key, tried: new Set() }));
  const underWay: ReadKey[] = [];
  const calls: ReadKey[] = [];
  const answers = new Map<ReadKey, Found>();
  const unprovable: ReadKey[] = [];
  while (pending.length > 0) {
    const facts: PlanFacts = {
      sizeOf: (list) => sizeOf(shown.get(list)),
      mayGet,
      hasShown: (list, id) => shown.get(list)?.byId.has(id),
      hasCalledOther: (key) => [...called, ...underWay].some((call) => call !== key),
    };
    const needy = pending.filter((read) => !underWay.some((call) => canAnswer(call, read, facts)));
    const plan = planCalls(needy, facts);
    for (const { key } of plan.unprovable) unprovable.push(key);
    pending = pending.filter((read) => !plan.unprovable.includes(read));
    const planned = [...plan.calls.keys()];
    const leaving = planned.slice(0, underWay.length === 0 ? 1 + choose(planned.length) : choose(planned.length));
    calls.push(...leaving);
    underWay.push(...leaving);
    if (planned.length > 0 && underWay.length === 0) throw new Error('nothing ever happens');
    const [landed] = underWay.splice(choose(underWay.length), 1);
    if (landed !== undefined) land(landed);
  }
  return { calls, answers, unprovable };

  function land(call: ReadKey): void {
    const snapshot = snapshotOf(call, store);
    if (isList(call)) shown.set(call, snapshot);
    called.add(call);
    pending = pending.filter(({ key, tried }) => {
      const found = answerFrom(snapshot, key);
      if (found !== undefined) answers.set(key, found);
      else if (isList(call)) tried.add(call);
      return found === undefined;
    });
  }
}

function sizeOf(last: Snapshot | undefined): ListSize {
  if (!last) return 'unknown';
  return last.isComplete ? 'small' : 'large';
}

function snapshotOf(call: ReadKey, store: ModelStore): Snapshot {
  if (isList(call)) return listSnapshot(call, store.list(call), 0, NOTHING);
  return petSnapshot(call, store.get(call) ?? null, 0, NOTHING);
}

function direct(key: ReadKey, store: ModelStore): Found {
  return isList(key) ? store.list(key).pets : (store.get(key) ?? null);
}

/** Whether any list shows the pet, or one shows all of them. */
function isProvable(key: ReadKey, store: ModelStore): boolean {
  if (isList(key) || store.list('all').complete) return true;
  return LISTS.some((list) => store.list(list).pets.some(({ id }) => id === key));
}

const reads = (minLength: number) => fc.uniqueArray(anyRead, { minLength, maxLength: 60 });
const choices = fc.infiniteStream(fc.nat());

function chooser(stream: Iterable<number>): (most: number) => number {
  const numbers = stream[Symbol.iterator]();
  return (most) => (most === 0 ? 0 : (numbers.next().value as number) % most);
}

test('reads are answered as by calls of their own, for one call each and one more for each wide list', () => {
  fc.assert(
    fc.property(anyStore, reads(1), choices, (store, keys, stream) => {
      const { calls, answers, unprovable } = carryOut(store, keys, chooser(stream));
      expect(unprovable).toEqual([]);
      for (const key of keys) expect(answers.get(key)).toEqual(direct(key, store));
      const wide = WIDE_LISTS.filter((list) => !keys.includes(list));
      expect(calls.length).toBeLessThanOrEqual(keys.length + wide.length);
      expect(new Set(calls).size).toBe(calls.length);
      expect(calls.filter((call) => ![...wide, ...keys].includes(call))).toEqual([]);
    }),
    parameters,
  );
});

test('any ids and filters of a store that one list shows are one call', () => {
  fc.assert(
    fc.property(anyStore, reads(2), choices, (store, keys, stream) => {
      fc.pre(store.size < 100);
      expect(carryOut(store, keys, chooser(stream)).calls).toEqual(['all']);
    }),
    parameters,
  );
});

test('without gets, only lists are called, and only what they cannot prove is unprovable', () => {
  fc.assert(
    fc.property(anyStore, reads(1), choices, (store, keys, stream) => {
      const { calls, answers, unprovable } = carryOut(store, keys, chooser(stream), { mayGet: false });
      expect(calls.every(isList)).toBe(true);
      expect(calls.length).toBeLessThanOrEqual(LISTS.length);
      expect(unprovable.filter((key) => isProvable(key, store))).toEqual([]);
      const answered = keys.filter((key) => !unprovable.includes(key));
      for (const key of answered) expect(answers.get(key)).toEqual(direct(key, store));
    }),
    parameters,
  );
});

test('whatever lists have shown before, the answers are right, and each list is tried once at most', () => {
  const before = fc.record({ store: anyStore, lists: fc.uniqueArray(anyList) });
  const circumstances = fc.record({ before, mayGet: fc.boolean() });
  fc.assert(
    fc.property(anyStore, circumstances, reads(1), choices, (store, seen, keys, stream) => {
      const { calls, answers, unprovable } = carryOut(store, keys, chooser(stream), seen);
      expect(unprovable.filter((key) => seen.mayGet || isProvable(key, store))).toEqual([]);
      const answered = keys.filter((key) => !unprovable.includes(key));
      for (const key of answered) expect(answers.get(key)).toEqual(direct(key, store));
      expect(new Set(calls).size).toBe(calls.length);
      expect(calls.length).toBeLessThanOrEqual(keys.length + LISTS.length);
    }),
    parameters,
  );
});

test('pets of a large store that one list has shown and still shows cost one list', () => {
  const large = anyStore.filter(({ size }) => size > 110);
  fc.assert(
    fc.property(large, anyList, choices, fc.integer({ min: 1, max: 100 }), (store, list, stream, count) => {
      const ids = store
        .list(list)
        .pets.slice(0, count)
        .map(({ id }) => id);
      fc.pre(ids.length > 0);
      const { calls } = carryOut(store, ids, chooser(stream), { before: { store, lists: ['all', list] } });
      expect(calls).toHaveLength(1);
      expect(calls.every(isList)).toBe(true);
    }),
    parameters,
  );
});

test('whatever is known, each read waits for a call that may answer it', () => {
  const anyTried = fc.uniqueArray(fc.oneof(anyList, fc.constant('own' as const)));
  const anyReads = fc.uniqueArray(fc.record({ key: anyRead, tried: anyTried }), {
    minLength: 1,
    maxLength: 40,
    selector: ({ key }) => key,
  });
  const anyFacts = fc.record({
    hasCalled: fc.boolean(),
    mayGet: fc.boolean(),
    known: fc.uniqueArray(anyList),
  });
  fc.assert(
    fc.property(anyStore, anyFacts, anyReads, (store, { known, hasCalled, mayGet }, wanted) => {
      const facts: PlanFacts = {
        mayGet,
        hasCalledOther: () => hasCalled,
        sizeOf: (list) => sizeOf(known.includes(list) ? snapshotOf(list, store) : undefined),
        hasShown: (list, id) => (known.includes(list) ? store.list(list).pets.some((pet) => pet.id === id) : undefined),
      };
      // A list that is read for itself is never tried in vain.
      const pending = wanted.map(({ key, tried }) => ({
        key,
        tried: new Set(
          tried.map((call) => (call === 'own' ? key : call)).filter((call) => !isList(key) || call !== key),
        ),
      }));
      const { calls, unprovable } = planCalls(pending, facts);
      const planned = [...calls].flatMap(([call, waiting]) => waiting.map((read) => ({ call, read })));
      expect(planned.filter(({ call, read }) => !canAnswer(call, read, facts))).toEqual([]);
      expect(planned.length + unprovable.length).toBe(pending.length);
    }),
    parameters,
  );
});
