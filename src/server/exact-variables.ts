import { PetqlError } from '../errors.ts';

/**
 * JSON numbers are doubles by the time that they arrive here. One that a double cannot hold exactly has been rounded
 * already, so it is refused rather than used as another animal's id.
 *
 * @returns the BAD_USER_INPUT error, or undefined when every number is exact.
 */
export function inexactVariableError(variables: unknown): PetqlError | undefined {
  const path = findInexact(variables, []);
  if (!path) return undefined;
  return new PetqlError(
    'BAD_USER_INPUT',
    `Variable "$${path.join('.')}" is a number that JSON readers cannot hold exactly; send ids as strings of digits.`,
    { httpStatus: 400 },
  );
}

/** A variable, its input field or list place: GraphQL refuses whatever is nested more deeply as ill-typed. */
const DEEPEST = 3;

function findInexact(value: unknown, path: readonly string[]): readonly string[] | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? path : undefined;
  if (typeof value !== 'object' || value === null || path.length === DEEPEST) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const found = findInexact(item, [...path, key]);
    if (found) return found;
  }
  return undefined;
}
