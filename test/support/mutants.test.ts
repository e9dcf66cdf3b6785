import { expect, test } from 'vitest';
import { findStaleMutants } from '../verify/mutants.ts';

// In a folder that no mutant runs: the text of a planted one is gone.
test('each defect of the mutants can still be planted: its text is in src exactly once', async () => {
  const [row] = await findStaleMutants('each defect can be planted');
  expect(row?.looked).toBeGreaterThan(100);
  expect(row?.problems).toEqual([]);
});
