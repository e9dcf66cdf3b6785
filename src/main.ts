#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { ConfigError, describeConfig, readConfig } from './config.ts';
import type { Command, Config } from './config.ts';
import { createGateway } from './gateway.ts';
import type { Gateway } from './gateway.ts';
import type { GatewayOptions } from './gateway-options.ts';
import { LIMITS } from './limits.ts';
import type { Limits } from './limits.ts';
import { createLog } from './log.ts';
import { DEMO_KEYS } from './sandbox/keys.ts';
import type { Sandbox } from './sandbox/sandbox.ts';
import { listen } from './server/listener.ts';
import type { Listener } from './server/listener.ts';
import { isLoopback, underOwnNames } from './server/own-names.ts';
import { whyUnusable } from './store/unusable-file.ts';

/** The package that this file is in, whether as it was written or as npm has it. */
const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

/** Containers are killed ten seconds after SIGTERM. */
const GRACE_MS = 7_000;

/** One Ctrl-C may come twice: a terminal tells the whole process group, and npm, which is in it, passes on what it is told. */
const SAME_SIGNAL_MS = 1_000;

interface Service {
  /** What a person sees once it runs. */
  readonly banner: string;
  stop(): Promise<void>;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`petql: ${oneLine(error)}`);
  process.exit(1);
}

async function main(args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return console.log(usage());
  if (args.includes('--version')) return console.log(version);
  const [command, rest]: [Command, readonly string[]] =
    args[0] === 'sandbox' ? ['sandbox', args.slice(1)] : ['gateway', args];
  const config = readConfig(command, rest, process.env);
  const service = command === 'sandbox' ? await runSandbox(config) : await runGateway(config);
  stopOnSignal(service);
  // Whoever reads that it runs may stop it at once.
  console.log(service.banner);
}

async function runSandbox(config: Config): Promise<Service> {
  const sandbox = await openSandbox(config, config);
  return {
    banner: `petql ${version}: the pet adoption service's sandbox\n\n${describeSandbox(sandbox)}`,
    stop: () => sandbox.close(),
  };
}

async function runGateway(config: Config): Promise<Service> {
  const sandbox = config.petApiUrl ? undefined : await openSandbox(config);
  const demoKey = sandbox && Object.keys(DEMO_KEYS)[0];
  const gateway = openGateway({
    petApiUrl: config.petApiUrl ?? new URL(sandbox?.url ?? ''),
    upstreamTimeoutMs: config.upstreamTimeoutMs,
    maxWaitMs: config.maxWaitMs,
    maxAgeMs: config.maxAgeMs,
    maxStaleMs: config.maxStaleMs,
    heedCacheControl: config.heedCacheControl,
    plan: config.plan,
    admin: config.adminPort !== undefined,
    graphiql: config.graphiql,
    introspection: config.introspection,
    corsOrigins: config.corsOrigins,
    ...readManifest(config),
    ...limitsOf(config),
    freshUpstream: sandbox !== undefined,
    log: createLog(config.logLevel),
    ...defined({
      petApiKey: config.petApiKey,
      redisUrl: config.redisUrl,
      stateFile: config.stateFile,
      keySecret: config.keySecret,
      graphiqlKey: demoKey,
    }),
  });
  const isForVisitors = config.petApiKey !== undefined && isLoopback(config.host);
  const handle = isForVisitors ? underOwnNames(gateway.handle, config.corsOrigins) : gateway.handle;
  const listener = await listen(handle, config).catch(listenFailure(config));
  const admin = await openAdmin(gateway, config);
  const endpoint = `${listener.origin}/graphql`;
  return {
    banner: [
      `petql ${version}: GraphQL over the pet adoption service`,
      '',
      config.graphiql ? `GraphiQL   ${endpoint}  (in a browser)` : `GraphQL    ${endpoint}`,
      sandbox ? describeSandbox(sandbox) : `Upstream   ${config.petApiUrl?.origin}`,
      ...(admin ? [`Admin      ${admin.origin}/metrics  ${admin.origin}/budget`] : []),
      '',
      'Try it:',
      `curl -s ${endpoint} -H 'content-type: application/json' -H 'authorization: Bearer ${demoKey ?? 'YOUR_API_KEY'}' ` +
        `-d '{"query":"{ pets(status: AVAILABLE, limit: 3) { id name status } }"}'`,
    ].join('\n'),
    async stop() {
      void gateway.drain();
      await listener.stop(GRACE_MS);
      await admin?.stop(0);
      await gateway.close();
      await sandbox?.close();
    },
  };
}

