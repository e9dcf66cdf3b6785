import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isSamePet, petBytes } from '../../src/pets/pet.ts';
import type { Pet } from '../../src/pets/pet.ts';
import { createPetDecoders } from '../../src/pets/wire.ts';
import { valueAt, withValueAt } from '../support/json-path.ts';
import type { JsonPath } from '../support/json-path.ts';
import { FIELD_NAMES } from '../support/pet-api/contract.ts';
import { wirePet } from '../support/pet-api/wire-pet.ts';
import { chooseSeed } from '../support/seed.ts';

const { pet: decode } = createPetDecoders({ onUnknownValue() {}, onLeftOut() {} });
const decoded = (): Pet => decode(Buffer.from(wirePet()));

/** Returns the paths of all values that hold no others, also those of objects in the pet. */
function leavesOf(value: unknown, path: JsonPath = []): JsonPath[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, [...path, name]));
}

const LEAVES = leavesOf(decoded());
const BYTES_OF_A_CHARACTER = 2;

test('a pet from the wire has each field of the contract', () => {
  expect(Object.keys(decoded())).toEqual(FIELD_NAMES);
  expect(Object.values(decoded())).not.toContain(undefined);
});

test('two equal pets are the same, and weigh the same', () => {
  expect(isSamePet(decoded(), decoded())).toBe(true);
  expect(petBytes(decoded())).toBe(petBytes(decoded()));
});

describe.each(LEAVES.map((path) => [path.join('.'), path] as const))('where %s changes', (_name, path) => {
  test('the pet is another one: clients see the change', () => {
    const longer = fc.string({ minLength: 1 });
    fc.assert(
      fc.property(longer, (text) => {
        const changed = withValueAt(decoded(), path, (before) => before + text) as Pet;
        expect(isSamePet(decoded(), changed)).toBe(false);
        expect(isSamePet(changed, decoded())).toBe(false);
      }),
      { seed: chooseSeed() },
    );
    const lacking = withValueAt(decoded(), path, () => undefined) as Pet;
    expect(isSamePet(decoded(), lacking)).toBe(false);
  });

  test.skipIf(typeof valueAt(decoded(), path) !== 'string')(
    'its weight grows with the text: the caches stay within their bounds',
    () => {
      const changed = withValueAt(decoded(), path, (before) => before + 'x'.repeat(5_000)) as Pet;
      expect(petBytes(changed) - petBytes(decoded())).toBe(5_000 * BYTES_OF_A_CHARACTER);
    },
  );
});
