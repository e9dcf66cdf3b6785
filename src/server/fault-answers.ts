import type { GraphQLError } from 'graphql';
import { storageHeaders } from './answer-headers.ts';
import type { Cors } from './cors.ts';
import { plainError } from './error-answers.ts';
import type { GraphqlServer } from './graphql-server.ts';
import type { OperationReports } from './operation-reports.ts';
import { setResponseHeaders } from './response-headers.ts';

export interface FaultAnswersOptions {
  /** Finds or loads the server. */
  server(): Promise<GraphqlServer>;
  maskError(error: unknown): GraphQLError;
  readonly reports: OperationReports;
  readonly cors: Cors;
}

/**
 * The GraphQL server, and where it fails itself, because it cannot be loaded for one, an answer all the same: an
 * INTERNAL_SERVER_ERROR, HTTP 500, whose id leads to the log. It is petql's fault and never looks like the client's.
 */
export function withFaultAnswers({ server, maskError, reports, cors }: FaultAnswersOptions): GraphqlServer {
  return {
    async fetch(request) {
      try {
        return await (await server()).fetch(request);
      } catch (fault) {
        // Whoever is gone hears nothing, and nothing is wrong.
        if (request.signal.aborted) throw fault;
        const { error, id } = masked(fault);
        const response = Response.json({ errors: [plainError(error)] }, { status: 500 });
        for (const [name, value] of Object.entries(storageHeaders(false))) response.headers.set(name, value);
        response.headers.set('x-request-id', id);
        setResponseHeaders(response, cors.headers(request.headers.get('origin')));
        return response;
      }
    },
    async execute(operation) {
      // What this rejects with is for whoever asked: a wrong argument, or the reason that it was given up for.
      const loaded = await server().catch((fault: unknown) => ({ fault }));
      return 'fault' in loaded ? { errors: [plainError(masked(loaded.fault).error)] } : loaded.execute(operation);
    },
  };

  function masked(fault: unknown): { error: GraphQLError; id: string } {
    const running = reports.begin(undefined);
    const error = maskError(fault);
    reports.end(running, undefined, { errors: [error] });
    return { error, id: running.id };
  }
}
