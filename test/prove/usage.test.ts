import { expect, test } from 'vitest';
import type { Arrival } from './history.ts';
import { usageOfFixed, usageOfSliding } from './usage.ts';

const at = (...seconds: number[]): Arrival[] =>
  seconds.map((second) => ({
    key: 'a key',
    atMs: second * 1_000,
    answeredAtMs: second * 1_000,
    method: 'POST',
    name: undefined,
    status: 201,
    retryAfterMs: undefined,
  }));
const span = { fromMs: 60_000, minutes: 2 };

test('of fixed windows, the calls of the span count, and those that were refused do not', () => {
  const refused = at(100).map((arrival) => ({ ...arrival, status: 429 }));
  expect(usageOfFixed([...at(59, 60, 100, 179, 180), ...refused], 2, span)).toEqual({ sent: 3, allowed: 4 });
});

test('of a sliding window, a call counts for the part of its minute that lies in the span', () => {
  // A whole one, the half of one that begins before, and the half of one that ends after.
  expect(usageOfSliding(at(70, 30, 150), 2, span)).toEqual({ sent: 2, allowed: 4 });
});

test('of a sliding window, a burst every minute fills it, wherever the span begins', () => {
  for (const shift of [0, 13, 59]) {
    const bursts = [-60, 0, 60, 120, 180].flatMap((second) => [second + shift, second + shift]);
    expect(usageOfSliding(at(...bursts), 2, span)).toEqual({ sent: 4, allowed: 4 });
  }
});

test('of a sliding window, what is late by a quarter of it fills it less', () => {
  const bursts = Array.from({ length: 12 }, (_, index) => index * 75 - 75);
  const { sent, allowed } = usageOfSliding(
    at(...bursts.flatMap((second) => Array.from({ length: 100 }, () => second))),
    100,
    {
      fromMs: 0,
      minutes: 10,
    },
  );
  expect(sent / allowed).toBe(0.8);
});
