import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createCallerTable } from '../../src/caller/caller-table.ts';
import type { CallerTable } from '../../src/caller/caller-table.ts';

interface TestCaller {
  readonly key: string;
  isBusy(): boolean;
  leave(): void;
}

let nowMs: number;
let left: string[];
let table: CallerTable<TestCaller>;

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = 0;
  left = [];
  table = createCallerTable({ elapsed: () => nowMs }, 900_000);
});
afterEach(() => {
  table.close();
  vi.useRealTimers();
});

const see = (key: string, busy = false) =>
  table.get(key, () => ({ key, isBusy: () => busy, leave: () => void left.push(key) }));

test('a caller is the same one each time', () => {
  expect(see('a')).toBe(see('a'));
});

test('any number of strangers do not push out who came back, and are bounded themselves', () => {
  const regular = see('regular');
  nowMs += 1_000;
  see('regular');
  for (let stranger = 0; stranger < 50_000; stranger += 1) see(`stranger ${stranger}`);
  expect(see('regular')).toBe(regular);
  expect(table.all().length).toBeLessThan(5_000);
  expect(left[0]).toBe('stranger 0');
});

test('whoever waits for something stays', () => {
  const busy = see('busy', true);
  for (let stranger = 0; stranger < 10_000; stranger += 1) see(`stranger ${stranger}`);
  expect(see('busy')).toBe(busy);
});

test('whoever was not heard of for long is forgotten, and told so', () => {
  const early = see('early');
  see('early');
  nowMs = 800_000;
  const late = see('late');
  nowMs = 1_000_000;
  vi.advanceTimersByTime(60_000);
  expect(left).toEqual(['early']);
  expect(see('late')).toBe(late);
  expect(see('early')).not.toBe(early);
});

test('those asked for last come first', () => {
  for (const key of ['a', 'b', 'a', 'c', 'b']) {
    nowMs += 1_000;
    see(key);
  }
  expect(table.all().map(({ key }) => key)).toEqual(['b', 'c', 'a']);
});

test('whoever is asked for while a thousand strangers wait is one caller all the same', () => {
  for (let stranger = 0; stranger < 2_000; stranger += 1) see(`stranger ${stranger}`, true);
  expect(see('a')).toBe(see('a'));
});
