import type { GraphQLSchema } from 'graphql';
import type { KeyReport } from '../caller/key-report.ts';
import type { Fetch } from './http/fetch.ts';
import type { RequestHandler } from './listener.ts';
import type { Execute } from './operation.ts';

export interface Gateway extends AsyncDisposable {
  /**
   * Answers GraphQL over HTTP: a standard fetch handler for frameworks, and the `fetch` of GraphQL clients in this process. A path is
   * enough as its URL. It rejects as `fetch` does where it is called so: for an init that is wrong, and when its signal aborts.
   */
  readonly fetch: Fetch;
  /** The same for Node's http server and frameworks with its requests and responses. */
  readonly handle: RequestHandler;
  /** Runs an operation in this process, without HTTP. */
  readonly execute: Execute;
  /** The GraphQL schema. */
  readonly schema: GraphQLSchema;
  /**
   * Metrics for Prometheus at `/metrics` and a page of quotas at `/quota`, for Node's http server. Keep it from the public.
   * Undefined unless the option `admin` is set.
   */
  readonly admin: RequestHandler | undefined;
  /** Returns the quota of each API key that called last, 100 at most, and which operations and clients used it. */
  readonly quotaReport: () => Promise<readonly KeyReport[]>;
  /**
   * Loads what the first operation needs, which is then as fast as the second, and connects to Redis. Resolves after two seconds
   * at most, without Redis too.
   *
   * @throws Error when the store has another key secret: operations fail then, since the quota would be used twice.
   */
  readonly ready: () => Promise<void>;
  /**
   * Turns `/health/ready` to 503, and after `delayMs` (0) rejects calls that wait and new ones. Resolves once those in flight are
   * over.
   */
  readonly drain: (delayMs?: number) => Promise<void>;
  /**
   * Drains for half a second at most, stores the used quota, and closes every connection, as the end of `await using gateway` does.
   * Further calls do nothing.
   */
  readonly close: () => Promise<void>;
}
