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

test('a text that is too long for all of it is not kept, and makes none forgotten', () => {
  const memory = createTextMemory(1_000);
  const texts = memory.forSelection();
  const [short, long] = [{}, {}];
  texts.keep(short, 'x'.repeat(700), 700);
  texts.keep(long, 'x'.repeat(5_000), 5_000);
  expect([texts.find(short), texts.find(long)]).toEqual(['x'.repeat(700), undefined]);
});

test('what is kept after all was forgotten counts too', () => {
  const memory = createTextMemory(1_000);
  const texts = memory.forSelection();
  const objects = [{}, {}, {}];
  for (const object of objects) texts.keep(object, 'x'.repeat(600), 600);
  expect(objects.map((object) => texts.find(object)?.length)).toEqual([undefined, undefined, 600]);
});
