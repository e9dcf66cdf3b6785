import { GraphQLError } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import { badRequest } from './error-answers.ts';

/**
 * The operation, or the list of them, in a body whose content type is one of JSON: whether it is one is for others to
 * say. Yoga's own parser is only for content types in small letters and without white space.
 */
export async function readJsonBody(request: Request): Promise<GraphQLParams | GraphQLParams[]> {
  try {
    return (await request.json()) as GraphQLParams | GraphQLParams[];
  } catch (error) {
    // That the body is too long comes from where it is read.
    throw error instanceof GraphQLError ? error : badRequest('Expected a body in JSON.', 400);
  }
}
