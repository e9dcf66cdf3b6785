import { inspect } from 'node:util';

const LONGEST = 80;

/**
 * A wrong value as its error repeats it: without what an address may hold before its host or after its path, since a
 * password or a key can be among it.
 */
export function shownValue(given: unknown): string {
  const isText = typeof given === 'string' || given instanceof URL;
  const text = isText ? String(given) : inspect(given, { depth: 0 });
  const shown = text
    .replace(/^.*@/s, '…@')
    .replace(/[?#].*$/s, '?…')
    .slice(0, LONGEST);
  return isText ? JSON.stringify(shown) : shown;
}
