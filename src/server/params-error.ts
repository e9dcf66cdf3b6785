import type { GraphQLError } from 'graphql';
import { badRequest } from './error-answers.ts';

/** What stands beside the document, as it was sent: types say nothing of what a visitor really sends. */
export interface SentParams {
  readonly operationName?: unknown;
  readonly variables?: unknown;
}

/** The BAD_USER_INPUT error of an operation name or variables of a wrong type, or undefined. */
export function paramsError({ operationName, variables }: SentParams): GraphQLError | undefined {
  if (typeof (operationName ?? '') !== 'string') {
    return badRequest(`operationName: expected a string, got ${typeName(operationName)}.`, 400);
  }
  if (typeName(variables ?? {}) !== 'object') {
    return badRequest(`variables: expected an object, got ${typeName(variables)}.`, 400);
  }
  return undefined;
}

function typeName(value: unknown): string {
  return Array.isArray(value) ? 'list' : typeof value;
}
