import { z } from 'zod';
import { STORY_NAMES } from './sandbox/stories.ts';
import { checkSettings } from '../settings/check-settings.ts';
import type { Outputs, SettingTable } from '../settings/check-settings.ts';
import { CLIENT_KEEP_ALIVE_MS, HEADERS_TIMEOUT_MS } from '../common/times.ts';
import { OPTIONS } from '../settings/settings.ts';
import { address, boolean, file, hosts, integer, logLevel } from '../settings/setting-shapes.ts';
import { bothNames, flagSettings } from './flags.ts';
import { readOptions } from './read-options.ts';

const LOOPBACK = '127.0.0.1';

/** Settings of both commands. */
const LISTENER = {
  port: {
    schema: integer(0, 65_535).default(4000),
    flag: { value: 'N', help: 'Port to listen on, 0 for a free one' },
  },
  host: {
    schema: address.default(LOOPBACK),
    flag: { value: 'ADDRESS', help: 'Address to listen on' },
  },
  sandboxFile: {
    schema: file.optional(),
    flag: { value: 'FILE', help: 'File for the pets of the sandbox (memory)' },
  },
} satisfies SettingTable;

const { petApiUrl, petApiKey, ...OTHER_OPTIONS } = OPTIONS;
const { keySecret } = OPTIONS;

/** The settings of each command, in the order of `--help`: `petql` runs the gateway. */
const COMMANDS = {
  gateway: {
    // Without it, petql runs over the sandbox.
    petApiUrl: { ...petApiUrl, schema: petApiUrl.schema.optional() },
    sandbox: {
      schema: boolean(false),
      flag: { help: 'Built-in sandbox as the pet API, in production too' },
    },
    petApiKey,
    ...LISTENER,
    adminPort: {
      schema: integer(0, 65_535).optional(),
      flag: { value: 'N', help: 'Port of the metrics and the quota page (off)' },
    },
    adminHost: {
      schema: address.default(LOOPBACK),
      flag: { value: 'ADDRESS', help: 'Address of the admin port' },
    },
    allowedHosts: {
      schema: hosts.default([]),
      flag: { value: 'HOSTS', help: 'Host names answered with --pet-api-key, comma-separated, or * (local)' },
    },
    keepAliveMs: {
      schema: integer(1_000, 3_600_000).default(CLIENT_KEEP_ALIVE_MS),
      flag: { value: 'MS', help: 'Time for which connections are kept idle, in ms' },
    },
    headersTimeoutMs: {
      schema: integer(1_000, 600_000).default(HEADERS_TIMEOUT_MS),
      flag: { value: 'MS', help: 'Time for the headers of a request, in ms' },
    },
    shutdownDelayMs: {
      schema: integer(0, 600_000).default(0),
      flag: { value: 'MS', help: 'Time not ready and serving, before stopping, in ms' },
    },
    ...OTHER_OPTIONS,
    logLevel: { ...OPTIONS.logLevel, schema: logLevel.default('info') },
  },
  sandbox: {
    ...LISTENER,
    story: {
      schema: z.enum(STORY_NAMES, `must be one of ${STORY_NAMES.join(', ')}`).optional(),
      flag: { value: 'NAME', help: 'Bad day that every API key has, such as flaky (none)' },
    },
  },
  hashKey: { petApiUrl, petApiKey, keySecret },
} satisfies Record<string, SettingTable>;

type Commands = typeof COMMANDS;

/** The settings of `petql`. */
export type GatewayConfig = Outputs<Commands['gateway']>;
/** The settings of `petql sandbox`. */
export type SandboxConfig = Outputs<Commands['sandbox']>;

/**
 * Reads and checks the settings of a command.
 *
 * @throws Error that names every wrong setting as the user gave it.
 */
export function readConfig<Command extends keyof Commands>(
  command: Command,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Outputs<Commands[Command]> {
  const table: Commands[Command] = COMMANDS[command];
  const { options, ...given } = readOptions(table, args, env);
  const config = checkSettings(table, options, given);

  const problem = command === 'gateway' && upstreamProblem(config, env);
  if (problem) throw new Error(problem);
  return config;
}

/** Describes the settings of a command for `--help`, a line each. */
export function describeConfig(command: keyof Commands): string {
  const rows = flagSettings(COMMANDS[command]).map(({ flagName, variable, value, help, schema }) => {
    const fallback = schema.safeParse(undefined).data;
    const isShown = ['boolean', 'number', 'string'].includes(typeof fallback) && (value || fallback);
    return [`  --${flagName}${value ? ` ${value}` : ''}`, variable, help + (isShown ? ` (${String(fallback)})` : '')];
  });
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}

function upstreamProblem(config: Partial<GatewayConfig>, env: NodeJS.ProcessEnv): string | undefined {
  const { petApiUrl: url, sandbox } = config;
  const urlNames = bothNames('petApiUrl');
  if (url && sandbox) return `--sandbox cannot be used with ${urlNames}`;
  if (url || sandbox || env['NODE_ENV'] !== 'production') return undefined;
  return `${urlNames} is required when NODE_ENV=production, or pass --sandbox`;
}
