import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { createMemoryLog } from './memory-log.ts';
import type { LogLine } from './memory-log.ts';
import { startRecordedSandbox } from './start-recorded-sandbox.ts';
import type { RecordedSandbox } from './start-recorded-sandbox.ts';

/** A gateway that a program embeds: in process, over its own sandbox. */
export interface EmbeddedGateway extends Gateway {
  readonly sandbox: RecordedSandbox;
  readonly logLines: readonly LogLine[];
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startEmbedded(
  options: Partial<GatewayOptions> = {},
  sandboxOptions: SandboxOptions = {},
): Promise<EmbeddedGateway> {
  const sandbox = await startRecordedSandbox(sandboxOptions);
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({ petApiUrl: sandbox.url, log, ...options });
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
