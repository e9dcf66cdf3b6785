import { expect, test } from 'vitest';
import { createGrowingBuffer } from '../src/growing-buffer.ts';

test('gives back all that came, in its order, and copies it', () => {
  const buffer = createGrowingBuffer({ mostBytes: 100, firstBytes: 2 });
  const piece = Buffer.from('ab');
  buffer.add(piece);
  piece.fill('x');
  const before = buffer.bytes();
  for (const text of ['c', '', 'defgh', 'i']) buffer.add(Buffer.from(text));
  expect(buffer.bytes().toString()).toBe('abcdefghi');
  expect(before.toString()).toBe('ab');
});

test('takes twice of what came at most, and no more than the most but for what is longer', () => {
  const buffer = createGrowingBuffer({ mostBytes: 1_000, firstBytes: 16 });
  expect(buffer.capacity).toBe(0);
  for (let length = 1; length <= 1_000; length += 1) {
    buffer.add(Buffer.from('x'));
    expect(buffer.capacity).toBeLessThanOrEqual(Math.min(1_000, Math.max(16, 2 * length)));
  }
  buffer.add(Buffer.alloc(5_000));
  expect(buffer.bytes()).toHaveLength(6_000);
});
