import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LISTINGS } from '../../src/caller/call.ts';
import type { ListingName } from '../../src/caller/call.ts';
import type { Demand } from '../../src/caller/demand.ts';
import { animalFact, listingFact } from '../../src/caller/fact.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import type { Knowledge } from '../../src/caller/knowledge.ts';
import { createKnowledgeRoom } from '../../src/caller/knowledge-room.ts';
import type { Int64 } from '../../src/int64.ts';
import type { Pet } from '../../src/pet.ts';
import { modelPet } from './model-store.ts';

const idOf = (number: number) => String(number) as Int64;
const animal = (number: number): Demand => ({ kind: 'animal', id: idOf(number) });
const LONG = 'x'.repeat(10_000);
const longNamed = (number: number): Pet => ({ ...modelPet(number), name: LONG });
const learnLong = (knowledge: Knowledge, number: number) =>
  knowledge.learn(animalFact(idOf(number), longNamed(number), number));
const knownOf = (knowledge: Knowledge, numbers: readonly number[]) =>
  numbers.filter((number) => knowledge.find(animal(number)) !== undefined);
/** Three with long names, and not four. */
const THREE_LONG_BYTES = 70_000;

test('where the room is full, what was learnt longest ago goes first, of whichever caller', () => {
  const room = createKnowledgeRoom(THREE_LONG_BYTES);
  const [one, other] = [createKnowledge(room), createKnowledge(room)];
  learnLong(one, 1);
  learnLong(other, 2);
  learnLong(one, 3);
  learnLong(other, 4);
  learnLong(one, 5);
  expect([knownOf(one, [1, 3, 5]), knownOf(other, [2, 4])]).toEqual([[3, 5], [4]]);
});

test('listings go as animals do, and what is left is answered from', () => {
  const room = createKnowledgeRoom(THREE_LONG_BYTES);
  const [one, other] = [createKnowledge(room), createKnowledge(room)];
  one.learn(listingFact('all', [longNamed(1), longNamed(2)], true, 1));
  one.learn(listingFact('sold', [longNamed(3)], true, 2));
  learnLong(other, 4);
  expect(one.find({ kind: 'listing', listing: 'all' })).toBeUndefined();
  expect(one.listed(0)).toEqual(new Set(['sold']));
  expect(one.find(animal(3))?.pets).toEqual([longNamed(3)]);
});

test('an animal that was added is known to whoever comes after it, however long its name is', () => {
  const room = createKnowledgeRoom(THREE_LONG_BYTES);
  const [one, other] = [createKnowledge(room), createKnowledge(room)];
  learnLong(other, 1);
  const added = { ...modelPet(2), name: 'x'.repeat(1_000_000) };
  one.forget();
  one.learn(animalFact(added.id, added, 1));
  expect([one.find(animal(2))?.pets, knownOf(other, [1])]).toEqual([[added], []]);
});

test('a listing that many were answered takes its room once', () => {
  const room = createKnowledgeRoom(THREE_LONG_BYTES);
  const pets = [longNamed(1), longNamed(2)];
  const callers = Array.from({ length: 20 }, () => createKnowledge(room));
  for (const knowledge of callers) knowledge.learn(listingFact('all', pets, true, 0));
  expect(callers.every((knowledge) => knowledge.find(animal(1)))).toBe(true);
});

test('a caller whose knowledge has to go has another revision, so that no answer made of it is given again', () => {
  const room = createKnowledgeRoom(THREE_LONG_BYTES);
  const [one, other] = [createKnowledge(room), createKnowledge(room)];
  learnLong(one, 1);
  const before = one.revision();
  for (const number of [2, 3]) learnLong(other, number);
  expect(one.revision()).toBe(before);
  learnLong(other, 4);
  expect(one.revision()).not.toBe(before);
});

test('whatever was learnt, forgotten and let go, the room is as large as before', () => {
  const number = fc.integer({ min: 1, max: 8 });
  const shared = [longNamed(1), modelPet(2)];
  const step = fc.record({
    caller: fc.nat(2),
    what: fc.oneof(
      number.map((id) => (known: Knowledge) => learnLong(known, id)),
      number.map((id) => (known: Knowledge) => known.learn(animalFact(idOf(id), null, id))),
      fc.record({ listing: fc.constantFrom<ListingName>(...LISTINGS), own: fc.boolean(), asOfMs: fc.nat(5) }).map(
        ({ listing, own, asOfMs }) =>
          (known: Knowledge) =>
            known.learn(listingFact(listing, own ? [...shared] : shared, true, asOfMs)),
      ),
      fc.constant((known: Knowledge) => known.forget()),
    ),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const room = createKnowledgeRoom(THREE_LONG_BYTES);
      const callers = [createKnowledge(room), createKnowledge(room), createKnowledge(room)] as const;
      for (const { caller, what } of steps) what(callers[caller] as Knowledge);
      for (const knowledge of callers) knowledge.forget();
      const [one] = callers;
      for (const id of [11, 12, 13]) learnLong(one, id);
      expect(knownOf(one, [11, 12, 13])).toHaveLength(3);
      learnLong(one, 14);
      expect(knownOf(one, [11, 12, 13, 14])).toEqual([12, 13, 14]);
    }),
  );
});
