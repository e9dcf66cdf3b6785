import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { GraphQLSchema } from 'graphql';
import { createAdmin } from './admin/admin.ts';
import { createMetrics } from './admin/metrics.ts';
import { createCallers } from './caller/callers.ts';
import { createNamedRecords } from './caller/named-records.ts';
import { createSharedListings } from './caller/shared-listings.ts';
import type { SharedListings } from './caller/shared-listings.ts';
import { steadyTime } from './clock.ts';
import { checkedOptions } from './gateway-options.ts';
import type { CheckedOptions, GatewayOptions } from './gateway-options.ts';
import { held } from './held.ts';
import { schema } from './schema/schema.ts';
import { createSpans } from './spans.ts';
import { createFrontDoor } from './server/front-door.ts';
import type { Health } from './server/health.ts';
import type { RequestHandler } from './server/listener.ts';
import { createNodeHandler } from './server/node-handler.ts';
import type { Execute } from './server/operation.ts';
import { createInsistentRecords } from './store/insistent-records.ts';
import type { Records } from './store/records.ts';
import { createRedisRecords } from './store/redis-records.ts';
import { readTrustedDocuments } from './server/trusted-documents.ts';
import type { TrustedDocuments } from './server/trusted-documents.ts';
import { connectRedis } from './store/redis.ts';
import { openStateFile } from './store/state-file.ts';
import type { OpenStateFile } from './store/state-file.ts';
import { whyUnusable } from './store/unusable-file.ts';
import { createCallerNames, createSharedCallerNames } from './throttle/caller-names.ts';
import type { CallerNames } from './throttle/caller-names.ts';
import { createFailoverLedger } from './throttle/failover-ledger.ts';
import type { LedgerRules } from './throttle/ledger-state.ts';
import type { Ledger } from './throttle/ledger.ts';
import { createMemoryLedger } from './throttle/memory-ledger.ts';
import { createRedisLedger } from './throttle/redis-ledger.ts';
import { createReplicas } from './throttle/replicas.ts';
import { secretOfFile } from './throttle/secret-of-file.ts';
import { createSecretWatch } from './throttle/secret-watch.ts';
import { createUpstreamClock } from './throttle/upstream-clock.ts';
import { observedPetApi } from './upstream/observed-pet-api.ts';
import { createPetApi } from './upstream/pet-api.ts';
import { createTransport } from './upstream/transport.ts';
import { watchedTransport } from './upstream/watched-transport.ts';

export interface Gateway {
  /** Answers GraphQL over HTTP: a standard fetch handler, for frameworks and for tests. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The same for Node's http server, and for what is built on its requests and responses. */
  readonly handle: RequestHandler;
  /** Runs an operation in this process, without HTTP. */
  readonly execute: Execute;
  /** The GraphQL API, for whoever prints or explores it. */
  readonly schema: GraphQLSchema;
  /**
   * Metrics for Prometheus at `/metrics` and a page of budgets at `/budget`, for Node's http server. Serve it where the
   * public does not come. Undefined unless the option `admin` is set.
   */
  readonly admin: RequestHandler | undefined;
  /** Refuses the calls that wait for the plan, and every new one; settles once those under way are over. */
  readonly drain: () => Promise<void>;
  /** Drains, for a moment at most; writes down what was spent, and closes every connection. Once, however often it is asked. */
  readonly close: () => Promise<void>;
}

/** How long what was counted of callers is told as their health. */
const HEALTH_HELD_MS = 1_000;

/** Calls under way have had their time by then; what was spent must be written down in any case. */
const CLOSE_AFTER_MS = 500;

/** A creation may take this much longer than its call, from its record to its outcome's, before it is given up for lost. */
const LEASE_BEYOND_CALL_MS = 2_000;

/**
 * The one place where the parts are put together. Two gateways share nothing.
 *
 * @throws TypeError that names every wrong option.
 * @throws Error when the state file cannot be used. Nothing stays open in either case.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const checked = checkedOptions(options);
  const trusted = checked.trustedDocuments && trustedDocuments(checked.trustedDocuments);
  const opened = new DisposableStack();
  try {
    return putTogether(checked, trusted, opened);
  } catch (error) {
    // At once: whoever catches it may try again, and a file is for one.
    opened.dispose();
    throw error;
  }
}

/** @param opened is told how to close each thing at once that would stay open. */
function putTogether(checked: CheckedOptions, trusted: TrustedDocuments | undefined, opened: DisposableStack): Gateway {
  const { petApiUrl, petApiKey, endpoint, graphiqlKey, plan, log, clock } = checked;
  const { upstreamTimeoutMs, maxWaitMs, maxAgeMs, maxStaleMs, heedCacheControl } = checked;
  const { graphiql, introspection, corsOrigins } = checked;
  const { ledger, replicas, listings, records, nameOf, redis, secretsDiffer } = openStores(
    { ...checked, rules: { plan, probeMs: upstreamTimeoutMs } },
    opened,
  );
  const connections = createTransport({ baseUrl: petApiUrl, timeoutMs: upstreamTimeoutMs });
  const transport = watchedTransport(connections, clock, log);
  opened.defer(() => void transport.close());
  let draining = false;
  let closing: Promise<void> | undefined;
  // Anybody may ask for it, and there may be thousands of callers.
  const gatesClosed = held(HEALTH_HELD_MS, clock, () => callers.gatesClosed());
  const sources = { views: () => callers.views(), health, replicas };
  const metrics = checked.admin ? createMetrics(sources) : undefined;
  opened.defer(() => metrics?.close());
  const spans = createSpans();
  const petApi = createPetApi(transport, clock);
  const callers = createCallers({
    petApi: metrics ? observedPetApi(petApi, clock, metrics) : petApi,
    ledger,
    replicas,
    ...(listings ? { listings } : {}),
    submits: { records, leaseMs: upstreamTimeoutMs + LEASE_BEYOND_CALL_MS },
    nameOf,
    upstreamClock: createUpstreamClock(clock),
    idleMs: maxStaleMs,
    clock,
    log,
    events: metrics,
    spans,
  });
  opened.defer(() => void callers.close());
  const { fetch, fastPath, execute } = createFrontDoor({
    callers,
    clock,
    maxWaitMs,
    freshness: { maxAgeMs, maxStaleMs },
    heedCacheControl,
    endpoint,
    limits: checked,
    graphiql,
    introspection,
    corsOrigins,
    trusted,
    requireTrusted: checked.requireTrustedDocuments,
    log,
    events: metrics,
    spans,
    health,
    ...(petApiKey === undefined ? {} : { serverKey: petApiKey }),
    ...(graphiqlKey === undefined ? {} : { graphiqlKey }),
  });
  return {
    fetch,
    handle: createNodeHandler(fetch, checked.maxBodyBytes, fastPath),
    execute,
    schema,
    admin: metrics && createAdmin({ ...sources, metrics, clock }),
    drain,
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    await Promise.race([drain(), setTimeout(CLOSE_AFTER_MS, undefined, { ref: false })]);
    metrics?.close();
    await records.close();
    await ledger.close();
    await transport.close();
  }

  function drain(): Promise<void> {
    draining = true;
    return callers.close();
  }

  function health(): Health {
    return {
      draining,
      redis: redis(),
      secretsDiffer: secretsDiffer(),
      gatesClosed: gatesClosed(),
      singleReadsWork: callers.singleReadsWork,
      nearSunsetMs: callers.nearSunsetMs,
    };
  }
}

