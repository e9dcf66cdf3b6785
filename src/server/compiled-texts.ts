import { LRUCache } from 'lru-cache';
import type { TextOf } from './compiled-text.ts';

/** What was compiled of operations, for all of them together. */
export interface CompiledTexts {
  /** That of one operation, for each outcome of its conditions. */
  forOperation(): OperationTexts;
}

export interface OperationTexts {
  get(outcome: string): TextOf | undefined;
  /** @param fields how many it writes. */
  set(outcome: string, text: TextOf, fields: number): void;
}

/** A field takes about a kilobyte. A document of some kilobytes may have a hundred operations, with sixteen outcomes each. */
const MOST_FIELDS = 50_000;

/** Forgets what was not used for the longest time: it is compiled anew. */
export function createCompiledTexts(mostFields = MOST_FIELDS): CompiledTexts {
  const texts = new LRUCache<string, TextOf>({ maxSize: mostFields });
  let operations = 0;
  return {
    forOperation() {
      const operation = (operations += 1);
      return {
        get: (outcome) => texts.get(`${operation} ${outcome}`),
        set: (outcome, text, fields) => texts.set(`${operation} ${outcome}`, text, { size: fields + 1 }),
      };
    },
  };
}
