import { expect, test } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import type { Limits } from '../../src/limits.ts';
import { createCheckedDocuments } from '../../src/server/checked-documents.ts';

const limits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, { fallback }]) => [name, fallback]),
) as unknown as Limits;
const open = (introspection = true) => createCheckedDocuments({ limits, introspection });

test('what one way has found out of a text, the other has at once', () => {
  const { parse, errors } = open();
  const document = parse('{ petz }');
  expect(parse('{ petz }')).toBe(document);
  expect(errors(document)).toHaveLength(1);
  expect(errors(parse('{ petz }'))).toBe(errors(document));
});

test('what is no document, or past a limit, is that each time', () => {
  const { parse } = open();
  for (let time = 0; time < 2; time += 1) {
    expect(() => parse('{')).toThrow(/Syntax Error/);
    expect(() => parse(`{ ${'pets '.repeat(101)} }`)).toThrow(/past a limit/);
  }
});

test('where the schema cannot be asked for, introspection is wrong', () => {
  const [closed, opened] = [open(false), open()];
  expect(closed.errors(closed.parse('{ __schema { description } }'))).toHaveLength(1);
  expect(opened.errors(opened.parse('{ __schema { description } }'))).toEqual([]);
});
