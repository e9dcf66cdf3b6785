import type { Clock } from './clock.ts';

/** What was found is held for so many milliseconds: whoever asks again before that gets the same, and nothing is looked for. */
export function held<T>(forMs: number, { elapsed }: Pick<Clock, 'elapsed'>, find: () => T): () => T {
  let found: { readonly value: T; readonly atMs: number } | undefined;
  return () => {
    if (!found || elapsed() - found.atMs >= forMs) found = { value: find(), atMs: elapsed() };
    return found.value;
  };
}
