import type { ExecutionResult } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { ResolverContext } from '../schema/builder.ts';
import { schema } from '../schema/schema.ts';
import type { CheckedOptions } from '../settings/settings.ts';
import type { ErrorMask } from './errors.ts';
import type { HttpResponse } from './http/http-message.ts';
import { readParams } from './http/request-params.ts';
import { responseOf } from './http/result-response.ts';
import { useDocumentLimits } from './plugins/document-limits.ts';
import { useExecution } from './plugins/execution.ts';
import { useOperationName } from './plugins/operation-name.ts';
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
    async context({ state }) {
      state.context = await (state.context ?? readRequest(state));
      return { pets: state.context };
    },
    // The plugin of document limits caches documents, and no errors.
    parserAndValidationCache: false,
    extraParamNames: ['documentId'],
    plugins: [
      useOperationName(),
      useTrustedDocuments(settings, trusted),
      useDocumentLimits(settings),
      useExecution(settings),
    ],
    // petql reads requests and writes responses itself.
    maskedErrors: { maskError },
    cors: false,
    graphiql: false,
    landingPage: false,
    logging: false,
    multipart: false,
  });

  return async (state) => responseOf(await run(state), state);

  /** Never rejects. All that Yoga has of HTTP are the parameters: its own Request and Response cost half an operation. */
  async function run(state: RequestState): Promise<ExecutionResult> {
    try {
      const params = readParams(state.request, settings);
      // Yoga rejects mutations by GET.
      const request = { method: state.request.method } as Request;
      return (await yoga.getResultForParams({ params, request }, { state, request })) as ExecutionResult;
    } catch (error) {
      return { errors: [maskError(error)] };
    }
  }
}
