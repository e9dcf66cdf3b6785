import { LRUCache } from 'lru-cache';

/** By a document's text, what was made of it. */
export interface DocumentCache<T> {
  get(text: string): T | undefined;
  set(text: string, value: T): void;
}

const MOST_DOCUMENTS = 1000;

/** Bounded by what it holds, not only by how many: a stranger can send a thousand documents of the longest kind. */
const MOST_BYTES = 48_000_000;

/** What is kept of a token: itself, and its share of the tree. Measured; so a document of 6 KB takes 600 KB. */
const BYTES_OF_TOKEN = 300;

/** Of texts that came once. */
const MOST_SEEN_BYTES = 4_000_000;

/**
 * Keeps what was made of a text from the second time on that it is set: clients send the same few texts again and again.
 * What is made of texts that never come again is let go at once, before the collector has to move it.
 *
 * @param tokensOf how many tokens of the document it keeps. Default: none.
 */
export function createDocumentCache<T extends object>(tokensOf: (value: T) => number = () => 0): DocumentCache<T> {
  const seen = new LRUCache<string, true>({
    max: MOST_DOCUMENTS,
    maxSize: MOST_SEEN_BYTES,
    sizeCalculation: (_seen, text) => 2 * text.length + 1,
  });
  const kept = new LRUCache<string, T>({
    max: MOST_DOCUMENTS,
    maxSize: MOST_BYTES,
    sizeCalculation: (value, text) => 2 * text.length + BYTES_OF_TOKEN * tokensOf(value) + 1,
  });
  return {
    get: (text) => kept.get(text),
    set(text, value) {
      if (seen.delete(text)) kept.set(text, value);
      else seen.set(text, true);
    },
  };
}
