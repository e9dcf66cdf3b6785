import { expect, test } from 'vitest';
import { createDocumentCache } from '../../src/server/document-cache.ts';

test('what was made of a text is kept from the second time on', () => {
  const cache = createDocumentCache<{ round: number }>();
  cache.set('text', { round: 1 });
  expect(cache.get('text')).toBeUndefined();
  cache.set('text', { round: 2 });
  expect(cache.get('text')).toEqual({ round: 2 });
});

test('texts that come once push out nothing of those that come again', () => {
  const cache = createDocumentCache<{ text: string }>(() => 5_000);
  for (const text of ['again', 'again']) cache.set(text, { text });
  for (let index = 0; index < 10_000; index += 1) cache.set(`once ${index}`, { text: `once ${index}` });
  expect(cache.get('again')).toEqual({ text: 'again' });
});
