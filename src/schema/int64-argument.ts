import { PetqlError } from '../errors.ts';
import { parseInt64 } from '../int64.ts';
import type { Int64 } from '../int64.ts';

/**
 * Checks an `ID` before anything is asked of the upstream, which knows int64 alone.
 *
 * @throws PetqlError BAD_USER_INPUT that names the argument.
 */
export function int64Argument(name: string, value: string): Int64 {
  const id = parseInt64(value);
  if (id !== undefined) return id;
  const came = value.length > 40 ? `${value.length} characters` : JSON.stringify(value);
  throw new PetqlError('BAD_USER_INPUT', `${name}: expected an int64 in plain digits, such as "42", got ${came}.`, {
    details: { argument: name },
  });
}
