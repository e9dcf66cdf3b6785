import { readFile } from 'node:fs/promises';
import { isEnumType, isInputObjectType, isObjectType, isSpecifiedScalarType, printSchema } from 'graphql';
import { expect, test } from 'vitest';
import { schema } from '../../src/schema/schema.ts';

const ownTypes = Object.values(schema.getTypeMap()).filter(
  (type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type),
);

test('schema/schema.graphql is the printed schema; npm run schema updates it', async () => {
  const checkedIn = await readFile(new URL('../../schema/schema.graphql', import.meta.url), 'utf8');
  expect(checkedIn).toBe(`${printSchema(schema)}\n`);
});

test('the schema says what petql is and what extensions.petql means', () => {
  for (const text of [
    'petql reads and adds pets',
    'upstreamCalls',
    'savedCalls',
    'oldestAgeMs',
    'staleReason',
    'dryRun',
  ]) {
    expect(schema.description).toContain(text);
  }
});

test('every type, field, argument, input field and enum value has a description', () => {
  const bare: string[] = [];
  const look = (name: string, described: { description?: string | null | undefined }) => {
    if (!described.description) bare.push(name);
  };
  for (const type of ownTypes) {
    look(type.name, type);
    if (isEnumType(type)) for (const value of type.getValues()) look(`${type.name}.${value.name}`, value);
    if (isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) look(`${type.name}.${field.name}`, field);
    }
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      look(`${type.name}.${field.name}`, field);
      for (const arg of field.args) look(`${type.name}.${field.name}(${arg.name}:)`, arg);
    }
  }
  expect(ownTypes.length).toBeGreaterThan(5);
  expect(bare).toEqual([]);
});
