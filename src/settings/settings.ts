import { checkSettings } from './check-settings.ts';
import type { Inputs, Outputs, SettingTable } from './check-settings.ts';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import { DAY_MS } from '../plan.ts';
import { boolean, file, functions, headerName, integer, key, logLevel, manifest, origins } from './setting-shapes.ts';
import { path, plan, proxyUrl, redisUrl, secret, serverKey, url } from './setting-shapes.ts';
// oxlint-disable-next-line no-restricted-imports -- types, of options that tests and simulate use
import type { RedisConnection } from '../store/redis.ts';
// oxlint-disable-next-line no-restricted-imports -- the same
import type { UpstreamDispatcher } from '../upstream/http-transport.ts';

/** Every option of `createGateway`: its type, bounds and default, and how the program takes it. */
export const OPTIONS = {
  /** The base URL of the pet API, with its `/v1`. */
  petApiUrl: {
    schema: url,
    flag: { value: 'URL', help: 'Base URL of the pet API, with its /v1 (the sandbox)' },
  },
  /**
   * The API key for all requests, or a function that returns the key of a request; without a key the request is
   * UNAUTHENTICATED. The client's own Authorization header is then not read. Default: the key in that header.
   */
  petApiKey: {
    schema: serverKey.optional(),
    isSecret: true,
    flag: { value: 'KEY', help: 'API key for all calls (the one that each client sends)' },
  },
  /** The plan of each API key: an assumption, until response headers tell the limits. Default `auto`: the Free plan until then. */
  plan: {
    schema: plan.prefault('auto'),
    flag: {
      value: 'PLAN',
      help: 'Plan until headers tell: auto, free, pro, business, PER_MINUTE/PER_DAY',
    },
  },
  /**
   * The part of each minute and day of every API key that petql uses at most, in percent: the rest is left to other programs with the
   * key. Default 100.
   */
  planShare: {
    schema: integer(1, 100).default(100),
    flag: { value: 'PERCENT', help: 'Percent of each minute and day that petql uses at most' },
  },
  /** Max wait of a request for quota, in milliseconds. Default 10000. */
  maxWaitMs: {
    schema: integer(0, 600_000).default(10_000),
    flag: { value: 'MS', help: 'Maximum wait for quota in ms' },
  },
  /** Max age of fresh data, in milliseconds. Default 1000. */
  maxAgeMs: {
    schema: integer(0, DAY_MS).default(1_000),
    flag: { value: 'MS', help: 'Maximum age of fresh data in ms' },
  },
  /** Max age of data that is served to save quota, without quota, or when calls fail, in milliseconds. Default 600000. */
  maxStaleMs: {
    schema: integer(0, DAY_MS).default(600_000),
    flag: { value: 'MS', help: 'Maximum age in ms of data served to save quota or on failures' },
  },
  /**
   * Whether clients may set the age of data with `Cache-Control` where the key is the server's: each such request can cost a
   * call. Default false; clients with their own keys always may.
   */
  allowClientCacheControl: {
    schema: boolean(false),
    flag: { help: 'Cache-Control of clients honored with --pet-api-key' },
  },
  /**
   * The request header that names the visitor behind a request, such as `x-forwarded-for`: its last entry counts, an IPv6 address by
   * its /64. No visitor uses more calls of an API key than it leaves to the others. Default: none, visitors are not told apart.
   */
  visitorHeader: {
    schema: headerName.optional(),
    flag: { value: 'NAME', help: 'Header that names visitors, who share a key fairly (off)' },
  },
  /**
   * The Redis in which replicas share quota and idempotency records: its URL, those of nodes of a Cluster with commas between
   * them, or `redis+sentinel://host:26379,host2:26379/NAME` for the master of this name. Default: none, this is the only process.
   */
  redisUrl: {
    schema: redisUrl.optional(),
    isSecret: true,
    flag: { value: 'URL', help: 'Redis in which replicas share quota and records' },
  },
  /** The file in which one process without Redis keeps its accounts. Default: in memory. */
  stateFile: {
    schema: file.optional(),
    flag: { value: 'FILE', help: 'File that keeps used quota over restarts, without Redis' },
  },
  /** Hashes stored API keys (HMAC); at least 16 characters. Default: none, they are hashed without one (SHA-256). */
  keySecret: {
    schema: secret.optional(),
    isSecret: true,
    flag: { value: 'SECRET', help: 'Secret for hashing stored API keys (none)' },
  },
  /** Whether browsers get GraphiQL at the endpoint, where it can query the schema and run any document. Default true. */
  graphiql: {
    schema: boolean(true),
    flag: { value: 'BOOLEAN', help: 'GraphiQL for browsers' },
  },
  /** Whether clients may query the schema; without it, errors do not suggest its names either. Default true. */
  introspection: {
    schema: boolean(true),
    flag: { value: 'BOOLEAN', help: 'Introspection of the schema' },
  },
  /** Documents that clients may run by id: a manifest of GraphQL Code Generator, Relay or Apollo. Default: none. */
  trustedDocuments: {
    schema: manifest.optional(),
    flag: { value: 'MANIFEST', help: 'File of trusted documents: GraphQL Codegen, Relay, Apollo' },
  },
  /** Whether no other document runs over HTTP; `execute` runs any. Default false. */
  requireTrustedDocuments: {
    schema: boolean(false),
    flag: { help: 'Trusted documents only' },
  },
  /**
   * Origins whose pages may send requests, such as `https://pets.example`, an app's such as `capacitor://localhost`, or `*` for any.
   * `null` is the origin of each sandboxed frame. Default: none.
   */
  corsOrigins: {
    schema: origins.default([]),
    flag: { value: 'ORIGINS', help: 'Allowed CORS origins, comma-separated, or * for any (none)' },
  },
  /** Max bytes of a request's body. Default 65536. */
  maxBodyBytes: {
    schema: integer(1_024, 16_777_216).default(65_536),
    flag: { value: 'N', help: 'Maximum bytes of a request body' },
  },
  /** Max tokens of a document. Default 1000; tools that read the schema need up to 225. */
  maxTokens: {
    schema: integer(1, 100_000).default(1_000),
    flag: { value: 'N', help: 'Maximum tokens of a document' },
  },
  /** Max levels of fields, with those in fragments, and without those of introspection. Default 20. */
  maxDepth: {
    schema: integer(1, 1_000).default(20),
    flag: { value: 'N', help: 'Maximum levels of fields' },
  },
  /** Max aliases, those of a fragment each time that it is used. Default 100. */
  maxAliases: {
    schema: integer(0, 100_000).default(100),
    flag: { value: 'N', help: 'Maximum aliases of a document' },
  },
  /**
   * Max fields of an operation's result: each counts once per item of the lists around it, an id or a write 20 times. A
   * variable counts as a `limit` of 100, or as 100 ids. Default 20000; tools that read the schema need up to 15000.
   */
  maxCost: {
    schema: integer(1, 10_000_000).default(20_000),
    flag: { value: 'N', help: 'Maximum fields of a result' },
  },
  /** Max upstream calls of an operation at worst, counted before any is sent. Default 200. */
  maxUpstreamCalls: {
    schema: integer(0, 100_000).default(200),
    flag: { value: 'N', help: 'Maximum upstream calls of an operation' },
  },
  /** Max wait for a connection to the pet API, and max time of a call that has one, in milliseconds. Default 5000. */
  upstreamTimeoutMs: {
    schema: integer(1, 600_000).default(5_000),
    flag: { value: 'MS', help: 'Timeout of an upstream call in ms' },
  },
  /** Lowest level of the lines that `log` gets. Default: `warn` for the console, else all. */
  logLevel: {
    schema: logLevel.optional(),
    flag: { value: 'LEVEL', help: 'Log level: silent, fatal, error, warn, info, debug' },
  },
  /** The HTTP proxy for calls to the pet API, such as `http://user:password@proxy.example:3128`. Default: none. */
  proxy: { schema: proxyUrl.optional(), isSecret: true },
  /** The path of GraphQL and GraphiQL for `fetch` and `handle`, also with a slash at its end. Default `/graphql`. */
  endpoint: { schema: path.prefault('/graphql') },
  /** The API key that GraphiQL starts with; only one that is no secret. Default: a placeholder. */
  graphiqlKey: { schema: key.optional() },
  /** Whether GraphiQL leads to tabs with the demo keys of the sandbox, one for each bad day. Default false. */
  graphiqlBadDays: { schema: boolean(false) },
  /** Whether metrics are counted, and `admin` serves them. Default false. */
  admin: { schema: boolean(false) },
  /** Gets petql's log lines. Default: none. */
  log: { schema: functions<Log>('info', 'warn', 'error').default(() => silentLog) },
  /** The time, for tests. Default: the machine's. */
  clock: { schema: functions<Clock>('now', 'elapsed').default(() => systemClock) },
  /** Takes the calls instead of real connections, for tests, `petql simulate` and the warm-up. */
  dispatcher: { schema: functions<UpstreamDispatcher>('dispatch', 'destroy').optional() },
  /** Replaces the connection to `redisUrl`, for tests. */
  redisConnection: { schema: functions<RedisConnection>('compareAndSet', 'close').optional() },
} satisfies SettingTable;

type Options = Inputs<typeof OPTIONS>;

export type GatewayOptions = Omit<Options, 'petApiUrl'> & Required<Pick<Options, 'petApiUrl'>>;

/** Options that were checked, with the defaults of those that were not given. */
export type CheckedOptions = Outputs<typeof OPTIONS>;

/** Limits of one request. Requests over a limit are rejected with LIMIT_EXCEEDED before any upstream call. */
export type RequestLimits = Pick<
  CheckedOptions,
  'maxAliases' | 'maxBodyBytes' | 'maxCost' | 'maxDepth' | 'maxTokens' | 'maxUpstreamCalls'
>;

/**
 * Checks the options of `createGateway`.
 *
 * @throws TypeError that names every wrong option, and never repeats a secret.
 */
export function checkedOptions(options: GatewayOptions): CheckedOptions {
  return checkSettings(OPTIONS, { ...options }, { prefix: 'createGateway: ' });
}