function trustedDocuments(manifest: Readonly<Record<string, unknown>>): TrustedDocuments {
  try {
    return readTrustedDocuments(manifest, schema);
  } catch (error) {
    throw new TypeError(`createGateway: trustedDocuments: ${(error as Error).message}`, { cause: error });
  }
}

type StoreOptions = CheckedOptions & { readonly rules: LedgerRules };

interface Stores {
  readonly ledger: Ledger;
  /** Submits with an idempotency key; they are closed before the ledger. */
  readonly records: Records;
  readonly nameOf: CallerNames;
  /** How many processes share them. */
  replicas(): number;
  /** What passes listings between them; undefined where there is no way. */
  readonly listings?: SharedListings;
  /** Whether Redis does what it is asked; undefined without one. */
  redis(): Health['redis'];
  /** Whether others share them under another key secret. */
  secretsDiffer(): boolean;
}

/** Where spent calls and submits are kept: in Redis for many replicas, in a file or in memory for one process. */
function openStores(options: StoreOptions, opened: DisposableStack): Stores {
  const { redisUrl, stateFile, keySecret, rules, clock, log, freshUpstream = false } = options;
  const now = steadyTime(clock);
  if (redisUrl === undefined) {
    const { file, secret } = openFile(stateFile, now, keySecret);
    opened.defer(() => file.close());
    const nameOf = createCallerNames(secret);
    const kept = stateFile === undefined ? {} : { kept: { file, nameOf } };
    const ledger = createMemoryLedger({ rules, now, log, firstEver: freshUpstream, ...kept });
    opened.defer(() => void ledger.close());
    const records = createInsistentRecords(createNamedRecords(file.records, nameOf));
    return { ledger, replicas: () => 1, records, nameOf, redis: () => undefined, secretsDiffer: () => false };
  }
  if (stateFile !== undefined) log.warn({ stateFile }, 'the state file is not used, since there is a Redis');
  const redis = connectRedis({ url: redisUrl });
  opened.defer(() => redis.close());
  const replica = randomUUID();
  const replicas = createReplicas(redis, replica, log);
  opened.defer(() => replicas.close());
  const nameOf = keySecret === undefined ? createSharedCallerNames(redis) : createCallerNames(keySecret);
  const secrets = createSecretWatch(redis, nameOf, log);
  opened.defer(() => secrets.close());
  const shared = createRedisLedger({ redis, rules, nameOf, replica, log });
  const ledger = createFailoverLedger({ shared, replicas, rules, clock, now });
  opened.defer(() => void ledger.close());
  const listings = createSharedListings({
    redis,
    nameOf,
    replica,
    clock,
    keptMs: Math.max(options.maxAgeMs, options.maxStaleMs),
    works: () => replicas.redisWorks,
  });
  opened.defer(() => listings.close());
  const close = async () => {
    listings.close();
    secrets.close();
    replicas.close();
    await ledger.close();
    redis.close();
  };
  const records = createInsistentRecords(createNamedRecords(createRedisRecords(redis), nameOf));
  return {
    ledger: { ...ledger, close },
    listings,
    records,
    nameOf,
    replicas: () => replicas.count,
    redis: () => (replicas.redisWorks ? 'connected' : 'away'),
    secretsDiffer: () => secrets.differs,
  };
}

/** With the secret that hashes API keys in it. */
function openFile(
  path: string | undefined,
  now: () => number,
  given: string | undefined,
): { file: OpenStateFile; secret: string } {
  let file: OpenStateFile | undefined;
  try {
    // Resolved: some names, and all that begin with `file:`, mean something else to SQLite, such as a file in memory.
    file = openStateFile(path === undefined ? ':memory:' : resolve(path), now);
    return { file, secret: secretOfFile(file, given) };
  } catch (error) {
    file?.close();
    if (path === undefined) throw error;
    const why = whyUnusable(path, error, 'what was spent today');
    throw new Error(`createGateway: stateFile: cannot use ${path}: ${why}`, { cause: error });
  }
}
