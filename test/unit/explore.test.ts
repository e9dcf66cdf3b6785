import { expect, test } from 'vitest';
import { SCENARIOS } from '../verify/explore/scenarios.ts';

test.each(SCENARIOS)('no order of events breaks a rule: $name, $about', async ({ maxDepth, search }) => {
  const { isComplete, violation } = await search({ maxDepth: maxDepth.short, maxStates: 100_000 });
  expect(violation).toBeUndefined();
  expect(isComplete).toBe(true);
});
