import { GraphQLID, getOperationAST, isInputObjectType, isListType, isNonNullType, typeFromAST } from 'graphql';
import type { ExecutionArgs, GraphQLInputType } from 'graphql';
import { PetqlError } from '../../common/errors.ts';

/**
 * Returns the error of the first declared variable with an id that is a number beyond 2^53, which clients in JavaScript have
 * rounded, or one that JSON.parse would round: it would name another pet. Variables that the operation does not declare are ignored (GraphQL, "Coercing Variable Values").
 */
export function inexactIdError({
  schema,
  document,
  operationName,
  variableValues,
}: ExecutionArgs): PetqlError | undefined {
  const { variableDefinitions = [] } = getOperationAST(document, operationName) ?? {};
  for (const { variable, type } of variableDefinitions) {
    const { value: name } = variable.name;
    // Validation has shown that the type is one of the schema's inputs.
    const inexact = inexactId(typeFromAST(schema, type) as GraphQLInputType, variableValues?.[name], `$${name}`);
    if (inexact !== undefined)
      return new PetqlError('BAD_USER_INPUT', `Variable "${inexact}" ${PROBLEM}`, { httpStatus: 422 });
  }
  return undefined;
}

const PROBLEM = 'is a number that JSON clients cannot hold exactly; send ids as strings of digits.';

/** Returns where in a value such an id is. */
function inexactId(type: GraphQLInputType, value: unknown, path: string): string | undefined {
  // One value stands for a list of it.
  const isWrapped = isNonNullType(type) || (isListType(type) && !Array.isArray(value));
  if (isWrapped) return inexactId(type.ofType, value, path);

  for (const [name, partType, part] of partsOf(type, value)) {
    const found = inexactId(partType, part, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return type === GraphQLID && isInexact(value) ? path : undefined;
}

/** Whether a number of `parseLosslessJson` is no integer that a double holds: NaN is what rounding alone makes one. */
function isInexact(value: unknown): boolean {
  if (typeof value === 'bigint' || Number.isNaN(value)) return true;
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

/** Returns the items of a list and the fields of an input, by their names. */
function partsOf(type: GraphQLInputType, value: unknown): (readonly [string, GraphQLInputType, unknown])[] {
  if (typeof value !== 'object' || value === null) return [];
  if (isListType(type)) return Object.entries(value).map(([index, item]) => [index, type.ofType, item]);
  if (!isInputObjectType(type)) return [];
  const given: Readonly<Record<string, unknown>> = { ...value };
  return Object.values(type.getFields()).map((field) => [field.name, field.type, given[field.name]]);
}
