import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { describeConfig, readConfig } from './config.ts';
import { createGateway } from '../gateway.ts';
import type { Gateway } from '../gateway.ts';
import { createLog, takeWarnings } from '../log.ts';
import { DEMO_KEYS } from '../sandbox/usage-limits.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { PROGRAM_ONLY } from '../settings.ts';
import type { Config, GatewayOptions } from '../settings.ts';
import { listen } from '../server/listener.ts';
import type { Listener } from '../server/listener.ts';
import { withHostCheck } from '../server/http/host-check.ts';
import { servesGraphiql } from '../server/http/pages.ts';
import { manifestEntries } from '../server/plugins/trusted-documents.ts';
import { unusableFile } from '../store/file-store.ts';
import { version } from '../version.ts';

/** Docker kills a container ten seconds after SIGTERM. */
const GRACE_MS = 7_000;

/** A connection is idle while its operation waits, so it times out this much later. */
const IDLE_BEYOND_WAIT_MS = 60_000;

/** One Ctrl-C may come twice: from the terminal, and from npm, which passes it on. */
const SAME_SIGNAL_MS = 1_000;

const USAGE = `Usage: petql [options]           GraphQL gateway over the pet API
       petql sandbox [options]   sandbox of the pet API, for development and tests
       petql simulate [options]  a day of your load on each rate plan

Options of petql (environment variable, default):
${describeConfig('gateway')}

A secret can be in a file: PET_API_KEY_FILE, REDIS_URL_FILE and KEY_SECRET_FILE name it.

Options of petql sandbox:
${describeConfig('sandbox')}`;

interface Service {
  readonly banner: string;
  readonly stop: (signal: string) => Promise<void>;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`petql: ${oneLine(error)}\n`);
  process.exit(1);
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === 'simulate') return runSimulation(args.slice(1));
  if (args.includes('--help') || args.includes('-h')) return console.log(USAGE);
  if (args.includes('--version')) return console.log(version);
  const service =
    args[0] === 'sandbox'
      ? await runSandbox(readConfig('sandbox', args.slice(1), process.env))
      : await runGateway(readConfig('gateway', args, process.env));
  stopOnSignal(service);
  // Last: a reader of the banner may stop petql at once.
  console.log(service.banner);
}

/** It serves nothing, and ends by itself. */
async function runSimulation(args: readonly string[]): Promise<void> {
  const { SIMULATE_USAGE, simulate } = await import('../simulate/simulate.ts');
  if (args.includes('--help') || args.includes('-h')) return console.log(SIMULATE_USAGE);
  await simulate(args);
}

async function runSandbox(config: Config): Promise<Service> {
  const sandbox = await openSandbox(config, config);
  const banner = `petql ${version}: sandbox of the pet API\n\n${describeSandbox(sandbox)}`;
  return { banner, stop: () => sandbox.close() };
}

async function runGateway(config: Config): Promise<Service> {
  const log = createLog(config.logLevel);
  takeWarnings(log);
  const sandbox = config.petApiUrl ? undefined : await openSandbox(config);
  const demoKey = sandbox && Object.keys(DEMO_KEYS)[0];
  const trustedDocuments = readManifest(config);
  const gateway = openGateway({
    ...sharedOptions(config),
    petApiUrl: config.petApiUrl ?? sandbox?.url ?? '',
    trustedDocuments,
    admin: config.adminPort !== undefined,
    log,
    graphiqlKey: demoKey,
  });
  await gateway.ready().catch((error: Error) => {
    const { message } = error;
    const named = message.replace(/^redisUrl /, '--redis-url (REDIS_URL) ');
    throw new Error(named === message ? `--key-secret (KEY_SECRET): ${message}` : named, { cause: error });
  });
  const handle = config.petApiKey === undefined ? gateway.handle : withHostCheck(gateway.handle, config);
  const idleMs = config.maxWaitMs + config.upstreamTimeoutMs + IDLE_BEYOND_WAIT_MS;
  const listener = await listen(handle, { ...config, idleMs }).catch(listenError('--host (HOST) or --port (PORT)'));
  const admin = await openAdmin(gateway, config);
  const endpoint = `${listener.origin}/graphql`;
  log.info({ version, endpoint, admin: admin?.origin }, 'listening');
  const isForgetful = !sandbox && config.redisUrl === undefined && config.stateFile === undefined;
  if (isForgetful)
    log.info({}, 'no state file and no Redis: calls made earlier today are known only where a header shows the day');
  return {
    banner: [
      `petql ${version}: GraphQL gateway over the pet API`,
      '',
      servesGraphiql(config) ? `GraphiQL   ${endpoint}  (in a browser)` : `GraphQL    ${endpoint}`,
      sandbox ? describeSandbox(sandbox) : `Upstream   ${config.petApiUrl?.href}`,
      ...(admin ? [`Admin      ${admin.origin}/metrics  ${admin.origin}/quota`] : []),
      '',
      'Try it:',
      exampleRequest(endpoint, config, trustedDocuments, demoKey),
    ].join('\n'),
    async stop(signal) {
      log.info({ signal }, 'stopping');
      void gateway.drain(config.shutdownDelayMs);
      await listener.stop({ delayMs: config.shutdownDelayMs, graceMs: GRACE_MS });
      await admin?.stop({ graceMs: 0 });
      await gateway.close();
      await sandbox?.close();
      log.info({}, 'stopped');
    },
  };
}

