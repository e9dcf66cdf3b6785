import { expect, test } from 'vitest';
import { createTextMemory } from '../../src/server/text-memory.ts';

test('a text is found for its object alone, and for the selection that it was written for', () => {
  const memory = createTextMemory();
  const [one, other] = [memory.forSelection(), memory.forSelection()];
  const object = {};
  one.keep(object, 'written', 7);
  expect([one.find(object), one.find({}), other.find(object)]).toEqual(['written', undefined, undefined]);
});

test('past its size all is forgotten, of selections that are asked for no more too', () => {
  const memory = createTextMemory(1_000);
  const [idle, busy] = [memory.forSelection(), memory.forSelection()];
  const object = {};
  idle.keep(object, 'x'.repeat(700), 700);
  busy.keep(object, 'x'.repeat(300), 300);
  expect([idle.find(object), busy.find(object)]).toEqual([undefined, 'x'.repeat(300)]);
});
