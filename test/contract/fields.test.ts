import { describe, expect, test } from 'vitest';
import { bareNumber, parseLosslessJson } from '../../src/common/lossless-json.ts';
import { createPetDecoders } from '../../src/pets/wire.ts';
import { ContractBreach } from '../../src/upstream/json-body.ts';
import { valueAt, withValueAt } from '../support/json-path.ts';
import type { JsonPath } from '../support/json-path.ts';
import { NEW_PET_FIELD_NAMES } from '../support/pet-api/contract.ts';
import { wirePet } from '../support/pet-api/wire-pet.ts';
import { PET, asVariable } from '../support/pet-documents.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { startTestSandbox } from '../sandbox/start-test-sandbox.ts';

/*
 * Each field of the contract, also one that is added later: its values reach the pet API and come back as they are, and what is no
 * value of it is no pet.
 */

type Json = Record<string, any>;

/** No floating-point number has it. */
const LARGE = 9_007_199_254_740_993n;

/** A pet from the wire, with each int64 beyond the exact doubles. */
const EXACT = changed(parseLosslessJson(wirePet()), (leaf) => (typeof leaf === 'number' ? LARGE : leaf)) as Json;
const NEW = Object.fromEntries(NEW_PET_FIELD_NAMES.map((name) => [name, EXACT[name]]));

test('a new pet reaches the pet API as its client gives it, and its response the client', async () => {
  await using gateway = await startEmbedded();
  const input = asVariable(changed(NEW, (leaf) => (typeof leaf === 'bigint' ? String(leaf) : leaf)) as Json);
  const document = `mutation ($input: CreatePetInput!) { createPet(input: $input) { pet ${PET} } }`;
  const { data, errors } = await gateway.execute({ document, apiKey: 'demo-free', variables: { input } });
  expect(errors).toBeUndefined();
  const { pet } = (data as Json)['createPet'];
  expect(pet).toEqual({ id: expect.any(String), ...input });
  expect(parseLosslessJson(gateway.petApi.log[0]?.body ?? '')).toEqual(NEW);
  const { data: read } = await gateway.execute({
    document: `{ pet(id: "${pet.id}") ${PET} }`,
    apiKey: 'demo-free',
    cacheControl: 'no-cache',
  });
  expect(read).toEqual({ pet });
});

test('the sandbox shows a new pet as it came', async () => {
  await using sandbox = await startTestSandbox({ pets: [] });
  const { body } = await sandbox.call('POST /pets', { body: wire(NEW) });
  expect(body).toEqual({ ...NEW, id: 1 });
  expect((await sandbox.call('GET /pets/1')).body).toEqual(body);
  expect((await sandbox.call('GET /pets')).body).toEqual([body]);
});

const { pet: decode } = createPetDecoders({ onUnknownValue() {}, onLeftOut() {} });

describe.each(pathsOf(EXACT).map((path) => [path.join('.'), path] as const))('where %s', (_name, path) => {
  const decoded = (leaf: unknown) => decode(Buffer.from(wire(withValueAt(EXACT, path, () => leaf))));
  const value = valueAt(EXACT, path);

  test('is of another type, it is no pet', () => {
    const others = ['1', 7, 1.5, true, {}, [1], { some: 1 }];
    const isInt64 = (other: unknown) => typeof value === 'bigint' && Number.isInteger(other);
    const wrong = others.filter((other) => typeof other !== typeof value && !isInt64(other));
    const taken = wrong.filter((other) => {
      try {
        return decoded(other);
      } catch (error) {
        return !(error instanceof ContractBreach);
      }
    });
    expect(taken).toEqual([]);
  });

  test.skipIf(typeof value !== 'string')('has half an emoji, petql shows well-formed text', () => {
    expect(JSON.stringify(decoded('half \u{D83D}'))).not.toMatch(/\\ud[89a-f]/i);
  });
});

/** Returns the paths of all values, of objects and of what they hold. */
function pathsOf(value: object, path: JsonPath = []): JsonPath[] {
  return Object.entries(value).flatMap(([name, inner]) => [
    [...path, name],
    ...(inner && typeof inner === 'object' ? pathsOf(inner, [...path, name]) : []),
  ]);
}

function changed(value: unknown, change: (leaf: unknown) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return change(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, changed(inner, change)]));
}

function wire(value: unknown): string {
  return JSON.stringify(value, (_name, inner) => (typeof inner === 'bigint' ? bareNumber(String(inner)) : inner));
}
