import type { z } from 'zod';
import type { Log } from '../common/log.ts';
import type { Store } from './store.ts';
import { WARN_EVERY_MS } from '../common/times.ts';

/** Returns the document in a text; undefined where there is no text, or petql cannot read it. */
export type ReadDocument<T> = (text: string | undefined) => T | undefined;

/**
 * Checks documents of one kind as they are read. One that another program wrote is undefined, as an absent one.
 *
 * @param log gets a line about such documents at most once a minute.
 */
export function createDocumentReader<T>(
  kind: string,
  schema: z.ZodType<T>,
  store: Pick<Store, 'nowMs'>,
  log: Log,
): ReadDocument<T> {
  let warnedAtMs = -Infinity;
  return (text) => {
    if (text === undefined) return undefined;
    const { success, data } = schema.safeParse(parseJson(text));
    if (success) return data;

    const nowMs = store.nowMs();
    if (nowMs - warnedAtMs >= WARN_EVERY_MS) {
      warnedAtMs = nowMs;
      log.warn({ kind }, 'a document in the store cannot be read');
    }
    return undefined;
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
