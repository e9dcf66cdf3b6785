import { LRUCache } from 'lru-cache';

/** Bounded by what it holds, not only by how many: a stranger can send a thousand documents of the longest kind. */
const MOST_CHARACTERS = 4_000_000;

/** A cache by a document's text, for what was made of it. */
export function createDocumentCache<T extends object>() {
  return new LRUCache<string, T>({
    max: 1000,
    maxSize: MOST_CHARACTERS,
    sizeCalculation: (_value, text) => text.length + 1,
  });
}