/** Returns a command that works when pasted, once what begins with YOUR is replaced. */
function exampleRequest(endpoint: string, config: Config, manifest: object = {}, key = 'YOUR_API_KEY'): string {
  const authorization = config.petApiKey === undefined ? ` -H 'authorization: Bearer ${key}'` : '';
  const query = '{ pets(status: AVAILABLE, limit: 3) { id name status } }';
  const documents = manifestEntries(manifest);
  const plainQuery = documents.find(([, text]) => !/\bmutation\b|\$/.test(String(text)));
  const [documentId] = plainQuery ?? documents[0] ?? ['YOUR_DOCUMENT_ID'];
  const body = JSON.stringify(config.requireTrustedDocuments ? { documentId } : { query });
  const data = body.replaceAll("'", String.raw`'\''`);
  return `curl -s ${endpoint} -H 'content-type: application/json'${authorization} -d '${data}'`;
}

function sharedOptions(config: Config): Omit<Config, 'petApiUrl' | 'trustedDocuments'> {
  const entries = Object.entries(config).filter(([name]) => !(PROGRAM_ONLY as readonly string[]).includes(name));
  return Object.fromEntries(entries) as unknown as Config;
}

function readManifest({ trustedDocuments: file }: Config): GatewayOptions['trustedDocuments'] {
  if (file === undefined) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch (error) {
    throw new Error(`--trusted-documents (TRUSTED_DOCUMENTS): cannot read ${file}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Names flags in the errors that name options. */
function openGateway(options: GatewayOptions): Gateway {
  try {
    return createGateway(options);
  } catch (error) {
    const named = (error as Error).message
      .replace('createGateway: stateFile:', '--state-file (STATE_FILE):')
      .replace('createGateway: trustedDocuments:', '--trusted-documents (TRUSTED_DOCUMENTS):');
    throw new Error(named, { cause: error });
  }
}

async function openAdmin({ admin }: Gateway, { adminHost, adminPort }: Config): Promise<Listener | undefined> {
  if (!admin || adminPort === undefined) return undefined;
  const flags = '--admin-host (ADMIN_HOST) or --admin-port (ADMIN_PORT)';
  return listen(admin, { host: adminHost, port: adminPort }).catch(listenError(flags));
}

async function openSandbox(config: Config, at?: Pick<Config, 'host' | 'port'>): Promise<Sandbox> {
  const { sandboxFile } = config;
  // A gateway over the real API does without it.
  const { startSandbox } = await import('../sandbox/sandbox.ts');
  return startSandbox({ ...at, file: sandboxFile }).catch((error: NodeJS.ErrnoException) => {
    if (!error.code?.startsWith('ERR_SQLITE')) return listenError('--host (HOST) or --port (PORT)')(error);
    throw unusableFile('--sandbox-file (SANDBOX_FILE)', sandboxFile ?? '', error);
  });
}

function describeSandbox({ url }: Sandbox): string {
  const keys = Object.entries(DEMO_KEYS).map(
    ([key, { name, perMinute, perDay }]) =>
      `           ${key.padEnd(16)} ${name}: ${perMinute.toLocaleString('en')} calls per minute, ${perDay.toLocaleString('en')} per day`,
  );
  return [`Sandbox    ${url}`, 'Demo keys', ...keys].join('\n');
}

function stopOnSignal(service: Service): void {
  let stoppingSinceMs: number | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // Those of the start, which end it.
    process.removeAllListeners(signal);
    process.on(signal, () => {
      if (stoppingSinceMs !== undefined) {
        if (performance.now() - stoppingSinceMs < SAME_SIGNAL_MS) return;
        // The second signal ends the process at once, with the code that shells use.
        process.exit(128 + constants.signals[signal]);
      }
      stoppingSinceMs = performance.now();
      service.stop(signal).then(
        () => process.exit(0),
        (error: unknown) => {
          console.error(`petql: could not stop cleanly: ${oneLine(error)}`);
          process.exit(1);
        },
      );
    });
  }
}

/** Adds the flags that change the address to Node's message. */
function listenError(flags: string) {
  return (error: Error): never => {
    throw new Error(`${error.message}; choose another address with ${flags}`, { cause: error });
  };
}

function oneLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).replaceAll('\n', ' ');
}
