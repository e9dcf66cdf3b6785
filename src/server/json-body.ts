import { GraphQLError } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import { badRequest } from './error-answers.ts';

/**
 * The operation, or the list of them, in a body whose content type is one of JSON: whether it is one is for others to
 * say. Yoga's own parser is only for content types in small letters and without white space.
 */
export async function readJsonBody(request: Request): Promise<GraphQLParams | GraphQLParams[]> {
  try {
    return noResponse(await request.json()) as GraphQLParams | GraphQLParams[];
  } catch (error) {
    // That the body is too long comes from where it is read.
    throw error instanceof GraphQLError ? error : badRequest('Expected a body in JSON.', 400);
  }
}

/** Yoga takes whatever has headers and a status for an answer, and sends that. */
function noResponse(body: unknown): unknown {
  const { headers, status } = Object(body) as { headers?: unknown; status?: unknown };
  return headers && status ? { ...(body as object), status: null } : body;
}
