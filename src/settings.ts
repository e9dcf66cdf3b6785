import { z } from 'zod';
import { systemClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { silentLog, withLevel } from './log.ts';
import type { Log } from './log.ts';
import { boolean, file, functions, hosts, integer, key, logLevel, manifest, origins } from './setting-shapes.ts';
import { path, plan, redisUrl, secret, serverKey, shownValue, url } from './setting-shapes.ts';
// oxlint-disable-next-line no-restricted-imports -- types, of options that only tests use
import type { RedisConnection } from './store/redis.ts';
// oxlint-disable-next-line no-restricted-imports -- the same
import type { UpstreamDispatcher } from './upstream/http-transport.ts';

/** `petql` runs the gateway, `petql sandbox` the sandbox alone. */
export type Command = 'gateway' | 'sandbox';

/** How the program takes a setting: as a flag, or as the environment variable of the same name. */
interface Flag {
  /** The kind of value in `--help`; a flag without one takes no value. */
  readonly value?: string | undefined;
  readonly help: string;
  /** Default: the gateway. */
  readonly commands?: readonly Command[];
  /** Whether messages must not repeat the value. */
  readonly isSecret?: boolean;
  /** Where the flag takes another type than the option. */
  readonly schema?: z.ZodType;
}

/** The settings that the program takes. */
export const FLAGS = new Map<z.ZodType, Flag>();
const BOTH = ['gateway', 'sandbox'] as const;

/** Every setting, in the order of `--help`: its type, bounds and default, and how the program takes it. */
export const SETTINGS = {
  /** The base URL of the pet API, with its `/v1`. */
  petApiUrl: flag(url, 'URL', 'Base URL of the pet API, with its /v1 (the sandbox)', { schema: url.optional() }),
  sandbox: toggle(false, 'Built-in sandbox as the pet API, in production too'),
  /**
   * The API key for all requests, or a function that returns the key of a request; without a key the request is
   * UNAUTHENTICATED. The client's own Authorization header is then not read. Default: the key in that header.
   */
  petApiKey: flag(serverKey.optional(), 'KEY', 'API key for all calls (the one that each client sends)', {
    isSecret: true,
    schema: key.optional(),
  }),
  /** The plan of each API key, until response headers show another. Default `auto`: the Free plan until then. */
  plan: flag(plan.prefault('auto'), 'PLAN', 'Rate plan: auto, free, pro, business or PER_MINUTE/PER_DAY (auto)'),
  /** Max wait of a request for quota, in milliseconds. Default 10000. */
  maxWaitMs: flag(integer(0, 600_000).default(10_000), 'MS', 'Maximum wait for quota in ms'),
  /** Max age of fresh data, in milliseconds. Default 1000. */
  maxAgeMs: flag(integer(0, 86_400_000).default(1_000), 'MS', 'Maximum age of fresh data in ms'),
  /** Max age of data that is served while the quota is exhausted or calls fail, in milliseconds. Default 600000. */
  maxStaleMs: flag(
    integer(0, 86_400_000).default(600_000),
    'MS',
    'Maximum age in ms of data served to save quota or on failures',
  ),
  /**
   * Whether clients may set the age of data with `Cache-Control` where the key is the server's: each such request can cost a
   * call. Default false; clients with their own keys always may.
   */
  allowClientCacheControl: toggle(false, 'Cache-Control of clients honored with --pet-api-key'),
  /**
   * The Redis in which replicas share quota and idempotency records: its URL, or those of nodes of a Cluster with commas between
   * them. Default: none, this is the only process.
   */
  redisUrl: flag(redisUrl.optional(), 'URL', 'Redis in which replicas share quota and records', { isSecret: true }),
  /** The file in which one process without Redis keeps its accounts. Default: in memory. */
  stateFile: flag(file.optional(), 'FILE', 'File that keeps used quota over restarts, without Redis'),
  /** Hashes stored API keys (HMAC); at least 16 characters. Default: none, they are hashed without one (SHA-256). */
  keySecret: flag(secret.optional(), 'SECRET', 'Secret for hashing stored API keys (none)', { isSecret: true }),
  port: flag(integer(0, 65_535).default(4000), 'N', 'Port to listen on, 0 for a free one', { commands: BOTH }),
  host: flag(z.string().default('127.0.0.1'), 'ADDRESS', 'Address to listen on', { commands: BOTH }),
  adminPort: flag(integer(0, 65_535).optional(), 'N', 'Port of the metrics and the quota page (off)'),
  adminHost: flag(z.string().default('127.0.0.1'), 'ADDRESS', 'Address of the admin port'),
  shutdownDelayMs: flag(integer(0, 600_000).default(0), 'MS', 'Time not ready and serving, before stopping, in ms'),
  /** Whether browsers get GraphiQL at the endpoint, where it can query the schema and run any document. Default true. */
  graphiql: toggle(true, 'GraphiQL for browsers'),
  /** Whether clients may query the schema; without it, errors do not suggest its names either. Default true. */
  introspection: toggle(true, 'Introspection of the schema'),
  /** Documents that clients may run by id: a manifest of GraphQL Code Generator, Relay or Apollo. Default: none. */
  trustedDocuments: flag(manifest.optional(), 'FILE', 'Manifest of trusted documents: GraphQL Codegen, Relay, Apollo', {
    schema: z.string().optional(),
  }),
  /** Whether no other document runs over HTTP; `execute` runs any. Default false. */
  requireTrustedDocuments: toggle(false, 'Trusted documents only'),
  /** Origins whose pages may send requests, such as `https://pets.example`, or `*` for any. Default: none. */
  corsOrigins: flag(origins.default([]), 'ORIGINS', 'Allowed CORS origins, comma-separated, or * for any (none)'),
  allowedHosts: flag(
    hosts.default([]),
    'HOSTS',
    'Host names answered with --pet-api-key, comma-separated, or * (local)',
  ),
  /** Max bytes of a request's body. Default 65536. */
  maxBodyBytes: limit(integer(1_024, 16_777_216).default(65_536), 'Maximum bytes of a request body'),
  /** Max tokens of a document. Default 1000; GraphiQL's introspection has 181. */
  maxTokens: limit(integer(1, 100_000).default(1_000), 'Maximum tokens of a document'),
  /** Max levels of fields, with those in fragments. Default 20; introspection needs 14. */
  maxDepth: limit(integer(1, 1_000).default(20), 'Maximum levels of fields'),
  /** Max aliases, those of a fragment each time that it is used. Default 100. */
  maxAliases: limit(integer(0, 100_000).default(100), 'Maximum aliases of a document'),
  /**
   * Max fields of an operation's result: each counts once per item of the lists around it, an id or a create 20 times. A
   * variable counts as a `limit` of 100, or as 100 ids. Default 20000; GraphiQL's introspection costs some 9800.
   */
  maxCost: limit(integer(1, 10_000_000).default(20_000), 'Maximum fields of a result'),
  /** Max upstream calls of an operation at worst, counted before any is sent. Default 200. */
  maxUpstreamCalls: limit(integer(0, 100_000).default(200), 'Maximum upstream calls of an operation'),
  /** Max wait for a connection to the pet API, and max time of a call that has one, in milliseconds. Default 5000. */
  upstreamTimeoutMs: flag(integer(1, 600_000).default(5_000), 'MS', 'Timeout of an upstream call in ms'),
  sandboxFile: flag(z.string().optional(), 'FILE', 'File for the pets of the sandbox (memory)', { commands: BOTH }),
  /** Lowest level of the lines that `log` gets. Default: `warn` for the console, else all. */
  logLevel: flag(logLevel.optional(), 'LEVEL', 'Log level: silent, fatal, error, warn, info, debug', {
    schema: logLevel.default('info'),
  }),
  /** The path of GraphQL and GraphiQL for `fetch` and `handle`. Default `/graphql`. */
  endpoint: path.default('/graphql'),
  /** The API key that GraphiQL starts with; only one that is no secret. Default: a placeholder. */
  graphiqlKey: key.optional(),
  /** Whether metrics are counted, and `admin` serves them. Default false. */
  admin: boolean(false),
  /** Gets petql's log lines. Default: none. */
  log: functions<Log>('info', 'warn', 'error').default(() => silentLog),
  /** The time, for tests. Default: the machine's. */
  clock: functions<Clock>('now', 'elapsed').default(() => systemClock),
  /** Takes the calls instead of real connections, for tests. */
  dispatcher: functions<UpstreamDispatcher>('dispatch', 'destroy').optional(),
  /** Replaces the connection to `redisUrl`, for tests. */
  redisConnection: functions<RedisConnection>('compareAndSet', 'close').optional(),
};

export const PROGRAM_ONLY = [
  'sandbox',
  'port',
  'host',
  'adminPort',
  'adminHost',
  'allowedHosts',
  'shutdownDelayMs',
  'sandboxFile',
] as const;

type Settings = typeof SETTINGS;
type ProgramOnly = (typeof PROGRAM_ONLY)[number];
type Inputs = { readonly [Name in keyof Settings]?: z.input<Settings[Name]> };
type Outputs = { readonly [Name in keyof Settings]: z.output<Settings[Name]> };

export type GatewayOptions = Omit<Inputs, ProgramOnly | 'petApiUrl'> & Required<Pick<Inputs, 'petApiUrl'>>;

/** Options that were checked, with the defaults of those that were not given. */
export type CheckedOptions = Omit<Outputs, ProgramOnly>;

/** Limits of one request. Requests over a limit are rejected with LIMIT_EXCEEDED before any upstream call. */
export type Limits = Pick<
  Outputs,
  'maxAliases' | 'maxBodyBytes' | 'maxCost' | 'maxDepth' | 'maxTokens' | 'maxUpstreamCalls'
>;

/** The settings of the program. Those of the other command have their defaults. */
export interface Config extends Omit<Outputs, 'logLevel' | 'petApiKey' | 'petApiUrl' | 'trustedDocuments'> {
  readonly petApiUrl: URL | undefined;
  readonly petApiKey: string | undefined;
  /** The file. */
  readonly trustedDocuments: string | undefined;
  readonly logLevel: z.output<typeof logLevel>;
}

/**
 * Checks the options of `createGateway`.
 *
 * @throws TypeError that names every wrong option, and never repeats a secret.
 */
export function checkedOptions(options: GatewayOptions): CheckedOptions {
  const names = Object.keys(SETTINGS).filter((name) => !(PROGRAM_ONLY as readonly string[]).includes(name));
  const unknown = Object.keys(options).filter((name) => !names.includes(name));
  const problems = unknown.map((name) => `${name} is not an option`);
  const checked: Record<string, unknown> = {};
  for (const name of names) {
    const schema: z.ZodType = SETTINGS[name as keyof Settings];
    const given: unknown = options[name as keyof GatewayOptions];
    const { success, data, error } = schema.safeParse(given);
    if (success) checked[name] = data;
    else problems.push(problemOf(name, error, given, FLAGS.get(schema)));
  }
  if (checked['requireTrustedDocuments'] && !checked['trustedDocuments']) {
    problems.push('requireTrustedDocuments needs trustedDocuments, or nothing could run');
  }
  if (problems.length > 0) throw new TypeError(`createGateway: ${problems.join('; ')}`);
  const valid = checked as unknown as CheckedOptions;
  return { ...valid, log: withLevel(valid.log, valid.logLevel) };
}

/** Names one wrong setting and, unless it is secret, its value. */
export function problemOf(name: string, { issues }: z.ZodError, given: unknown, settingFlag?: Flag): string {
  return `${name} ${issues[0]?.message}${settingFlag?.isSecret ? '' : `, got ${shownValue(given)}`}`;
}

function flag<Schema extends z.ZodType>(schema: Schema, value: string | undefined, help: string, more?: Partial<Flag>) {
  FLAGS.set(schema, { value, help, ...more });
  return schema;
}

/** Takes a value on the command line only where its default is true. */
function toggle(fallback: boolean, help: string) {
  return flag(boolean(fallback), fallback ? 'BOOLEAN' : undefined, help);
}

function limit(schema: z.ZodDefault<z.ZodInt>, help: string) {
  return flag(schema, 'N', help);
}
