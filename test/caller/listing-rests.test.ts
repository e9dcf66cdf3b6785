import { expect, test } from 'vitest';
import { createListingRests } from '../../src/caller/listing-rests.ts';

function start() {
  let nowMs = 0;
  const rests = createListingRests({ elapsed: () => nowMs });
  return { ...rests, shown: () => [...rests.resting()], pass: (ms: number) => void (nowMs += ms) };
}

test('a failure that may pass is none yet; the more there are in a row, the more a listing must help', () => {
  const rests = start();
  rests.failed('all', 'passing');
  expect(rests.shown()).toEqual([]);
  rests.failed('all', 'passing');
  expect(rests.shown()).toEqual([['all', 4]]);
  expect(rests.resting()).toBe(rests.resting());
  // It must help so many now, and rests no longer than it did: both were sent before.
  rests.failed('all', 'passing');
  expect(rests.shown()).toEqual([['all', 8]]);
  rests.pass(1_000);
  expect(rests.shown()).toEqual([]);
  rests.failed('all', 'passing');
  rests.pass(1_999);
  expect(rests.shown()).toEqual([['all', 16]]);
  rests.pass(1);
  expect(rests.shown()).toEqual([]);
});

test('a listing that breaks the contract rests at once, ever longer up to an hour, until it comes', () => {
  const rests = start();
  rests.failed('sold', 'call');
  expect(rests.shown()).toEqual([['sold', 32]]);
  for (let day = 0; day < 24; day += 1) {
    rests.pass(3_600_000);
    expect(rests.shown()).toEqual([]);
    rests.failed('sold', 'call');
  }
  rests.pass(3_599_999);
  expect(rests.shown()).toEqual([['sold', 128]]);
  rests.came('sold');
  expect(rests.shown()).toEqual([]);
});

test('what spoils every call is no reason to leave a listing to rest', () => {
  const rests = start();
  for (let call = 0; call < 9; call += 1) rests.failed('all', 'service');
  expect(rests.shown()).toEqual([]);
});
