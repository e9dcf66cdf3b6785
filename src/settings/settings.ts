import { checkSettings } from './check-settings.ts';
import type { z } from 'zod';
import type { Outputs, Setting } from './check-settings.ts';
import type { GatewayOptions } from './gateway-options.ts';
import { systemClock } from '../common/clock.ts';
import type { Clock } from '../common/clock.ts';
import { silentLog } from '../common/log.ts';
import type { Log } from '../common/log.ts';
import { DAY_MS } from '../common/plan.ts';
import { boolean, file, functions, headerName, integer, key, logLevel, manifest, origins } from './setting-shapes.ts';
import { path, plan, proxyUrl, redisUrl, secret, serverKey, url } from './setting-shapes.ts';
import type { RedisConnection } from '../store/redis.ts';
import type { UpstreamDispatcher } from '../upstream/http-transport.ts';

/** Every option of `createGateway`: its bounds and its default, and how the program takes it. */
export const OPTIONS = {
  petApiUrl: {
    schema: url,
    flag: { value: 'URL', help: 'Base URL of the pet API, with its /v1 (the sandbox)' },
  },
  petApiKey: {
    schema: serverKey.optional(),
    isSecret: true,
    flag: { value: 'KEY', help: 'API key for all calls (the one that each client sends)' },
  },
  plan: {
    schema: plan.prefault('auto'),
    flag: {
      value: 'PLAN',
      help: 'Plan until headers tell: auto, free, pro, business, PER_MINUTE/PER_DAY',
    },
  },
  planShare: {
    schema: integer(1, 100).default(100),
    flag: { value: 'PERCENT', help: 'Percent of each minute and day that petql uses at most' },
  },
  maxWaitMs: {
    schema: integer(0, 600_000).default(10_000),
    flag: { value: 'MS', help: 'Maximum wait for quota in ms' },
  },
  maxAgeMs: {
    schema: integer(0, DAY_MS).default(1_000),
    flag: { value: 'MS', help: 'Maximum age of fresh data in ms' },
  },
  maxStaleMs: {
    schema: integer(0, DAY_MS).default(600_000),
    flag: { value: 'MS', help: 'Maximum age in ms of data served to save quota or on failures' },
  },
  allowClientCacheControl: {
    schema: boolean(false),
    flag: { help: 'Cache-Control of clients honored with --pet-api-key' },
  },
  visitorHeader: {
    schema: headerName.optional(),
    flag: { value: 'NAME', help: 'Header that names visitors, who share a key fairly (off)' },
  },
  redisUrl: {
    schema: redisUrl.optional(),
    isSecret: true,
    flag: { value: 'URL', help: 'Redis in which replicas share quota and records' },
  },
  stateFile: {
    schema: file.optional(),
    flag: { value: 'FILE', help: 'File that keeps used quota over restarts, without Redis' },
  },
  keySecret: {
    schema: secret.optional(),
    isSecret: true,
    flag: { value: 'SECRET', help: 'Secret for hashing stored API keys (none)' },
  },
  graphiql: {
    schema: boolean(true),
    flag: { value: 'BOOLEAN', help: 'GraphiQL for browsers' },
  },
  introspection: {
    schema: boolean(true),
    flag: { value: 'BOOLEAN', help: 'Introspection of the schema' },
  },
  trustedDocuments: {
    schema: manifest.optional(),
    flag: { value: 'MANIFEST', help: 'File of trusted documents: GraphQL Codegen, Relay, Apollo' },
  },
  requireTrustedDocuments: {
    schema: boolean(false),
    flag: { help: 'Trusted documents only' },
  },
  corsOrigins: {
    schema: origins.default([]),
    flag: { value: 'ORIGINS', help: 'Allowed CORS origins, comma-separated, or * for any (none)' },
  },
  maxBodyBytes: {
    schema: integer(1_024, 16_777_216).default(65_536),
    flag: { value: 'N', help: 'Maximum bytes of a request body' },
  },
  maxTokens: {
    schema: integer(1, 100_000).default(1_000),
    flag: { value: 'N', help: 'Maximum tokens of a document' },
  },
  maxDepth: {
    schema: integer(1, 1_000).default(20),
    flag: { value: 'N', help: 'Maximum levels of fields' },
  },
  maxAliases: {
    schema: integer(0, 100_000).default(100),
    flag: { value: 'N', help: 'Maximum aliases of a document' },
  },
  maxCost: {
    schema: integer(1, 10_000_000).default(20_000),
    flag: { value: 'N', help: 'Maximum fields of a result' },
  },
  maxUpstreamCalls: {
    schema: integer(0, 100_000).default(200),
    flag: { value: 'N', help: 'Maximum upstream calls of an operation' },
  },
  upstreamTimeoutMs: {
    schema: integer(1, 600_000).default(5_000),
    flag: { value: 'MS', help: 'Timeout of an upstream call in ms' },
  },
  logLevel: {
    schema: logLevel.optional(),
    flag: { value: 'LEVEL', help: 'Log level: silent, fatal, error, warn, info, debug' },
  },
  proxy: { schema: proxyUrl.optional(), isSecret: true },
  endpoint: { schema: path.prefault('/graphql') },
  graphiqlKey: { schema: key.optional() },
  graphiqlBadDays: { schema: boolean(false) },
  admin: { schema: boolean(false) },
  log: { schema: functions<Log>('info', 'warn', 'error').default(() => silentLog) },
  clock: { schema: functions<Clock>('now', 'elapsed').default(() => systemClock) },
  dispatcher: { schema: functions<UpstreamDispatcher>('dispatch', 'destroy').optional() },
  redisConnection: { schema: functions<RedisConnection>('compareAndSet', 'close').optional() },
} satisfies { readonly [Name in keyof GatewayOptions]-?: Setting<z.ZodType<unknown, GatewayOptions[Name]>> };

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
