import { expect, test } from 'vitest';
import { readFreshness } from '../../src/caller/freshness.ts';

const DEFAULTS = { maxAgeMs: 1_000, maxStaleMs: 600_000 };
const USUAL = { ...DEFAULTS, joinsSentMs: Infinity, mayCall: true, spares: true };

test.each<[string | undefined, object]>([
  [undefined, USUAL],
  ['', USUAL],
  ['private, something-else=1', USUAL],
  ['no-cache', { maxAgeMs: -1, maxStaleMs: -1, joinsSentMs: 0, mayCall: true, spares: false }],
  ['No-Cache, max-age=60', { maxAgeMs: -1, maxStaleMs: -1, joinsSentMs: 0, mayCall: true, spares: false }],
  ['no-store', { maxAgeMs: -1, maxStaleMs: -1, joinsSentMs: 0, mayCall: true, spares: false }],
  ['max-age=0', { maxAgeMs: 0, maxStaleMs: 0, joinsSentMs: 0, mayCall: true, spares: false }],
  ['max-age=30', { maxAgeMs: 30_000, maxStaleMs: 30_000, joinsSentMs: 30_000, mayCall: true, spares: false }],
  ['max-age="30"', { maxAgeMs: 30_000, maxStaleMs: 30_000, joinsSentMs: 30_000, mayCall: true, spares: false }],
  ['max-age=30, max-stale=60', { ...USUAL, maxAgeMs: 30_000, maxStaleMs: 90_000, joinsSentMs: 30_000, spares: false }],
  ['max-stale=60', { ...USUAL, maxStaleMs: 61_000 }],
  ['max-stale', { ...USUAL, maxStaleMs: Infinity }],
  ['only-if-cached', { ...USUAL, mayCall: false }],
  ['only-if-cached, max-stale=5', { ...USUAL, maxStaleMs: 6_000, mayCall: false }],
  ['max-age=soon', USUAL],
  ['max-age=-5', USUAL],
  ['max-age = " 30 "', { maxAgeMs: 30_000, maxStaleMs: 30_000, joinsSentMs: 30_000, mayCall: true, spares: false }],
  // As long as a header may be: a pattern could take an hour for it.
  [`a=${' '.repeat(16_000)}x"x`, USUAL],
])('Cache-Control: %s', (header, expected) => {
  expect(readFreshness(header, DEFAULTS)).toEqual(expected);
});
