import { ENUM_NAMES, FIELD_NAMES, filterOf } from './pet-api/contract.ts';
import type { ListName, OperationName, Pet } from './pet-api/contract.ts';

/** The root fields of petql that may lead to a call of each operation: one that is missing does not compile. */
export const ROOT_FIELDS: Readonly<Record<OperationName, readonly string[]>> = {
  listPets: ['pets'],
  getPet: ['pet', 'petsById'],
  createPet: ['createPet'],
};

/** The selection of a whole pet. */
export const PET = `{ ${FIELD_NAMES.join(' ')} }`;

/** Returns a pet or a filter with its enums as GraphQL writes them. */
export function asVariable<Of extends object>(values: Of): Of {
  const names = ENUM_NAMES.flatMap((name) => {
    const value = (values as Partial<Record<keyof Pet, string>>)[name];
    return value === undefined ? [] : [[name, value.toUpperCase()]];
  });
  return { ...values, ...Object.fromEntries(names) };
}

/** Returns a pet of a result as the pet API has it. */
export function asPet(selected: Readonly<Record<string, string | null>>): Pet {
  return Object.fromEntries(
    FIELD_NAMES.map((name) => {
      const value = selected[name] ?? undefined;
      return [name, (ENUM_NAMES as readonly string[]).includes(name) ? value?.toLowerCase() : value];
    }),
  ) as unknown as Pet;
}

/** Returns the field of a list without its selection, such as `pets(limit: 5, status: SOLD)`. */
export function listField(list: ListName, limit?: number): string {
  const given = Object.entries({ ...(limit !== undefined && { limit }), ...asVariable(filterOf(list)) });
  return `pets${given.length > 0 ? `(${given.map(([name, value]) => `${name}: ${value}`).join(', ')})` : ''}`;
}
