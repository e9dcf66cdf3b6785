import { createYoga } from 'graphql-yoga';
import type { ResolverContext } from '../schema/builder.ts';
import { schema } from '../schema/schema.ts';
import type { CheckedOptions } from '../settings/settings.ts';
import type { ErrorMask } from './errors.ts';
import type { HttpResponse } from './http/http-message.ts';
import { acceptedType } from './http/media-type.ts';
import { useDocumentLimits } from './plugins/document-limits.ts';
import { useExecution } from './plugins/execution.ts';
import { useHttpRules } from './plugins/http-rules.ts';
import { useResults } from './plugins/results.ts';
import { useTrustedDocuments } from './plugins/trusted-documents.ts';
import type { TrustedDocuments } from './plugins/trusted-documents.ts';
import type { RequestState, ServerContext } from './request-state.ts';
import type { RequestReader } from './request-reader.ts';

interface YogaHandlerOptions {
  readonly settings: CheckedOptions;
  readonly trusted: TrustedDocuments | undefined;
  readonly readRequest: RequestReader;
  readonly maskError: ErrorMask;
}

/** Returns a function that executes a request with Yoga, and adds to its state what it learns. */
export function createYogaHandler({
  settings,
  trusted,
  readRequest,
  maskError,
}: YogaHandlerOptions): (state: RequestState) => Promise<HttpResponse> {
  const yoga = createYoga<ServerContext, ResolverContext>({
    schema,
    graphqlEndpoint: settings.endpoint,
    async context({ state }) {
      state.context = await (state.context ?? readRequest(state));
      return { pets: state.context };
    },
    maskedErrors: { maskError },
    // The plugin of document limits caches documents, and no errors.
    parserAndValidationCache: false,
    // The body was bounded when it was read. Yoga's own bound would pipe it through a stream, at the cost of an operation.
    maxRequestBodySize: false,
    extraParamNames: ['documentId'],
    // Every response of petql has its headers, Yoga's and others.
    cors: false,
    plugins: [
      useResults(),
      useHttpRules(settings),
      useTrustedDocuments(settings, trusted),
      useDocumentLimits(settings),
      useExecution(settings),
    ],
    // petql's own pages, log and rules replace these.
    graphiql: false,
    landingPage: false,
    logging: false,
    multipart: false,
    // Yoga answers any address that ends in this; a space is in none.
    healthCheckEndpoint: ' ',
  });
  const { Request: YogaRequest } = yoga.fetchAPI;

  return async (state) => {
    const { method, url, headers } = state.request;
    // Yoga ignores the weights of media types.
    const given = { ...headers, accept: acceptedType(headers['accept']) ?? 'application/json' };
    const init = { method, headers: given as Record<string, string> };
    const response = await yoga.handleRequest(new YogaRequest(`http://localhost${url}`, init), { state });
    response.headers.delete('content-length');
    return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
  };
}
