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

/**
 * Forgets what was not used for the longest time: it is compiled anew. What was compiled is held by its operation alone, and
 * goes with it: most documents of strangers never come again.
 */
export function createCompiledTexts(mostFields = MOST_FIELDS): CompiledTexts {
  const used = new LRUCache<string, { readonly own: WeakRef<Map<string, TextOf>>; readonly outcome: string }>({
    maxSize: mostFields,
    dispose: ({ own, outcome }) => void own.deref()?.delete(outcome),
  });
  let operations = 0;
  return {
    forOperation() {
      const operation = (operations += 1);
      const own = new Map<string, TextOf>();
      return {
        get(outcome) {
          used.get(`${operation} ${outcome}`);
          return own.get(outcome);
        },
        set(outcome, text, fields) {
          used.set(`${operation} ${outcome}`, { own: new WeakRef(own), outcome }, { size: fields + 1 });
          own.set(outcome, text);
        },
      };
    },
  };
}
