import { expect, test } from 'vitest';
import { findStaleMutants } from '../verify/mutants.ts';

// `npm run verify -- mutants` plants them.
test('each defect of the mutants can still be planted', async () => {
  const [row] = await findStaleMutants('');
  expect(row?.problems).toEqual([]);
  expect(row?.looked).toBeGreaterThan(100);
});
