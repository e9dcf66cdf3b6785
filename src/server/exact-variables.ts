import { PetqlError } from '../errors.ts';

/**
 * JSON numbers are doubles by the time that they arrive here. One that a double cannot hold exactly has been rounded
 * already, so it is refused rather than used as another animal's id.
 *
 * @returns the BAD_USER_INPUT error, or undefined when every number is exact.
 */
export function inexactVariableError(variables: unknown): PetqlError | undefined {
  if (!holdsInexact(variables, 0)) return undefined;
  const path = findInexact(variables, []) ?? [];
  return new PetqlError(
    'BAD_USER_INPUT',
    `Variable "$${path.join('.')}" is a number that JSON readers cannot hold exactly; send ids as strings of digits.`,
    { httpStatus: 400 },
  );
}

/** A variable, its input field or list place: GraphQL refuses whatever is nested more deeply as ill-typed. */
const DEEPEST = 3;

/** Looked at first, since it makes nothing: nearly all variables are exact. */
function holdsInexact(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return isInexact(value);
  if (typeof value !== 'object' || value === null || depth === DEEPEST) return false;
  if (Array.isArray(value)) return value.some((item) => holdsInexact(item, depth + 1));
  return Object.keys(value).some((key) => holdsInexact((value as Record<string, unknown>)[key], depth + 1));
}

function isInexact(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

function findInexact(value: unknown, path: readonly string[]): readonly string[] | undefined {
  if (typeof value === 'number') return isInexact(value) ? path : undefined;
  if (typeof value !== 'object' || value === null || path.length === DEEPEST) return undefined;
  for (const [key, item] of Object.entries(value)) {
    const found = findInexact(item, [...path, key]);
    if (found) return found;
  }
  return undefined;
}
