import type { CheckedOptions } from '../../settings/settings.ts';
import { createGraphiql } from './graphiql.ts';
import { healthResponse } from './health.ts';
import type { Health } from './health.ts';
import { isEndpoint, pathOf } from './http-message.ts';
import type { HttpRequest, HttpResponse } from './http-message.ts';
import { isBrowsing } from './media-type.ts';

/**
 * Returns the responses that are no GraphQL: health checks, GraphiQL and its files, the redirect of browsers to it from `/`, and
 * 404, which other clients get there: some would turn a redirected POST into a GET.
 */
export function createPages(settings: CheckedOptions, readHealth: () => Health) {
  const { endpoint, graphiqlKey, graphiqlBadDays: hasBadDays, petApiKey, maxWaitMs } = settings;
  // The server's key needs no header.
  const apiKey = petApiKey === undefined ? graphiqlKey : '';
  const explorer = servesGraphiql(settings) ? createGraphiql({ endpoint, apiKey, hasBadDays, maxWaitMs }) : undefined;
  return async (request: HttpRequest): Promise<HttpResponse | undefined> => {
    const path = pathOf(request);
    const health = healthResponse(path, readHealth);
    if (health && request.method !== 'GET') return { status: 405, headers: { allow: 'GET, HEAD' }, body: '' };
    const page = health ?? (await explorer?.(request));
    if (page || isEndpoint(path, endpoint)) return page;
    // A proxy that cuts the endpoint off would lead from there to here again, with the query. A relative address stays behind the
    // prefix that a proxy has stripped.
    if (request.url === '/' && request.ownsRoot && explorer && isBrowsing(request)) {
      return { status: 302, headers: { location: `${endpoint.slice(1)}?graphiql` }, body: '' };
    }
    const headers = { 'content-type': 'text/plain;charset=UTF-8' };
    return { status: 404, headers, body: `There is nothing at this path; GraphQL is at ${endpoint}.\n` };
  };
}

/** Returns whether browsers get GraphiQL, which is of no use without the schema or where it may run nothing. */
export function servesGraphiql(
  settings: Pick<CheckedOptions, 'graphiql' | 'introspection' | 'requireTrustedDocuments'>,
) {
  return settings.graphiql && settings.introspection && !settings.requireTrustedDocuments;
}
