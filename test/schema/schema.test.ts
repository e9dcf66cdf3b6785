import { readFile } from 'node:fs/promises';
import {
  isEnumType,
  isInputObjectType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  printSchema,
} from 'graphql';
import { expect, test } from 'vitest';
import { schema } from '../../src/schema/schema.ts';

test('schema/schema.graphql is the printed schema; npm run schema updates it', async () => {
  const checkedIn = await readFile(new URL('../../schema/schema.graphql', import.meta.url), 'utf8');
  expect(checkedIn).toBe(`${printSchema(schema)}\n`);
});

test('the schema says what petql is and what extensions.petql means', () => {
  const terms = ['petql reads and adds pets', 'upstreamCalls', 'savedCalls', 'oldestAgeMs', 'staleReason', 'dryRun'];
  for (const term of terms) expect(schema.description).toContain(term);
});

test('every type, field, argument, input field and enum value has a description', () => {
  const ownTypes = Object.values(schema.getTypeMap()).filter(
    (type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type),
  );
  expect(ownTypes.length).toBeGreaterThan(5);
  for (const type of ownTypes) {
    const fields = isObjectType(type) || isInputObjectType(type) ? Object.values(type.getFields()) : [];
    const args = fields.flatMap((field) => ('args' in field ? field.args : []));
    const values = isEnumType(type) ? type.getValues() : [];
    const bare = [type, ...fields, ...args, ...values].filter(({ description }) => !description);
    expect([type.name, bare.map(({ name }) => name)]).toEqual([type.name, []]);
  }
});

test('each root field may be null: a dry run has nothing else, and where one fails, the fields beside it keep their results', () => {
  const roots = [schema.getQueryType(), schema.getMutationType()].flatMap((type) =>
    Object.values(type?.getFields() ?? {}),
  );
  expect(roots.length).toBeGreaterThan(4);
  expect(roots.filter(({ type }) => isNonNullType(type)).map(({ name }) => name)).toEqual([]);
});
