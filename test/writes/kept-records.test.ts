import { DatabaseSync } from 'node:sqlite';
import { beforeEach, expect, test } from 'vitest';
import { createKeptRecords } from '../../src/store/kept-records.ts';
import { StoreAway } from '../../src/store/store-away.ts';

const DAY_MS = 86_400_000;

let nowMs: number;
let database: DatabaseSync;

beforeEach(() => {
  nowMs = Date.UTC(2026, 10, 21, 12);
  database = new DatabaseSync(':memory:');
});

const open = (most?: number) =>
  createKeptRecords({ database, now: () => nowMs, ...(most === undefined ? {} : { most }) });
const attempt = (id: string) => ({ id, input: 'input', leaseMs: 5_000 });

test('a record lives for a day from its beginning', async () => {
  const records = open();
  await records.begin('name', attempt('a'));
  nowMs += 4_000;
  await records.settle('name', attempt('a'), '"ours"');
  nowMs += DAY_MS - 4_001;
  expect(await records.find('name', 'input')).toMatchObject({ outcome: '"ours"' });
  nowMs += 1;
  expect(await records.find('name', 'input')).toBeUndefined();
  expect(await records.begin('name', attempt('b'))).toEqual({ kind: 'begun' });
});

test('a full store refuses what is new rather than forget what lives, and says when there is a place', async () => {
  const records = open(2);
  await records.begin('one', attempt('a'));
  nowMs += 1_000;
  await records.begin('two', attempt('b'));
  expect(await records.begin('two', attempt('c'))).toEqual({ kind: 'taken' });
  expect(await records.begin('three', attempt('d'))).toEqual({ kind: 'full', freeInMs: DAY_MS - 1_000 });
  expect(await records.find('one', 'input')).toBeDefined();
  await records.release('one', attempt('a'));
  expect(await records.begin('three', attempt('d'))).toEqual({ kind: 'begun' });
  expect(await records.begin('four', attempt('e'))).toMatchObject({ kind: 'full' });
  nowMs += DAY_MS;
  expect(await records.begin('four', attempt('e'))).toEqual({ kind: 'begun' });
});

test('a store that is opened again is as full as it was, and knows that nobody is at it any more', async () => {
  const before = open(2);
  await before.begin('settled', attempt('a'));
  await before.settle('settled', attempt('a'), '"ours"');
  await before.begin('begun', attempt('b'));
  const after = open(2);
  expect(await after.find('settled', 'input')).toMatchObject({ outcome: '"ours"' });
  expect(await after.find('begun', 'input')).toEqual({ isSame: true, outcome: undefined, openForMs: 0 });
  expect(await after.begin('new', attempt('c'))).toMatchObject({ kind: 'full' });
});

test('a store that cannot be written is away', async () => {
  const records = open();
  database.exec('PRAGMA query_only = 1');
  await expect(records.begin('name', attempt('a'))).rejects.toBeInstanceOf(StoreAway);
});
