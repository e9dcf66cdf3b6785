import { SettingError } from '../common/errors.ts';
import { openGateway } from '../gateway.ts';
import type { Gateway } from '../server/gateway-api.ts';
import { createLog, takeWarnings } from '../common/log.ts';
import { DEMO_KEYS } from './sandbox/demo-keys.ts';
import { HttpCounts } from '../server/http-counts.ts';
import { withHostCheck } from '../server/http/host-check.ts';
import { servesGraphiql } from '../server/http/pages.ts';
import { listen } from '../server/listener.ts';
import type { Listener } from '../server/listener.ts';
import { manifestEntries } from '../server/plugins/trusted-documents.ts';
import { version } from '../common/version.ts';
import type { GatewayConfig } from './config.ts';
import { environmentProxy } from './environment-proxy.ts';
import { bothNames } from './flags.ts';
import { listenError } from './listen-error.ts';
import { describeSandbox, openSandbox } from './serve-sandbox.ts';
import type { Service } from './service.ts';
import { IDLE_BEYOND_WAIT_MS, STOP_GRACE_MS } from '../common/times.ts';

/** Serves the gateway, over the sandbox unless there is a pet API. */
export async function serveGateway(config: GatewayConfig): Promise<Service> {
  const log = createLog(config.logLevel);
  takeWarnings(log);

  const sandbox = config.petApiUrl ? undefined : await openSandbox({ file: config.sandboxFile });
  const petApiUrl = config.petApiUrl ?? new URL(sandbox?.url ?? '');
  // The sandbox is in this process.
  const proxy = sandbox ? undefined : environmentProxy(petApiUrl, process.env);
  const demoKey = sandbox && Object.keys(DEMO_KEYS)[0];

  const isAdmin = config.adminPort !== undefined;
  const counts = new HttpCounts(log);
  const gateway = await readyGateway(
    {
      ...config,
      petApiUrl,
      proxy,
      admin: isAdmin,
      log,
      graphiqlKey: demoKey,
      graphiqlBadDays: sandbox !== undefined,
    },
    counts,
  );
  const listener = await openListener(gateway, config, counts);
  const admin = await openAdmin(gateway, config);

  const endpoint = `${listener.origin}/graphql`;
  // With its sandbox first in log and banner, so that nobody takes it for the real pet API.
  log.info({ version, endpoint, sandbox: sandbox?.url, admin: admin?.origin, proxy: proxy?.host }, 'listening');
  const isForgetful = !sandbox && config.redisUrl === undefined && config.stateFile === undefined;
  if (isForgetful) log.info({}, FORGETFUL);

  return {
    banner: [
      `petql ${version}: GraphQL gateway over ${sandbox ? 'a sandbox, not the real' : 'the'} pet API`,
      '',
      servesGraphiql(config) ? `GraphiQL   ${endpoint}  (in a browser)` : `GraphQL    ${endpoint}`,
      sandbox ? describeSandbox(sandbox.url) : `Upstream   ${petApiUrl.href}`,
      ...(proxy ? [`Proxy      ${proxy.host}`] : []),
      ...(admin ? [`Admin      ${admin.origin}/metrics  ${admin.origin}/quota`] : []),
      '',
      'Try it:',
      exampleRequest(endpoint, config, demoKey),
    ].join('\n'),

    async stop(signal) {
      log.info({ signal }, 'stopping');
      void gateway.drain(config.shutdownDelayMs);
      await listener.stop({ delayMs: config.shutdownDelayMs, graceMs: STOP_GRACE_MS });
      await admin?.stop({ graceMs: 0 });
      await gateway.close();
      await sandbox?.close();
      log.info({}, 'stopped');
    },
  };
}

const FORGETFUL = 'no state file and no Redis: calls made earlier today are known only where a header shows the day';

/** @throws Error that names the flag and the variable of a setting that cannot be used. */
async function readyGateway(options: Parameters<typeof openGateway>[0], counts: HttpCounts): Promise<Gateway> {
  try {
    const gateway = openGateway(options, counts);
    await gateway.ready();
    return gateway;
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    throw new Error(error.describe(bothNames(error.setting)), { cause: error });
  }
}

async function openListener({ handle }: Gateway, config: GatewayConfig, counts: HttpCounts): Promise<Listener> {
  const { host, port, petApiKey, maxWaitMs, upstreamTimeoutMs, keepAliveMs, headersTimeoutMs } = config;
  // With their own keys, clients need no check: no page has the keys of its visitors.
  const handler = petApiKey === undefined ? handle : withHostCheck(handle, config, counts);
  const idleMs = maxWaitMs + upstreamTimeoutMs + IDLE_BEYOND_WAIT_MS;
  try {
    return await listen(handler, { host, port, idleMs, keepAliveMs, headersTimeoutMs, counts });
  } catch (error) {
    throw listenError(error, 'host', 'port');
  }
}

async function openAdmin({ admin }: Gateway, { adminHost, adminPort }: GatewayConfig): Promise<Listener | undefined> {
  if (!admin || adminPort === undefined) return undefined;
  try {
    return await listen(admin, { host: adminHost, port: adminPort });
  } catch (error) {
    throw listenError(error, 'adminHost', 'adminPort');
  }
}

/** Returns a command that works when pasted, once what begins with YOUR is replaced. */
function exampleRequest(endpoint: string, config: GatewayConfig, key = 'YOUR_API_KEY'): string {
  const { petApiKey, requireTrustedDocuments, trustedDocuments = {} } = config;
  const authorization = petApiKey === undefined ? ` -H 'authorization: Bearer ${key}'` : '';

  const query = '{ pets(status: AVAILABLE, limit: 3) { id name status } }';
  const body = requireTrustedDocuments ? { documentId: exampleDocument(trustedDocuments) } : { query };
  const data = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
  return `curl -s ${endpoint} -H 'content-type: application/json'${authorization} -d '${data}'`;
}

/** Returns the id of a query without variables, if there is one. */
function exampleDocument(manifest: object): string {
  const documents = manifestEntries(manifest);
  const plainQuery = documents.find(([, text]) => !/\bmutation\b|\$/.test(String(text)));
  const [id] = plainQuery ?? documents[0] ?? ['YOUR_DOCUMENT_ID'];
  return id;
}
