import { expect, test } from 'vitest';
import { readOpenApi } from './open-api.ts';
import type { OperationName } from '../support/pet-api/contract.ts';
import { wirePet } from '../support/pet-api/wire-pet.ts';

const operations = readOpenApi();
const ERROR = '{"code":"any","message":"any","status":400}';
const PET = '{"id":9223372036854775807,"name":"Ada","categoryId":-9223372036854775808,"status":"sold"}';
const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'x-ratelimit-limit': '60',
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': '1893456000',
};

test.for([
  ['listPets', 200, `[${PET}]`],
  ['listPets', 401, ERROR],
  ['createPet', 201, PET],
  ['createPet', 400, ERROR],
  ['createPet', 401, ERROR],
  ['getPet', 200, PET],
  ['getPet', 401, ERROR],
  ['getPet', 404, ERROR],
] as const)('%s with %s needs the rate-limit headers, JSON and its content type', ([operation, status, text]) => {
  expect(problems(operation, status, text)).toEqual([]);
  for (const name of ['limit', 'remaining', 'reset']) {
    for (const value of [null, '', '-1', '1.5', 'many']) {
      expect(problems(operation, status, text, { [`x-ratelimit-${name}`]: value })).toHaveLength(1);
    }
  }
  expect(problems(operation, status, text.slice(1))).toEqual([expect.stringContaining('expected JSON')]);
  const isAboutType = expect.stringContaining('Content-Type: expected application/json');
  for (const type of [null, 'text/html', 'application/problem+json']) {
    expect(problems(operation, status, text, { 'content-type': type })).toEqual([isAboutType]);
  }
});

test.for([
  ['no object', '[]', 'object'],
  ['no id', wirePet({ id: undefined }), 'id'],
  ['no name', wirePet({ name: undefined }), 'name'],
  ['no categoryId', wirePet({ categoryId: undefined }), 'categoryId'],
  ['an id of digits in quotes', wirePet({ id: '"1"' }), 'id'],
  ['an id with a fraction', wirePet({ id: '1.5' }), 'id'],
  ['an id above int64', wirePet({ id: '9223372036854775808' }), 'id'],
  ['an unknown status', wirePet({ status: '"lost"' }), 'status'],
  ['null for a status', wirePet({ status: 'null' }), 'status'],
] as const)('a pet with %s is a problem, alone and in a list', ([, pet, word]) => {
  const isAbout: unknown = expect.arrayContaining([expect.stringContaining(word)]);
  expect(problems('getPet', 200, wirePet())).toEqual([]);
  expect(problems('getPet', 200, pet)).toEqual(isAbout);
  expect(problems('createPet', 201, pet)).toEqual(isAbout);
  expect(problems('listPets', 200, `[${PET},${pet}]`)).toEqual(isAbout);
});

test('an Error without one of its fields is a problem', () => {
  for (const error of ['{"code":"a","message":"b"}', '{"code":"a","status":404}', '{"message":"b","status":404}']) {
    expect(problems('getPet', 404, error)).toHaveLength(1);
  }
});

test('a status that the operation does not have is a problem', () => {
  expect(problems('listPets', 404, ERROR)).toEqual([expect.stringContaining('expected one of 200, 401, 429')]);
  expect(problems('createPet', 200, PET)).toHaveLength(1);
});

test('a 429 needs Retry-After, in seconds or until a date, and may have any JSON for its body', () => {
  for (const wait of ['30', 'Thu, 05 Dec 2030 00:00:00 GMT']) {
    expect(problems('listPets', 429, '"slow down"', { 'retry-after': wait })).toEqual([]);
  }
  for (const wait of [null, '', 'soon', '-1']) {
    expect(problems('listPets', 429, ERROR, { 'retry-after': wait })).toHaveLength(1);
  }
});

test('getPet alone has a sunset, on 5 December 2030', () => {
  expect(operations.getPet.sunsetAtMs).toBe(Date.UTC(2030, 11, 5));
  expect(operations.listPets.sunsetAtMs).toBeUndefined();
});

function problems(
  operation: OperationName,
  status: number,
  text: string,
  headers: Readonly<Record<string, string | null>> = {},
): string[] {
  const given = Object.entries({ ...HEADERS, ...headers }).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  );
  return operations[operation].problems({ status, headers: new Headers(given), text });
}
