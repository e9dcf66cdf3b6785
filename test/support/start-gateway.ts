import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { GatewayOptions } from '../../src/settings.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { listen } from '../../src/server/listener.ts';
import { post } from './client.ts';
import type { QueryAnswer, QueryOptions } from './client.ts';
import { createMemoryLog } from './memory-log.ts';
import type { LogLine } from './memory-log.ts';
import { startRecordedSandbox } from './start-recorded-sandbox.ts';
import type { RecordedSandbox } from './start-recorded-sandbox.ts';

export type { QueryAnswer, QueryError, QueryOptions } from './client.ts';

/** A gateway over its own sandbox, both on free ports. */
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
  const listener = await listen(gateway.handle, { host: '127.0.0.1', port: 0 });
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
