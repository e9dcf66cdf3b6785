import type { GraphQLError } from 'graphql';
import { badRequest } from './error-answers.ts';

/**
 * Whether a page of another site could have made a visitor's browser send this without asking first, and so spend the
 * plan of the server's key. Bodies cannot come like that, since they must be JSON; a GET can, unless it has a header that
 * browsers ask about, or the browser says that a page of this origin, or nobody's page, sent it.
 *
 * Where callers bring keys of their own, nothing can be forged: no browser sends such a key by itself.
 *
 * @returns the error, or undefined.
 */
export function forgedRequestError({ method, headers }: Request): GraphQLError | undefined {
  if (method !== 'GET' || PREFLIGHTED_HEADERS.some((name) => headers.has(name))) return undefined;
  if (/^application\/(?:graphql\+)?json\b/i.test(headers.get('content-type') ?? '')) return undefined;
  if (OWN_SITES.has(headers.get('sec-fetch-site') ?? '')) return undefined;
  return badRequest(
    'A page of another site could have sent this. Send it as a POST with the content type application/json, or with the ' +
      'header "apollo-require-preflight: true".',
    403,
  );
}

/** Headers of GraphQL clients that no form, image or link can send, and that pages of other origins ask for first. */
export const PREFLIGHTED_HEADERS = [
  'apollo-require-preflight',
  'x-apollo-operation-name',
  'petql-dry-run',
  'x-requested-with',
];

/** `none`: typed in by the visitor, or a bookmark. */
const OWN_SITES: ReadonlySet<string> = new Set(['none', 'same-origin']);
