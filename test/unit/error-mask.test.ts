import { buildSchema, execute, parse } from 'graphql';
import type { ExecutionResult } from 'graphql';
import { expect, test } from 'vitest';
import { createErrorMask, finishedError } from '../../src/server/errors.ts';
import { createMemoryLog } from '../support/memory-log.ts';

const schema = buildSchema('enum Size { SMALL } type Query { grams(from: Int!): Int size: Size ids: [ID!] }');

test.each([
  ['an Int of more than 32 bits', '{ grams(from: 1) }', { grams: 2 ** 31 }],
  ['an enum value that the schema lacks', '{ size }', { size: 'huge' }],
  ['one id in place of a list', '{ ids }', { ids: '1' }],
])('%s is a failure of petql: masked, with its cause in the log', (_title, query, rootValue) => {
  const { log, lines } = createMemoryLog();
  const result = execute({ schema, document: parse(query), rootValue }) as ExecutionResult;
  const { message, path, extensions } = finishedError(createErrorMask(log)(result.errors?.[0]));
  expect([extensions['code'], path]).toEqual(['INTERNAL_SERVER_ERROR', [Object.keys(rootValue)[0]]]);
  expect(message).not.toMatch(/2147483648|huge|Iterable/);
  expect(lines).toMatchObject([{ id: extensions['id'], err: { message: result.errors?.[0]?.message } }]);
});

test('an argument that a variable makes null is the fault of the client', () => {
  const { log, lines } = createMemoryLog();
  const document = parse('query ($from: Int = 1) { grams(from: $from) }');
  const result = execute({ schema, document, variableValues: { from: null } }) as ExecutionResult;
  const { path, extensions } = finishedError(createErrorMask(log)(result.errors?.[0]));
  expect([extensions['code'], path, lines]).toEqual(['BAD_USER_INPUT', ['grams'], []]);
});
