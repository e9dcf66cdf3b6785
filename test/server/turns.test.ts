import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createTurns } from '../../src/server/turns.ts';

/** Work that takes so many milliseconds, on a clock of its own. */
function workshop() {
  let nowMs = 0;
  const done: number[] = [];
  const inTurn = createTurns(() => nowMs);
  const work = (name: number, tookMs: number, goesOn = false) =>
    inTurn(() => {
      nowMs += tookMs;
      done.push(name);
      return goesOn;
    });
  return { done, work };
}

test('what takes little runs at once', () => {
  const { done, work } = workshop();
  for (let name = 0; name < 10; name += 1) work(name, 0.1);
  expect(done).toHaveLength(10);
});

test('once a turn of the event loop is full, work waits for the next ones, in the order that it came', async () => {
  const { done, work } = workshop();
  for (let name = 0; name < 6; name += 1) work(name, 3);
  expect(done).toEqual([0, 1]);
  await setImmediate();
  expect(done).toEqual([0, 1, 2, 3]);
  // It does not pass those that wait.
  work(6, 0);
  await setImmediate();
  expect(done).toEqual([0, 1, 2, 3, 4, 5]);
  await setImmediate();
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6]);
  await setImmediate();
  work(7, 0);
  expect(done).toHaveLength(8);
});

test('what goes on in promises has a turn of its own, after whatever little there was', async () => {
  const { done, work } = workshop();
  work(0, 0.1);
  for (let name = 1; name < 4; name += 1) work(name, 0.1, true);
  work(4, 0.1);
  expect(done).toEqual([0, 1]);
  await setImmediate();
  expect(done).toEqual([0, 1, 2]);
  await setImmediate();
  expect(done).toEqual([0, 1, 2, 3]);
  await setImmediate();
  expect(done).toEqual([0, 1, 2, 3, 4]);
});
