import { expect, test } from 'vitest';
import { SCENARIOS } from '../verify/explore/scenarios.ts';
import { search } from '../verify/explore/search.ts';

test.each(SCENARIOS)('no order of events breaks a rule: $name, $about', ({ maxDepth, model }) => {
  const { isComplete, violation } = search(model(), { maxDepth: maxDepth.short, maxStates: 100_000 });
  expect(violation).toBeUndefined();
  expect(isComplete).toBe(true);
});
