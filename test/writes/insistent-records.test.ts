import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createInsistentRecords } from '../../src/store/insistent-records.ts';
import type { Attempt, Records } from '../../src/store/records.ts';
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
    find: (name, input) => unlessAway().then(() => store.find(name, input)),
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
  expect(await records.find('name', 'input')).toMatchObject({ outcome: '"ours"' });
  await vi.advanceTimersByTimeAsync(10_000);
  away = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name', 'input')).toMatchObject({ outcome: '"ours"' });
});

test('a name that could not be released is free as soon as the store is back', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.release('name', attempt('a'));
  await expect(records.find('name', 'input')).rejects.toBeInstanceOf(StoreAway);
  away = false;
  expect(await records.begin('name', attempt('b'))).toEqual({ kind: 'begun' });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name', 'input')).toBeDefined();
});

test('what is not written yet is written at the end', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  away = false;
  await records.close();
  expect(await store.find('name', 'input')).toMatchObject({ outcome: '"ours"' });
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
  expect(await store.find('name', 'input')).toBeUndefined();
  expect(await records.begin('name', attempt('c'))).toEqual({ kind: 'begun' });
});

test('what comes of an attempt does not undo what came of another', async () => {
  await records.begin('name', attempt('a'));
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  await records.release('name', attempt('b'));
  expect(await records.find('name', 'input')).toMatchObject({ outcome: '"ours"' });
  away = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await store.find('name', 'input')).toMatchObject({ outcome: '"ours"' });
});

test('what ends later than the records is not written for ever', async () => {
  await records.begin('name', attempt('a'));
  await records.close();
  away = true;
  await records.settle('name', attempt('a'), '"ours"');
  expect(vi.getTimerCount()).toBe(0);
});

test('of those whose store hangs, waiting for them ends all the same, and what is closed after them is', async () => {
  const hung: string[] = [];
  const hang = (name: string) => {
    hung.push(name);
    return new Promise<never>(() => {});
  };
  records = createInsistentRecords({ ...store, settle: hang, close: async () => void hung.push('closed') });
  void records.settle('name', attempt('a'), '"ours"');
  void records.settle('other', attempt('b'), '"theirs"');
  const closing = records.close();
  await vi.advanceTimersByTimeAsync(10_000);
  await closing;
  expect(hung).toEqual(['name', 'other', 'closed']);
});

test('many are written at a time, and those of one name one after the other', async () => {
  const names = Array.from({ length: 250 }, (_, index) => `name ${index}`);
  const written: string[] = [];
  const underWay: (() => void)[] = [];
  const write = (name: string, { id }: Attempt) => {
    if (away) return Promise.reject(new StoreAway('away'));
    written.push(`${name}: ${id}`);
    return new Promise<void>((resolve) => {
      underWay.push(resolve);
    });
  };
  records = createInsistentRecords({ ...store, settle: write, release: write });
  away = true;
  for (const name of names) {
    await records.release(name, attempt('first'));
    await records.settle(name, attempt('second'), '"ours"');
  }
  away = false;
  const atATime: number[] = [];
  const closing = records.close();
  for (let batch = underWay.splice(0); batch.length > 0; batch = underWay.splice(0)) {
    atATime.push(batch.length);
    for (const end of batch) end();
    // No time passes: nothing is given up.
    await vi.advanceTimersByTimeAsync(0);
  }
  await closing;
  expect(atATime).toEqual([100, 100, 100, 100, 50, 50]);
  expect(written.toSorted()).toEqual(names.flatMap((name) => [`${name}: first`, `${name}: second`]).toSorted());
  for (const name of names) {
    expect(written.indexOf(`${name}: first`)).toBeLessThan(written.indexOf(`${name}: second`));
  }
});

test('whoever comes to a name that is being written waits for that, and nothing is written twice', async () => {
  const asked: string[] = [];
  const slow = {
    ...store,
    async release(_name: string, { id }: Attempt) {
      asked.push(`release ${id}`);
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
    },
    begin(name: string, one: Attempt) {
      asked.push(`begin ${one.id}`);
      return store.begin(name, one);
    },
  };
  records = createInsistentRecords(slow);
  void records.release('name', attempt('a'));
  void records.release('name', attempt('b'));
  const begun = records.begin('name', attempt('c'));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await begun).toEqual({ kind: 'begun' });
  expect(asked).toEqual(['release a', 'release b', 'begin c']);
});

test('of animals with the longest names, only as many are known here as there is room for', async () => {
  const input = 'x'.repeat(1_000_000);
  away = true;
  for (let index = 0; index < 100; index += 1) {
    await records.settle(`name ${index}`, { ...attempt('a'), input }, '"ours"');
  }
  away = false;
  await records.close();
  expect(await store.find('name 50', input)).toBeUndefined();
  expect(await store.find('name 80', input)).toMatchObject({ isSame: true });
  expect(await store.find('name 99', input)).toMatchObject({ isSame: true });
});
