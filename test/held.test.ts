import { expect, test } from 'vitest';
import { held } from '../src/held.ts';

test('what was found is told for as long as it is held, and looked for again after that', () => {
  let nowMs = 0;
  let looks = 0;
  const find = held(1_000, { elapsed: () => nowMs }, () => (looks += 1));
  expect([find(), find()]).toEqual([1, 1]);
  nowMs = 999;
  expect(find()).toBe(1);
  nowMs = 1_000;
  expect([find(), find()]).toEqual([2, 2]);
});
