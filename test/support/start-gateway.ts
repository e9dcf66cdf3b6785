import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { GatewayOptions } from '../../src/gateway-options.ts';
import { LIMITS } from '../../src/limits.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { listen } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';
import { createMemoryLog } from './memory-log.ts';
import type { LogLine } from './memory-log.ts';
import { startRecordedSandbox } from './start-recorded-sandbox.ts';
import type { RecordedSandbox } from './start-recorded-sandbox.ts';

/** A gateway over a sandbox of its own, both on free ports. */
export interface TestGateway {
  readonly endpoint: string;
  /** Where metrics and budgets are, with the option `admin`. */
  readonly adminOrigin: string;
  readonly gateway: Gateway;
  readonly sandbox: RecordedSandbox;
  readonly logLines: readonly LogLine[];
  /** Sends one operation with the Free demo key, or the headers given. */
  query(query: string, options?: QueryOptions): Promise<QueryAnswer>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface QueryOptions {
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
  /** Beside the content type and the demo key; null leaves one out. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

export interface QueryAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly data: Record<string, any> | null | undefined;
  readonly errors: readonly QueryError[] | undefined;
  readonly extensions: Record<string, any> | undefined;
}

export interface QueryError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: Record<string, any> & { readonly code: string };
}

export interface TestGatewayOptions {
  readonly sandbox?: SandboxOptions;
  /** What stands between the gateway and the sandbox, whose address it is given. Default: nothing. */
  readonly through?: (sandboxUrl: string) => Promise<{ readonly url: string }>;
  readonly gateway?: Partial<GatewayOptions>;
}

export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const sandbox = await startRecordedSandbox(options.sandbox);
  const { log, lines } = createMemoryLog();
  const { url } = (await options.through?.(sandbox.url)) ?? sandbox;
  const gateway = createGateway({ petApiUrl: new URL(url), log, ...options.gateway });
  const { maxBodyBytes = LIMITS.maxBodyBytes.fallback } = options.gateway ?? {};
  const yogaAlone = Boolean(process.env['PETQL_TEST_YOGA_ALONE']);
  const handle = yogaAlone ? createNodeHandler(gateway.fetch, maxBodyBytes) : gateway.handle;
  const listener = await listen(handle, { host: '127.0.0.1', port: 0 });
  const endpoint = `${listener.origin}/graphql`;
  const admin = gateway.admin && (await listen(gateway.admin, { host: '127.0.0.1', port: 0 }));
  return {
    endpoint,
    adminOrigin: admin?.origin ?? '',
    gateway,
    sandbox,
    logLines: lines,
    query: (query, more = {}) => post(endpoint, query, more),
    async [Symbol.asyncDispose]() {
      await listener.stop(0);
      await admin?.stop(0);
      await gateway.close();
      await sandbox.close();
    },
  };
}

async function post(endpoint: string, query: string, options: QueryOptions): Promise<QueryAnswer> {
  const { variables, operationName, headers } = options;
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: definedHeaders({ 'content-type': 'application/json', authorization: 'Bearer demo-free', ...headers }),
    body: JSON.stringify({ query, variables, operationName }),
  });
  return { status: response.status, headers: response.headers, ...((await response.json()) as object) } as QueryAnswer;
}

function definedHeaders(headers: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== null));
}
