import type { GraphQLError } from 'graphql';
import { typeName } from '../type-name.ts';
import { badRequest } from './error-answers.ts';

/** What stands beside the document, as it was sent: types say nothing of what a visitor really sends. */
interface SentParams {
  readonly operationName?: unknown;
  readonly variables?: unknown;
}

/** The BAD_USER_INPUT error of what is no operation, or has an operation name or variables of a wrong type, or undefined. */
export function paramsError(params: unknown): GraphQLError | undefined {
  if (typeName(params) !== 'object') {
    return badRequest(`Expected an operation as an object, got ${typeName(params)}.`, 400);
  }
  const { operationName, variables } = params as SentParams;
  if (typeof (operationName ?? '') !== 'string') {
    return badRequest(`operationName: expected a string, got ${typeName(operationName)}.`, 400);
  }
  if (typeName(variables ?? {}) !== 'object') {
    return badRequest(`variables: expected an object, got ${typeName(variables)}.`, 400);
  }
  return undefined;
}
