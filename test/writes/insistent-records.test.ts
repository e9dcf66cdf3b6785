import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createInsistentRecords } from '../../src/store/insistent-records.ts';
import type { Records } from '../../src/store/records.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { StoreAway } from '../../src/store/store-away.ts';

let store: Records;
let away: boolean;
let records: Records;

beforeEach(() => {
  vi.useFakeTimers();
  away = false;
  store = openStateFile(':memory:', Date.now).records;
  const unlessAway = () => (away ? Promise.reject(new StoreAway('away')) : Promise.resolve());
  records = createInsistentRecords({
    find: (name) => unlessAway().then(() => store.find(name)),
    begin: (name, one) => unlessAway().then(() => store.begin(name, one)),
    settle: (name, one, outcome) => unlessAway().then(() => store.settle(name, one, outcome)),
    release: (name, one) => unlessAway().then(() => store.release(name, one)),
    close: () => store.close(),
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const attempt = (id: string) => ({ id, input: 'input', leaseMs: 5_000 });

test('an outcome that the store does not take is known here, and is written when the store is back', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  expect(await records.find('name')).toMatchObject({ outcome: '"ours"' });
  await vi.advanceTimersByTimeAsync(10_000);
  away = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name')).toMatchObject({ outcome: '"ours"' });
});

test('a name that could not be released is free as soon as the store is back', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.release('name', attempt('a'));
  await expect(records.find('name')).rejects.toBeInstanceOf(StoreAway);
  away = false;
  expect(await records.begin('name', attempt('b'))).toEqual({ kind: 'begun' });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name')).toBeDefined();
});

test('what is not written yet is written at the end', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  away = false;
  await records.close();
  expect(await store.find('name')).toMatchObject({ outcome: '"ours"' });
});

test('of two attempts under a name that could not be released, both are', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.release('name', attempt('a'));
  await expect(records.begin('name', attempt('b'))).rejects.toBeInstanceOf(StoreAway);
  // Nobody knows whether it was written all the same.
  await records.release('name', attempt('b'));
  away = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name')).toBeUndefined();
  expect(await records.begin('name', attempt('c'))).toEqual({ kind: 'begun' });
});

test('what comes of an attempt does not undo what came of another', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  await records.release('name', attempt('b'));
  expect(await records.find('name')).toMatchObject({ outcome: '"ours"' });
  away = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name')).toMatchObject({ outcome: '"ours"' });
});

test('what ends later than the records is not written for ever', async () => {
  await records.begin('name', attempt('a'));
  await records.close();
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  expect(vi.getTimerCount()).toBe(0);
});