function readManifest({ trustedDocuments: file, requireTrustedDocuments }: Config): Partial<GatewayOptions> {
  if (file === undefined) return {};
  try {
    return { trustedDocuments: JSON.parse(readFileSync(file, 'utf8')), requireTrustedDocuments };
  } catch (error) {
    throw new Error(`--trusted-documents (TRUSTED_DOCUMENTS): cannot read ${file}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** What the library calls an option is a flag to whoever starts the program. */
function openGateway(options: GatewayOptions): Gateway {
  try {
    return createGateway(options);
  } catch (error) {
    const { message } = error as Error;
    const named = message
      .replace('createGateway: stateFile:', '--state-file (STATE_FILE):')
      .replace('createGateway: trustedDocuments:', '--trusted-documents (TRUSTED_DOCUMENTS):');
    throw new Error(named, { cause: error });
  }
}

async function openAdmin({ admin }: Gateway, { adminHost, adminPort }: Config): Promise<Listener | undefined> {
  if (!admin || adminPort === undefined) return undefined;
  const at = { host: adminHost, port: adminPort, flags: ['--admin-host (ADMIN_HOST)', '--admin-port (ADMIN_PORT)'] };
  return listen(admin, at).catch(listenFailure(at));
}

async function openSandbox(config: Config, at?: { host: string; port: number }): Promise<Sandbox> {
  const { sandboxFile } = config;
  // A gateway over the real service does without it.
  const { startSandbox } = await import('./sandbox/sandbox.ts');
  return startSandbox({ ...at, ...(sandboxFile === undefined ? {} : { file: sandboxFile }) }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code?.startsWith('ERR_SQLITE')) {
        const why = whyUnusable(sandboxFile ?? '', error, 'its animals');
        throw new Error(`--sandbox-file (SANDBOX_FILE): cannot use ${sandboxFile}: ${why}`);
      }
      return listenFailure(config)(error);
    },
  );
}

function limitsOf(config: Config): Limits {
  const names = Object.keys(LIMITS) as (keyof Limits)[];
  return Object.fromEntries(names.map((name) => [name, config[name]])) as unknown as Limits;
}

/** Options that were given. */
function defined(options: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function describeSandbox({ url, stagingUrl }: Sandbox): string {
  const keys = Object.entries(DEMO_KEYS).map(
    ([key, { name, perMinute, perDay }]) =>
      `           ${key.padEnd(16)} ${name}: ${perMinute.toLocaleString('en')} requests a minute, ${perDay.toLocaleString('en')} a day`,
  );
  return [`Sandbox    ${url}  (staging: ${stagingUrl})`, 'Demo keys', ...keys].join('\n');
}

function stopOnSignal(service: Service): void {
  let stoppingSinceMs: number | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stoppingSinceMs !== undefined) {
        if (performance.now() - stoppingSinceMs < SAME_SIGNAL_MS) return;
        // Whoever asks twice is in a hurry, and told the way shells tell it.
        process.exit(128 + constants.signals[signal]);
      }
      stoppingSinceMs = performance.now();
      service.stop().then(
        () => process.exit(0),
        (error: unknown) => {
          console.error(`petql: could not stop cleanly: ${oneLine(error)}`);
          process.exit(1);
        },
      );
    });
  }
}

interface ListenAt {
  readonly host: string;
  readonly port: number;
  /** The settings that say so: of the host, and of the port. */
  readonly flags?: readonly string[];
}

function listenFailure({ host, port, flags }: ListenAt): (error: NodeJS.ErrnoException) => never {
  const [hostFlag, portFlag] = flags ?? ['--host (HOST)', '--port (PORT)'];
  return (error) => {
    switch (error.code) {
      case 'EADDRINUSE':
        throw new Error(`port ${port} on ${host} is in use; free it, or choose another with ${portFlag}`);
      case 'EACCES':
        throw new Error(`port ${port} on ${host} may not be used by this user; choose another with ${portFlag}`);
      case 'EADDRNOTAVAIL':
      case 'ENOTFOUND':
        throw new Error(`${host} is not an address of this machine; choose another with ${hostFlag}`);
      default:
        throw error;
    }
  };
}

function usage(): string {
  return `Usage: petql [flags]           GraphQL over the pet adoption service
       petql sandbox [flags]   the pet adoption service itself, for development and tests

Flags of petql, and what says the same in the environment:
${describeConfig('gateway')}

Flags of petql sandbox:
${describeConfig('sandbox')}`;
}

function oneLine(error: unknown): string {
  if (error instanceof ConfigError && error.problems.length > 1) return `wrong settings: ${error.message}`;
  return String(error instanceof Error ? error.message : error).replaceAll('\n', ' ');
}
