import { readFileSync } from 'node:fs';
import { GraphQLEnumType, GraphQLInputObjectType, GraphQLObjectType, buildSchema } from 'graphql';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { UPSTREAM_OPERATIONS } from '../../src/common/events.ts';
import { NEW_PET_FIELDS, PET_FIELD_NAMES, PET_STATUSES } from '../../src/pets/pet.ts';
import { FILTERS as KNOWN_FILTERS } from '../../src/pets/read-key.ts';
import {
  ENUM_NAMES,
  FIELDS,
  FIELD_NAMES,
  FILTERS,
  NEW_PET_FIELD_NAMES,
  OPERATIONS,
  OPERATION_NAMES,
  STATUSES,
  routeOf,
} from '../support/pet-api/contract.ts';
import type { OperationName } from '../support/pet-api/contract.ts';
import { PET, ROOT_FIELDS } from '../support/pet-documents.ts';
import { startEmbedded } from '../support/start-gateway.ts';

const read = (file: string) => readFileSync(new URL(`../../schema/${file}`, import.meta.url), 'utf8');
const enums = ENUM_NAMES.map((name) => FIELDS[name]);

describe('the contract of the double has', () => {
  test('the fields, filters and operations that petql knows', () => {
    expect(PET_FIELD_NAMES).toEqual(FIELD_NAMES);
    const isInt64 = (name: keyof typeof NEW_PET_FIELDS) => FIELDS[name].kind === 'int64';
    const newPet = NEW_PET_FIELD_NAMES.map((name) => [name, isInt64(name) ? 'int64' : 'text']);
    expect(Object.entries(NEW_PET_FIELDS)).toEqual(newPet);
    expect(PET_STATUSES).toEqual(STATUSES);
    expect(KNOWN_FILTERS).toEqual(FILTERS);
    expect(UPSTREAM_OPERATIONS.toSorted()).toEqual(OPERATION_NAMES.toSorted());
  });

  test('the fields that llms.txt names', () => {
    expect(read('../llms.txt')).toContain(
      `createPet(input: { ${[...NEW_PET_FIELD_NAMES, 'idempotencyKey'].join(', ')} })`,
    );
  });

  test('what the OpenAPI file has', () => {
    const { paths, components } = parse(read('pet-api.openapi.yaml'));
    const { Pet, NewPet } = components.schemas;
    const typeOf = (name: keyof typeof FIELDS) => {
      const field = FIELDS[name];
      switch (field.kind) {
        case 'enum':
          return { $ref: `#/components/schemas/${field.type}` };
        case 'text':
          return { type: 'string' };
        case 'int64':
          return { type: 'integer', format: 'int64' };
      }
    };
    const objectOf = (names: readonly (keyof typeof FIELDS)[]) => ({
      properties: Object.fromEntries(names.map((name) => [name, typeOf(name)])),
      required: names.filter((name) => FIELDS[name].kind !== 'enum'),
    });
    expect(Pet).toMatchObject(objectOf(FIELD_NAMES));
    expect(NewPet).toMatchObject(objectOf(NEW_PET_FIELD_NAMES));
    expect([Object.keys(Pet.properties), Object.keys(NewPet.properties)]).toEqual([FIELD_NAMES, NEW_PET_FIELD_NAMES]);
    for (const { type, values } of enums) expect(components.schemas[type].enum).toEqual(values);

    const found = Object.entries<any>(paths).flatMap(([path, item]) =>
      Object.entries<any>(item).map(([method, { operationId, parameters = [], responses }]) => {
        const success = Object.keys(responses).find((status) => status.startsWith('2')) ?? '';
        const query: { readonly name: string }[] = parameters.filter((parameter: any) => parameter.in === 'query');
        const call = { method: method.toUpperCase(), path, parameters: query.map(({ name }) => name) };
        return [operationId, { ...call, success: Number(success), hasBody: responses[success].content !== undefined }];
      }),
    );
    const known = OPERATION_NAMES.map((name) => {
      const { kind: _kind, isWrite: _isWrite, ...form } = OPERATIONS[name];
      return [name, form];
    });
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(known));
  });

  test('the fields, enums and filters of the GraphQL schema, and a root field for each operation', () => {
    const schema = buildSchema(read('schema.graphql'));
    const fieldsOf = (name: string) => {
      const type = schema.getType(name);
      const hasFields = type instanceof GraphQLObjectType || type instanceof GraphQLInputObjectType;
      return hasFields ? Object.keys(type.getFields()) : [];
    };
    expect(fieldsOf('Pet')).toEqual(FIELD_NAMES);
    expect(fieldsOf('CreatePetInput')).toEqual([...NEW_PET_FIELD_NAMES, 'idempotencyKey']);
    for (const { type, values } of enums) {
      const found = schema.getType(type);
      const names = found instanceof GraphQLEnumType ? found.getValues().map(({ name }) => name) : [];
      expect(names).toEqual(values.map((value) => value.toUpperCase()));
    }
    const lists = schema.getQueryType()?.getFields()['pets']?.args ?? [];
    expect(lists.map(({ name }) => name)).toEqual([...FILTERS, 'limit']);
    const roots = [...fieldsOf('Query'), ...fieldsOf('Mutation')];
    expect(roots.toSorted()).toEqual([...Object.values(ROOT_FIELDS).flat(), 'rateLimit'].toSorted());
    expect(UPSTREAM_OPERATIONS.filter((operation) => ROOT_FIELDS[operation].length === 0)).toEqual([]);
    const writes = OPERATION_NAMES.filter((operation) => OPERATIONS[operation].isWrite);
    expect(writes.flatMap((operation) => ROOT_FIELDS[operation])).toEqual(fieldsOf('Mutation'));
  });
});

/** A document for each operation: one that is missing does not compile. */
const DOCUMENTS: Readonly<Record<OperationName, string>> = {
  listPets: `{ pets(status: SOLD) ${PET} }`,
  getPet: `{ pet(id: 350) ${PET} }`,
  createPet: `mutation { createPet(input: { name: "Momo", categoryId: 1 }) { pet ${PET} } }`,
};

test.for(OPERATION_NAMES)('petql calls %s, and takes its success', async (operation) => {
  await using gateway = await startEmbedded();
  const { errors } = await gateway.execute({ document: DOCUMENTS[operation], apiKey: 'demo-free' });
  expect(errors).toBeUndefined();
  const { log } = gateway.petApi;
  expect(log.map(({ method, path }) => routeOf(method, path)?.operation)).toContain(operation);
  expect(log.map(({ status }) => status)).toContain(OPERATIONS[operation].success);
});
