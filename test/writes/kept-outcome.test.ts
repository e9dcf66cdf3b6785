import { expect, test } from 'vitest';
import { keptOutcome, outcomeAgain } from '../../src/caller/kept-outcome.ts';
import type { CreateOutcome } from '../../src/caller/created.ts';
import type { Int64 } from '../../src/int64.ts';
import type { NewPet } from '../../src/pet.ts';

const submitted = (name: string): NewPet => ({ name, categoryId: '3' as Int64, status: undefined });
const added = (name: string): CreateOutcome => ({ pet: { ...submitted(name), id: '9007199254740993' as Int64 } });
const MEGABYTE = 'x'.repeat(1_000_000);

test.each<[string, CreateOutcome, string]>([
  ['an animal', added('Momo'), 'Momo'],
  ['an animal whose name the service has changed', added('MOMO'), 'Momo'],
  ['an animal with a name of a megabyte', added(MEGABYTE), MEGABYTE],
  ['a refusal', { refusal: { code: 'invalid', message: 'no' } }, MEGABYTE],
  ['an unknown outcome', { unknown: { status: 503 } }, MEGABYTE],
])('%s comes again as it was, and takes little room', (_what, outcome, name) => {
  const kept = keptOutcome(outcome, submitted(name));
  expect(kept.length).toBeLessThan(500);
  expect(outcomeAgain(kept, submitted(name))).toEqual(outcome);
});

test('of a long name that was not submitted nothing is kept, and nothing is made up', () => {
  const kept = keptOutcome(added(MEGABYTE), submitted('Momo'));
  expect(outcomeAgain(kept, submitted('Momo'))).toEqual({ unknown: {} });
});
