import { PetqlError } from '../common/errors.ts';
import { parseInt64 } from '../pets/int64.ts';
import type { Int64 } from '../pets/int64.ts';

/**
 * Returns the int64 of an `ID` argument, before any upstream call.
 *
 * @throws PetqlError BAD_USER_INPUT that names the argument.
 */
export function int64Argument(name: string, value: string): Int64 {
  const id = parseInt64(value);
  if (id !== undefined) return id;
  throw badArgument(name, `expected an int64 in plain digits, such as "42", got ${quoted(value)}`);
}

/**
 * Returns a checked idempotency key, before any upstream call; null is none.
 *
 * @throws PetqlError BAD_USER_INPUT that names the argument.
 */
export function idempotencyKeyArgument(name: string, value: string | null | undefined): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (/^[\x21-\x7e]{1,255}$/.test(value)) return value;
  throw badArgument(name, `expected 1 to 255 visible ASCII characters, got ${quoted(value)}`);
}

/** Returns the BAD_USER_INPUT error of an argument, or of a field or an item in it. */
export function badArgument(argument: string, problem: string): PetqlError {
  return new PetqlError('BAD_USER_INPUT', `${argument}: ${problem}.`, { details: { argument } });
}

function quoted(value: string): string {
  return value.length > 255 ? `${value.length} characters` : JSON.stringify(value);
}
