import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox, SandboxCall, SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { listen } from '../../src/server/listener.ts';
import { post } from './client.ts';
import type { QueryAnswer, QueryOptions } from './client.ts';
import { createMemoryLog } from './memory-log.ts';
import type { LogLine } from './memory-log.ts';

export type { QueryAnswer } from './client.ts';

export interface RecordedSandbox extends Sandbox {
  /** Every call received, in their order. */
  readonly calls: readonly SandboxCall[];
}

export async function startRecordedSandbox(options: SandboxOptions = {}): Promise<RecordedSandbox> {
  const calls: SandboxCall[] = [];
  const sandbox = await startSandbox({ ...options, onCall: (call) => calls.push(call) });
  return { ...sandbox, calls };
}

/** A gateway in this process, over its own sandbox. */
export interface EmbeddedGateway extends Gateway, AsyncDisposable {
  readonly sandbox: RecordedSandbox;
  readonly logLines: readonly LogLine[];
}

type Through = (sandboxUrl: string) => Promise<{ readonly url: string }>;

export async function startEmbedded(
  options: Partial<GatewayOptions> = {},
  sandboxOptions: SandboxOptions = {},
  through: Through = async (url) => ({ url }),
): Promise<EmbeddedGateway> {
  const sandbox = await startRecordedSandbox(sandboxOptions);
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({ petApiUrl: (await through(sandbox.url)).url, log, ...options });
  return {
    ...gateway,
    sandbox,
    logLines: lines,
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await sandbox.close();
    },
  };
}

/** The same, with servers on free ports. */
export interface TestGateway extends Pick<EmbeddedGateway, 'logLines' | 'sandbox'>, AsyncDisposable {
  readonly endpoint: string;
  /** Where metrics and quotas are, with the option `admin`. */
  readonly adminOrigin: string;
  readonly gateway: Gateway;
  /** Sends one operation with the Free demo key, or the headers given. */
  query(query: string, options?: QueryOptions): Promise<QueryAnswer>;
}

export interface TestGatewayOptions {
  readonly sandbox?: SandboxOptions;
  /** What stands between the gateway and the sandbox. Default: nothing. */
  readonly through?: Through;
  readonly gateway?: Partial<GatewayOptions>;
}

export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startEmbedded(options.gateway, options.sandbox, options.through);
  const { sandbox, logLines, admin } = gateway;
  const at = { host: '127.0.0.1', port: 0 };
  const listener = await listen(gateway.handle, at);
  const adminListener = admin && (await listen(admin, at));
  const endpoint = `${listener.origin}/graphql`;
  return {
    endpoint,
    adminOrigin: adminListener?.origin ?? '',
    gateway,
    sandbox,
    logLines,
    query: (query, more) => post(endpoint, query, more),
    async [Symbol.asyncDispose]() {
      await listener.stop({ graceMs: 0 });
      await adminListener?.stop({ graceMs: 0 });
      await gateway[Symbol.asyncDispose]();
    },
  };
}

/** One operation over HTTP, as `fetch` takes it. */
export function graphqlRequest(
  params: object,
  headers: Readonly<Record<string, string>> = { authorization: 'Bearer demo-free' },
): Request {
  return new Request('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });
}
