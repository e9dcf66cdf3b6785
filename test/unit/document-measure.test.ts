import { buildSchema, isObjectType, parse } from 'graphql';
import { describe, expect, test } from 'vitest';
import { sized } from '../../src/schema/field-size.ts';
import type { FieldSize } from '../../src/schema/field-size.ts';
import { maxCalls, measureDocument } from '../../src/server/plugins/document-measure.ts';

/** A pet has a shelter, which takes a call, and a name as long as a list; a query of a shelter reads two pets. */
const SCHEMA = buildSchema(`
  type Query { pets(limit: Int): [Pet] pet: Pet shelter: Shelter }
  type Mutation { add: Pet }
  type Pet { id: ID shelter: Shelter friends: [Pet] }
  type Shelter { id: ID pets: [Pet] }
`);

const SIZES: Readonly<Record<string, FieldSize>> = {
  'Query.pets': { use: 'list', items: 100, count: 1 },
  'Query.pet': { use: 'pet', items: 1, count: 1 },
  'Query.shelter': { use: 'pet', items: 1, count: 2 },
  'Pet.shelter': { use: 'pet', items: 1, count: 1 },
  'Pet.friends': { use: 'none', items: 10, count: 0 },
};

for (const [name, size] of Object.entries(SIZES)) {
  const [type = '', field = ''] = name.split('.');
  const owner = SCHEMA.getType(type);
  if (isObjectType(owner)) Object.assign(owner.getFields()[field] ?? {}, { extensions: sized(() => size) });
}

const measured = (text: string) => measureDocument(parse(text), SCHEMA);

/** The lists that may be tried for pets. */
const LISTS = 4;
const A_PET = 20;

describe('what a document may cost', () => {
  test('is multiplied by the items around it, whichever type its field is of', () => {
    expect(measured('{ pets { shelter { id } } }').uses).toMatchObject({ list: 1, pet: 100 });
    expect(measured('{ pets { friends { shelter { id } } } }').uses).toMatchObject({ list: 1, pet: 1_000 });
    expect(measured('{ pets { ...a } } fragment a on Pet { friends { ... { shelter { id } } } }').uses.pet).toBe(1_000);
    expect(measured('{ pets { shelter { id } } }').cost).toBe(1 + 100 * (1 + A_PET + 1));
  });

  test('is that of the field of its own type: fields of the same name on other types have their own', () => {
    expect(measured('{ shelter { id } }').uses.pet).toBe(2);
    expect(measured('{ pet { shelter { id } } }').uses.pet).toBe(2);
    expect(measured('{ shelter { pets { id } } }').uses).toMatchObject({ list: 0, pet: 2 });
    expect(measured('{ a: unknown { pets { id } } }').uses).toMatchObject({ list: 0, pet: 0 });
  });

  test('counts in the sum of calls, with the lists that may be tried', () => {
    expect(maxCalls(measured('{ pets { id } }').uses)).toBe(2);
    expect(maxCalls(measured('{ pets { shelter { id } } }').uses)).toBe(LISTS + 100);
    expect(maxCalls(measured('mutation { a: add { id } b: add { shelter { id } } }').uses)).toBe(2 + LISTS + 1);
  });

  test('says which calls a dry run cannot come to', () => {
    expect(maxCalls(measured('{ pets { id } pet { id } }').nested)).toBe(0);
    expect(maxCalls(measured('{ pets { shelter { id } } }').nested)).toBe(LISTS + 100);
    expect(measured('{ pet { shelter { id } } shelter { id } }').nested.pet).toBe(1);
  });

  test('is the largest of the operations, and ends in fragments of themselves', () => {
    expect(measured('query a { pet { id } } query b { shelter { id } }').uses.pet).toBe(2);
    expect(measured('{ pets { ...a } } fragment a on Pet { shelter { id } ...a }').uses.pet).toBe(100);
  });
});
