import type { GraphQLError } from 'graphql';
import { badRequest, graphqlError } from './error-answers.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** The error of a request that is a list of so many operations, or undefined where it may be one. */
export function batchError(operations: number, maxBatch: number): GraphQLError | undefined {
  if (maxBatch === 0)
    return badRequest('Expected one operation, got a list of them: lists are switched off here.', 400);
  if (operations === 0) return badRequest('Expected a list of operations, got an empty one.', 400);
  return operations > maxBatch ? graphqlError(limitExceeded('batch', maxBatch, operations, 413)) : undefined;
}
