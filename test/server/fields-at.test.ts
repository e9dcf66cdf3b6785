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

test('of a set that is alone at its place, the fields are collected once, whoever spreads it', () => {
  const { selectionSet, fieldsAt } = collected(
    '{ ...A } fragment A on Query { ...B } fragment B on Query { pets { id } }',
  );
  const document = parse('{ ...B }');
  expect([...fieldsAt([selectionSet]).keys()]).toEqual(['pets']);
  expect(fieldsAt([selectionSet])).toBe(fieldsAt([selectionSet]));
  const fragments = fragmentsOf(parse('fragment A on Query { ...B } fragment B on Query { pets { id } }'));
  const both = createFieldsAt(fragments);
  const [{ selectionSet: other }] = document.definitions as [OperationDefinitionNode];
  expect(both([selectionSet])).toBe(both([other]));
});

test('a fragment of nothing but itself has no fields', () => {
  const { selectionSet, fieldsAt } = collected('{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }');
  expect([...fieldsAt([selectionSet])]).toEqual([]);
});

test('nothing is collected any more once as much was looked at as may be', () => {
  const document = parse('{ a { ...F } b { ...F } c { ...F } } fragment F on Pet { id name status }');
  const looks = { left: 12 };
  const fieldsAt = createFieldsAt(fragmentsOf(document), looks);
  const [{ selectionSet }] = document.definitions as [OperationDefinitionNode];
  const places = [...fieldsAt([selectionSet]).values()].map((fields) => [...fieldsAt(setsBelow(fields)).keys()]);
  expect(looks.left).toBeLessThan(12);
  // The same fragment is the same place, so that all three are had for the first one's looks.
  expect(places).toEqual(Array.from({ length: 3 }, () => ['id', 'name', 'status']));
  const wide = parse(`{ ${'a { id ...F } '.repeat(9)} b { id ...F } } fragment F on Pet { id name status }`);
  const few = { left: 12 };
  const narrow = createFieldsAt(fragmentsOf(wide), few);
  const [{ selectionSet: root }] = wide.definitions as [OperationDefinitionNode];
  const [first = [], second = []] = [...narrow([root]).values()];
  expect(narrow(setsBelow(first)).size).toBe(3);
  expect(few.left).toBeLessThan(0);
  expect(narrow(setsBelow(second)).size).toBe(0);
});
