import { parse } from 'graphql';
import type { FragmentDefinitionNode, OperationDefinitionNode } from 'graphql';
import { expect, test } from 'vitest';
import { createFieldsAt, setsBelow } from '../../src/server/fields-at.ts';
import { fragmentsOf } from '../../src/server/fragments.ts';

function collected(query: string) {
  const document = parse(query);
  const fieldsAt = createFieldsAt(fragmentsOf(document));
  const { selectionSet } = document.definitions[0] as OperationDefinitionNode;
  return { selectionSet, fieldsAt };
}

test('fields are collected through fragments, each fragment once at a place, and those that there are not left out', () => {
  const { selectionSet, fieldsAt } = collected(`
    { ...A pet(id: "1") { ...B ...B ...none } ... { a: pet(id: "2") { id } pet(id: "1") { name } } }
    fragment A on Query { ...A pet(id: "1") { ...B status } }
    fragment B on Pet { ...B id }`);
  const root = fieldsAt([selectionSet]);
  expect([...root].map(([name, fields]) => [name, fields.length])).toEqual([
    ['pet', 3],
    ['a', 1],
  ]);
  expect([...fieldsAt(setsBelow(root.get('pet') ?? [])).keys()].toSorted()).toEqual(['id', 'name', 'status']);
});

// Two thousand spreads of 10 KB, at each of a thousand places, were a tenth of a second.
test('what a fragment spreads over and over is looked at once, however many places it is part of', () => {
  const document = parse(
    `{ ${Array.from({ length: 400 }, (_, index) => `a${index} { ...F }`).join(' ')} }
    fragment F on Pet { ${'...F ...none '.repeat(1_000)} id }`,
  );
  const [operation, fragment] = document.definitions as [OperationDefinitionNode, FragmentDefinitionNode];
  let looks = 0;
  const { selections } = fragment.selectionSet;
  const selectionSet = {
    ...fragment.selectionSet,
    get selections() {
      looks += 1;
      return selections;
    },
  };
  const fieldsAt = createFieldsAt(new Map([['F', { ...fragment, selectionSet }]]));
  const places = [...fieldsAt([operation.selectionSet]).values()].map((fields) => setsBelow(fields));
  expect(places).toHaveLength(400);
  for (const sets of places) expect([...fieldsAt(sets).keys()]).toEqual(['id']);
  expect(looks).toBe(1);
});
