import fc from 'fast-check';
import { parse, validate, visit } from 'graphql';
import { expect, test } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { FIELD_NAMES } from '../support/pet-api/contract.ts';
import { ROOT_FIELDS } from '../support/pet-documents.ts';
import { documents } from '../verify/fuzz/documents.ts';

const SAMPLES = 1_500;

/** Returns the names of the fields of a document; none where it is no valid one. */
function fieldsOfValid(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  try {
    const document = parse(text);
    if (validate(schema, document).length > 0) return names;
    visit(document, { Field: ({ name }) => void names.add(name.value) });
  } catch {
    // It is none at all.
  }
  return names;
}

test('the fuzzer writes valid documents too, with each field of a pet', () => {
  const valid = fc.sample(documents, { numRuns: SAMPLES, seed: 7 }).map(fieldsOfValid);
  const shareOf = (name: string) => valid.filter((names) => names.has(name)).length / SAMPLES;
  expect(valid.filter(({ size }) => size > 0).length / SAMPLES).toBeGreaterThan(0.1);
  expect([...FIELD_NAMES, ...Object.values(ROOT_FIELDS).flat()].filter((name) => shareOf(name) < 0.02)).toEqual([]);
});
