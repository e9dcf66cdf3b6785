import { expect, test } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import type { Limits } from '../../src/limits.ts';
import { parseWithin } from '../../src/server/parse-within.ts';

const limits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, { fallback }]) => [name, fallback]),
) as unknown as Limits;

// Each of two hundred errors goes through all of a line to its end: a comment of 100 KB was a tenth of a second.
test.each([
  ['500 lines', '\n'.repeat(498), '\n'.repeat(499)],
  ['10,000 characters', `#${'x'.repeat(9_989)}`, `#${'x'.repeat(9_990)}`],
])('what stands in a document is known to be where it is up to %s', (_most, short, long) => {
  expect(parseWithin(`{ pets }\n ${short}`, limits).loc).toBeDefined();
  expect(parseWithin(`{ pets }\n ${long}`, limits).loc).toBeUndefined();
});
