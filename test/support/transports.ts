import { post } from './client.ts';
import type { QueryAnswer } from './client.ts';
import type { TestGateway } from './start-gateway.ts';

/** The ways into a gateway. They answer alike. */
export const TRANSPORTS = ['HTTP', 'fetch', 'execute'] as const;
export type Transport = (typeof TRANSPORTS)[number];

export interface Sent {
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
  /** Null: none. Default: the key of the Free demo plan. */
  readonly apiKey?: string | null;
  readonly cacheControl?: string;
  /** Whole seconds, except in process. */
  readonly waitMs?: number;
  readonly dryRun?: boolean;
}

/** In process there are neither status nor headers. */
export type Reply = Pick<QueryAnswer, 'data' | 'errors' | 'extensions'> & Partial<QueryAnswer>;
export type Send = (query: string, sent?: Sent) => Promise<Reply>;

/** Sends operations to the gateway in this way. */
export function sendBy(transport: Transport, { endpoint, gateway }: Pick<TestGateway, 'endpoint' | 'gateway'>): Send {
  if (transport === 'execute') {
    return async (document, { apiKey = 'demo-free', ...rest } = {}) =>
      (await gateway.execute({ document, apiKey, ...rest })) as Reply;
  }
  return (query, { apiKey = 'demo-free', cacheControl, waitMs, dryRun, ...params } = {}) =>
    post(endpoint, query, {
      ...params,
      headers: {
        authorization: apiKey === null ? null : `Bearer ${apiKey}`,
        'cache-control': cacheControl ?? null,
        prefer: waitMs === undefined ? null : `wait=${Math.ceil(waitMs / 1000)}`,
        'petql-dry-run': dryRun ? '1' : null,
      },
      ...(transport === 'fetch' ? { send: gateway.fetch } : {}),
    });
}

/** The value of a response header; in process `expected`, since there are none. */
export function headerOf({ headers }: Reply, name: string, expected: string): string | null {
  return headers ? headers.get(name) : expected;
}

/** The codes of the errors, in their order. */
export function codesOf({ errors = [] }: { readonly errors?: Reply['errors'] }): string[] {
  return errors.map(({ extensions }) => extensions.code);
}
