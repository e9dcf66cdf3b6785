import type { Events } from '../events.ts';
import { loadedOnce } from '../loaded-once.ts';
import type { Log } from '../log.ts';
import { schema } from '../schema/schema.ts';
import type { Spans } from '../spans.ts';
import { checkedServerKey } from './api-key.ts';
import { createCallLimit } from './call-limit.ts';
import { createCors } from './cors.ts';
import { createCheckedDocuments } from './checked-documents.ts';
import { createErrorMask } from './error-answers.ts';
import { createFastPath } from './fast-path.ts';
import type { FastPath } from './fast-path.ts';
import { withFaultAnswers } from './fault-answers.ts';
import type { GraphqlServer, GraphqlServerOptions } from './graphql-server.ts';
import { createOperationReports } from './operation-reports.ts';
import { createRememberedAnswers } from './remembered-answers.ts';
import { createRequestContext } from './request-context.ts';
import type { RequestContextOptions } from './request-context.ts';
import { createTextMemory } from './text-memory.ts';

export interface FrontDoorOptions
  extends
    RequestContextOptions,
    Omit<GraphqlServerOptions, 'callLimit' | 'checkedDocuments' | 'cors' | 'maskError' | 'reports' | 'requestContext'> {
  readonly log: Log;
  /** Who counts what happens. */
  readonly events?: Events | undefined;
  readonly spans: Spans;
  /** See `createCors`. */
  readonly corsOrigins: readonly string[];
}

export interface FrontDoor extends GraphqlServer {
  /** The same as `fetch` for the requests that there are most of, for Node's http server. */
  readonly fastPath: FastPath;
}

/**
 * GraphQL for those who ask over HTTP and for those in the same process, under the same rules. The GraphQL server takes
 * longer to load than all the rest, and is loaded for the first request that needs it.
 */
export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  const { callers, endpoint, limits, introspection, serverKey, heedCacheControl, requireTrusted } = options;
  const memory = createTextMemory();
  const checkedDocuments = createCheckedDocuments({ limits, introspection });
  const shared = {
    checkedDocuments,
    requestContext: createRequestContext(options),
    maskError: createErrorMask(options.log, limits),
    reports: createOperationReports(options),
    cors: createCors(options.corsOrigins),
    callLimit: createCallLimit(limits),
  };
  const ownKey = serverKey === undefined ? {} : { serverKey: checkedServerKey(serverKey, options.log) };
  const server = loadedOnce(() => loadServer({ ...options, ...shared, ...ownKey }));

  return {
    fastPath: createFastPath({
      ...shared,
      callers,
      endpoint,
      schema,
      limits,
      serverKey,
      heedCacheControl,
      requireTrusted,
      memory,
      rememberedAnswers: createRememberedAnswers({ ...options, memory }),
      checkedDocument({ query }) {
        const document = checkedDocuments.parse(query);
        const [error] = checkedDocuments.errors(document);
        if (error) throw error;
        return document;
      },
    }),
    ...withFaultAnswers({ ...shared, server }),
  };
}

async function loadServer(options: GraphqlServerOptions): Promise<GraphqlServer> {
  const { createGraphqlServer } = await import('./graphql-server.ts');
  return createGraphqlServer(options);
}
