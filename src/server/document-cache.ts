import { LRUCache } from 'lru-cache';

const MOST_DOCUMENTS = 1000;

/** Bounded by what it holds, not only by how many: a stranger can send a thousand documents of the longest kind. */
const MOST_BYTES = 48_000_000;

/** What is kept of a token: itself, and its share of the tree. Measured; so a document of 6 KB takes 600 KB. */
const BYTES_OF_TOKEN = 300;

/**
 * A cache by a document's text, for what was made of it.
 *
 * @param tokensOf how many tokens of the document it keeps. Default: none.
 */
export function createDocumentCache<T extends object>(tokensOf: (value: T) => number = () => 0) {
  return new LRUCache<string, T>({
    max: MOST_DOCUMENTS,
    maxSize: MOST_BYTES,
    sizeCalculation: (value, text) => 2 * text.length + BYTES_OF_TOKEN * tokensOf(value) + 1,
  });
}
