import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonLength } from '../../src/server/answer-limit.ts';

test('a value is as long as its JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(jsonLength(value)).toBe(JSON.stringify(value).length);
    }),
  );
});

test('what is longer than it may be is not gone through to its end', () => {
  const looked: number[] = [];
  const list = Array.from({ length: 1_000 }, (_, index) => ({
    get name() {
      looked.push(index);
      return 'x'.repeat(100);
    },
  }));
  expect(jsonLength(list, 1_000)).toBeGreaterThan(1_000);
  expect(looked.length).toBeLessThan(20);
});
