import type { Store } from './store.ts';
import { SWEEP_EVERY_MS } from '../common/times.ts';

interface Document {
  readonly text: string;
  readonly expiresAtMs: number;
}

/**
 * Keeps documents until the process ends.
 *
 * @param nowMs milliseconds since the Unix epoch, never going back.
 */
export function createMemoryStore(nowMs: () => number): Store {
  const documents = new Map<string, Document>();
  let sweepAtMs = -Infinity;

  return {
    // Async, so that an error of a change is a rejection.
    async update(name, change) {
      const now = nowMs();
      if (now >= sweepAtMs) sweep(now);

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
    sweepAtMs = now + SWEEP_EVERY_MS;
    for (const [name, { expiresAtMs }] of documents) {
      if (expiresAtMs <= now) documents.delete(name);
    }
  }
}
