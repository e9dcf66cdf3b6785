import type { PetqlError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** The widest operations that can be answered have some thousand ids, and as many fields of animals to add. */
const LEAST_MOST_VALUES = 5_000;

/**
 * Checks variables before anything else looks at them. GraphQL's errors show the whole value that is wrong, and what tells
 * its names and values apart costs a tenth of a second where they fill a body.
 *
 * @returns the LIMIT_EXCEEDED error, or undefined. Each entry of an object and place of a list counts, at any depth.
 */
export function variableLimitError(
  variables: unknown,
  { maxTokens }: Pick<Limits, 'maxTokens'>,
): PetqlError | undefined {
  // Who lets documents be longer lets them have more variables.
  const most = Math.max(LEAST_MOST_VALUES, maxTokens);
  let left = most;
  const open = [variables];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const values: unknown[] = Array.isArray(value) ? value : Object.values(value);
    left -= values.length;
    if (left < 0) return limitExceeded('variables', most);
    for (const one of values) if (typeof one === 'object') open.push(one);
  }
  return undefined;
}
