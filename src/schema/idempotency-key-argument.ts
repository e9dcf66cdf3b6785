import { PetqlError } from '../errors.ts';

/**
 * Checks an idempotency key before anything is asked of the upstream; null is none.
 *
 * @throws PetqlError BAD_USER_INPUT that names the argument.
 */
export function idempotencyKeyArgument(name: string, value: string | null | undefined): string | undefined {
  if (value === null || value === undefined || /^[\x21-\x7e]{1,255}$/.test(value)) return value ?? undefined;
  const came = value.length > 255 ? `${value.length} characters` : JSON.stringify(value);
  throw new PetqlError('BAD_USER_INPUT', `${name}: expected 1 to 255 visible ASCII characters, got ${came}.`, {
    details: { argument: name },
  });
}
