import type { CheckedOptions } from '../../settings/settings.ts';
import { createGraphiql } from '../graphiql/graphiql.ts';
import { healthResponse } from './health.ts';
import type { Health } from './health.ts';
import { pathOf } from './http-message.ts';
import type { HttpRequest, HttpResponse } from './http-message.ts';

/** Returns the responses that are no GraphQL: health checks, GraphiQL and its files, the redirect to it from `/`, and 404. */
export function createPages(settings: CheckedOptions, health: () => Health) {
  const { endpoint, graphiqlKey, graphiqlBadDays: hasBadDays, petApiKey, maxWaitMs } = settings;
  // The server's key needs no header.
  const apiKey = petApiKey === undefined ? graphiqlKey : '';
  const explorer = servesGraphiql(settings) ? createGraphiql({ endpoint, apiKey, hasBadDays, maxWaitMs }) : undefined;
  return async (request: HttpRequest): Promise<HttpResponse | undefined> => {
    const path = pathOf(request);
    const page = healthResponse(path, health) ?? (await explorer?.(request));
    if (page || path === endpoint) return page;
    if (path === '/' && explorer) return { status: 302, headers: { location: endpoint }, body: '' };
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
