import type { Store } from './store.ts';

interface Document {
  readonly text: string;
  readonly expiresAtMs: number;
}

/** Documents looked at per update, in rotation, so that expired ones are evicted without a pause. */
const SWEPT_PER_UPDATE = 2;

/**
 * Keeps documents for as long as the process runs.
 *
 * @param nowMs milliseconds since the Unix epoch, never going back.
 */
export function createMemoryStore(nowMs: () => number): Store {
  const documents = new Map<string, Document>();
  let rotation = documents.entries();

  return {
    // Async: what a change throws becomes a rejection.
    async update(name, change) {
      const now = nowMs();
      sweep(now);
      const document = documents.get(name);
      const found = document && document.expiresAtMs > now ? document.text : undefined;
      const { text, ttlMs, result } = change(found, now);
      if (text === undefined) documents.delete(name);
      else if (text !== found) documents.set(name, { text, expiresAtMs: now + ttlMs });
      return result;
    },
    nowMs,
    async close() {},
  };

  function sweep(now: number): void {
    for (let count = 0; count < SWEPT_PER_UPDATE; count += 1) {
      const { done, value } = rotation.next();
      if (done) rotation = documents.entries();
      else if (value[1].expiresAtMs <= now) documents.delete(value[0]);
    }
  }
}
